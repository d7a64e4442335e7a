"""What a person is told while a job runs: speed, errors and the time left, on a terminal and in a log."""

import io

import pytest
from rich.console import Console

from hybrid_ir import progress
from hybrid_ir.progress import Pace, Reporter, Tally, duration


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def followed(terminal, monkeypatch, tallies, seconds_each=10.0, beat_at=()):
    """(what was shown, the reporter) of a stage whose items take so long; a beat at the given items."""
    clock, shown, beats = Clock(), io.StringIO(), []
    console = Console(file=shown, force_terminal=terminal, width=200)
    reporter = Reporter(console=console, clock=clock)

    class Beating:
        def __init__(self, beat, seconds):
            beats.append(beat)

        __enter__ = __exit__ = lambda *_: None

    monkeypatch.setattr(progress, "_beating", Beating)

    def items():
        for number, tally in enumerate(tallies):
            if number in beat_at:
                beats[-1]()
            clock.now += seconds_each
            yield tally

    passed = list(reporter.follow("read", items(), 8, lambda: "2 shards", "documents", lambda tally: tally))
    assert passed == tallies
    return shown.getvalue(), reporter


def test_a_log_tells_speed_errors_and_time_left(monkeypatch):
    tallies = [Tally(500), Tally(300, errors=1), *[Tally(400)] * 6]
    shown, reporter = followed(False, monkeypatch, tallies, beat_at=(0, 2))
    assert [line.split(maxsplit=1)[1] for line in shown.splitlines()] == [
        "0/8 after 0 s (2 shards)",
        "2/8 after 20 s, 40 documents/s, 1 error, about 60 s left (2 shards)",
        "8/8 in 80.0 s, 3,200 documents, 40 documents/s, 1 error",
    ]
    assert reporter.seconds == {"read": 80.0}


def test_a_terminal_tells_the_same(monkeypatch):
    shown, _ = followed(True, monkeypatch, [Tally(1000, errors=3)] * 8, seconds_each=100)
    assert "8/8" in shown
    assert "13 min, 10 documents/s, 24 errors" in shown


def test_what_an_earlier_run_did_says_nothing_about_the_speed():
    pace = Pace(total=10, unit="chunks")
    for _ in range(6):
        pace.add(Tally(100, errors=1, fresh=False))
    assert pace.facts(5) == ["6 errors"]
    pace.add(Tally(30))
    pace.add(Tally(30))
    assert pace.facts(40) == ["1.5 chunks/s", "6 errors", "about 40 s left"]
    assert (pace.done, pace.rows) == (8, 660)


def test_without_a_count_there_is_still_the_time_left(monkeypatch):
    pace = Pace(total=4)
    pace.add(Tally(1))
    assert pace.facts(300) == ["about 15 min left"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (99, "99 s"), (100, "2 min"), (5940, "99 min"), (12000, "3 h 20 min")]
)
def test_durations(seconds, said):
    assert duration(seconds) == said


def test_quiet_is_quiet_and_counts_the_seconds(capsys):
    reporter = Reporter(quiet=True)
    assert list(reporter.follow("read", [1, 2], 2)) == [1, 2]
    assert reporter.seconds["read"] >= 0
    assert capsys.readouterr().err == ""

"""The journal loses nothing and asks nothing twice; errors are rows; a budget stops, and the run goes on."""

import re
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_run import QUESTIONS, row, small_run

from hybrid_ir.errors import BadInput, Conflict, Damaged, Failed, NotFound, Unavailable
from hybrid_ir.evaluation.run import asking, journal, runner
from hybrid_ir.evaluation.run import run as runs
from hybrid_ir.evaluation.run.journal import Journal
from hybrid_ir.evaluation.run.runner import Budget, go
from hybrid_ir.progress import Reporter

QUIET = Reporter(quiet=True)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(runner, "FIRST_WAIT_S", 0.001)


@settings(max_examples=25)
@given(data=st.data())
def test_a_run_cut_anywhere_asks_each_question_once_and_loses_none(data, tmp_path_factory):
    folder, run = tmp_path_factory.mktemp("run"), small_run()
    with Journal(folder) as held:
        go(run, held, row, 2, QUIET)
    whole = (folder / journal.NAME).read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    (folder / journal.NAME).write_bytes(whole[:cut])
    asked = []

    def ask(planned, question):
        asked.append((planned.cell.key, question.id))
        return row(planned, question)

    with Journal(folder) as held:
        before = set(held.rows)
        assert go(run, held, ask, 3, QUIET) == ""
    assert before.isdisjoint(asked)
    assert before | set(asked) == {(one.cell.key, q.id) for one, q in run.all()}
    assert len(asked) == len(set(asked))
    assert sorted((folder / journal.NAME).read_bytes().splitlines()) == sorted(whole.splitlines())


def test_methods_are_asked_question_by_question_and_each_comes_first_in_turn():
    run = small_run(methods=("a", "b", "c"))
    order = [(one.cell.method, question.id) for one, question in run.todo()]
    assert sorted(order) == sorted((one.cell.method, question.id) for one, question in run.all())
    assert order[:6] == [("a", "q1"), ("b", "q1"), ("c", "q1"), ("b", "q2"), ("c", "q2"), ("a", "q2")]
    assert [question for _, question in order[9:]] == ["q4"] * 3


def test_models_and_datasets_are_asked_one_after_the_other():
    run = small_run()
    more = [one.model_copy(update={"cell": one.cell.model_copy(update={"model": "other"})}) for one in run.planned]
    both = run.model_copy(update={"planned": (*run.planned, *more)})
    models = [one.cell.model for one, _ in both.todo()]
    assert models == ["default"] * 8 + ["other"] * 8


def test_a_second_writer_and_a_line_that_is_no_row_are_named(tmp_path):
    with Journal(tmp_path), pytest.raises(Conflict, match="another run is writing there"):
        Journal(tmp_path)
    (tmp_path / journal.NAME).write_bytes(b'{"cell": "c"}\n{"cell": "c", "id": "q"}\n')
    with pytest.raises(Damaged, match="line 1: no row of a run"):
        Journal(tmp_path)
    with pytest.raises(NotFound):
        journal.read(tmp_path / "absent.jsonl")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BadInput, match="cannot be written there"):
        Journal(tmp_path / "file")


def test_no_more_at_a_time_than_told(tmp_path):
    running, most, lock = 0, 0, threading.Lock()
    together = threading.Event()

    def ask(planned, question):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 3:
                together.set()
        together.wait(5)
        with lock:
            running -= 1
        return row(planned, question)

    with Journal(tmp_path) as held:
        go(small_run(), held, ask, 3, QUIET)
    assert most == 3


def test_errors_are_rows_and_are_asked_again_only_when_told(tmp_path):
    run, asked = small_run(("hybrid_ir",)), Counter()

    def ask(planned, question):
        asked[question.id] += 1
        if question.id == "q1":
            raise BadInput("The question is odd.")
        if question.id == "q2":
            raise ZeroDivisionError("x / 0")
        if question.id == "q3" and asked["q3"] < 3:
            raise Unavailable("The endpoint is busy.")
        return row(planned, question)

    with Journal(tmp_path) as held:
        assert go(run, held, ask, 2, QUIET) == ""
        rows = {identity: found for (_, identity), found in held.rows.items()}
    assert (rows["q1"].error, rows["q1"].kind) == ("The question is odd.", "BadInput")
    assert (rows["q2"].error, rows["q2"].kind) == ("ZeroDivisionError: x / 0", "ZeroDivisionError")
    assert (rows["q3"].error, rows["q3"].tries) == ("", 3)
    assert asked == {"q1": 1, "q2": 1, "q3": 3, "q4": 1}
    with Journal(tmp_path) as held:
        go(run, held, row, 2, QUIET)
        assert held.rows[run.planned[0].cell.key, "q1"].error
        go(run, held, row, 2, QUIET, retry_errors=True)
        assert not any(found.error for found in held.rows.values())
    assert asked["q4"] == 1
    assert len(journal.read(tmp_path / journal.NAME)) == 4


def test_strict_raises_the_questions_own_error(tmp_path):
    def ask(planned, question):
        raise BadInput("odd")

    with Journal(tmp_path) as held, pytest.raises(BadInput, match=r"hybrid_ir/default/small.*, question q1: odd"):
        go(small_run(), held, ask, 1, QUIET, strict=True)


def test_what_is_of_the_run_ends_it_and_what_came_is_kept(tmp_path):
    def ask(planned, question):
        if question.id == "q3":
            raise Failed("no worker lives")
        return row(planned, question)

    with Journal(tmp_path) as held, pytest.raises(Failed, match="no worker lives"):
        go(small_run(), held, ask, 1, QUIET)
    assert {"q1", "q2"} <= {question for _, question in journal.read(tmp_path / journal.NAME)}


@pytest.mark.parametrize(
    ("budget", "said", "rows"),
    [
        (Budget(calls=5), r"The budget of 5 calls is spent \((6|8|10)\): raise --max-calls\.", 3),
        (Budget(tokens=100), r"The budget of 100 tokens is spent \([1-3]00\): raise --max-tokens\.", 1),
        (Budget(seconds=0), r"The budget of 0 seconds is spent \(0\): raise --max-seconds\.", 0),
    ],
)
def test_a_spent_budget_stops_with_a_sentence_and_the_run_goes_on(tmp_path, budget, said, rows):
    run = small_run()
    with Journal(tmp_path) as held:
        stopped = go(run, held, row, 1, QUIET, budget)
        assert re.match(said, stopped)
        assert "Run the same command again to go on" in stopped
        assert rows <= len(held.rows) <= rows + 2  # what already runs is finished
        assert go(run, held, row, 1, QUIET) == ""
        assert len(held.rows) == 8


def test_nobody_there_stops_the_run_after_some_questions(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "IN_A_ROW", 3)

    def ask(planned, question):
        raise Unavailable("http://x: no service answers there.")

    with Journal(tmp_path) as held:
        stopped = go(small_run(), held, ask, 1, QUIET)
        assert stopped.startswith("3 questions in a row got no answer: http://x")
        assert 3 <= len(held.rows) <= 5


def test_a_service_that_is_down_is_named():
    run = small_run(("served",), url="http://127.0.0.1:9")
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:9: no service answers there"):
        asking.check_service(run.url)
    with pytest.raises(Unavailable, match="no service answers there"):
        asking.ask_service(run.url, run.planned[0].cell, QUESTIONS[0], 5.0)


def test_a_folder_holds_one_run(tmp_path):
    run = small_run()
    assert runs.begin(tmp_path, run) == []
    assert runs.begin(tmp_path, run.model_copy(update={"versions": {"python": "9"}, "started": "later"}))
    for changed, what in (
        (run.model_copy(update={"build_id": "b2"}), "other index"),
        (small_run(("medrag",)), "other grid"),
        (small_run(options_in_query=True), "other options_in_query"),
    ):
        with pytest.raises(Conflict, match=what):
            runs.begin(tmp_path, changed)
    read = runs.read(tmp_path)
    assert read.model_copy(update={"questions": run.questions}) == run
    (tmp_path / runs.RUN).write_text("{}", encoding="utf-8")
    with pytest.raises(Damaged, match="cannot be read as a run"):
        runs.read(tmp_path)


def test_predictions_are_the_same_bytes_in_whatever_order_rows_came(tmp_path):
    run = small_run()
    for folder, workers in (("a", 1), ("b", 4)):
        with Journal(tmp_path / folder) as held:
            go(run, held, row, workers, QUIET)
            runs.write(tmp_path / folder, runs.ordered(run, held.rows))
    a, b = ((tmp_path / folder / runs.PREDICTIONS).read_bytes() for folder in "ab")
    assert a == b
    assert a.count(b"\n") == 8

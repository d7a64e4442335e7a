"""The page loads nothing and shows texts as texts; the paper's numbers stand beside, marked; two runs compared."""

import re
import sys
from html.parser import HTMLParser

import pyarrow.parquet as pq
import pytest
from small_run import EVIL, QUESTIONS, row, small_run
from typer.testing import CliRunner

from hybrid_ir.cli import app
from hybrid_ir.errors import BadInput
from hybrid_ir.evaluation.report import paper, report
from hybrid_ir.evaluation.report.tables import Table, markdown, terminal
from hybrid_ir.evaluation.run import run as runs
from hybrid_ir.evaluation.run.journal import Journal
from hybrid_ir.evaluation.statistics import summarise


class Page(HTMLParser):
    """Its tags, what it links to, its text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.links, self.texts, self.open = set(), [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "style", "onerror", "onload")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)


def made(folder, run, rows):
    with Journal(folder) as journal:
        runs.begin(folder, run)
        for one in rows:
            journal.add(one)
    runs.write(folder, rows)
    return report.write(folder, run, rows)


def rows_of(run, right=lambda planned, question: True):
    return [row(one, question, right(one, question), ("d1",)) for one, question in run.all()]


def test_the_page_holds_everything_and_escapes_what_others_wrote(tmp_path):
    run = small_run()
    rows = rows_of(run, lambda one, question: question.id != "q2")
    rows[0] = rows[0].model_copy(update={"prediction": EVIL, "error": EVIL, "ranked": (EVIL,)})
    made(tmp_path, run, rows)
    html = (tmp_path / report.PAGE).read_text(encoding="utf-8")
    page = Page(html)
    assert page.open == []
    assert "script" not in page.tags
    assert page.links
    assert all(link.startswith("data:image/png;base64,") for link in page.links)
    assert not re.findall(r"url\(|@import|https?://", html)
    assert "default-src 'none'" in html
    text = "".join(page.texts)
    assert text.count(EVIL) > 4
    for question in QUESTIONS:
        assert question.question in text
    assert "Where failures arise" in text


def test_markdown_keeps_its_columns_whatever_a_text_holds():
    told = markdown(Table("t", ("a", "b"), ((EVIL, "x\ny"),), "note"))
    (line,) = [line for line in told.splitlines() if "alert" in line]
    assert len(re.findall(r"(?<!\\)\|", line)) == 3
    assert "<script" not in line.replace("\\<", "")
    assert "x y" in line
    assert terminal(Table("t", ("a", "bb"), (("ccc", "d"),))) == "t\n  a    bb\n  ccc  d"


def test_the_papers_numbers_stand_beside_ones_own_and_are_marked(tmp_path):
    run = small_run(("zero_shot", "hybrid_ir"), paper="table1")
    renamed = tuple(
        one.model_copy(update={"cell": one.cell.model_copy(update={"dataset": "medqa"})}) for one in run.planned
    )
    run = run.model_copy(
        update={"planned": renamed, "questions": {"medqa": QUESTIONS}, "datasets": {"medqa": run.datasets["small"]}}
    )
    made(tmp_path, run, rows_of(run))
    told = (tmp_path / report.MARKDOWN).read_text(encoding="utf-8")
    lines = {line.split("|")[1].strip(): line for line in told.splitlines() if line.startswith("| ")}
    assert "82.9" in lines[f"hybrid_ir, GPT-4o-mini ({paper.MARK})"]
    assert "MedGraphRAG, Llama-3-8B-Instruct" in told
    assert "100.0 [" in lines["hybrid_ir"]
    assert paper.number("table2", "GPT-4o-mini", "hybrid_ir", "mmlu") == 86.8
    assert paper.number("table2", "GPT-4o-mini", "nothing", "mmlu") is None
    assert paper.number("", "x", "hybrid_ir", "mmlu") is None


def test_without_matplotlib_the_page_says_so(tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.backends", "matplotlib.backends.backend_agg", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    run = small_run()
    made(tmp_path, run, rows_of(run))
    html = (tmp_path / report.PAGE).read_text(encoding="utf-8")
    assert "<img" not in html
    assert "pip install" in html


def test_rounds_are_plotted_where_a_grid_has_several():
    from hybrid_ir.evaluation.report.plots import plots

    run = small_run(("hybrid_ir",))
    planned = [
        one.model_copy(update={"cell": one.cell.model_copy(update={"rounds": number})})
        for one in run.planned
        for number in (1, 2, 3)
    ]
    run = run.model_copy(update={"planned": tuple(planned)})
    found = plots(summarise(run, rows_of(run)))
    assert [caption.partition(",")[0] for caption, _ in found] == [
        "Accuracy over the rounds of the loop",
        "recall@5 on small",
        "Accuracy against seconds a question",
        "Accuracy against tokens a question",
    ]
    assert all(png.startswith(b"\x89PNG") for _, png in found)


def test_parquet_has_a_row_a_question(tmp_path):
    run = small_run()
    made(tmp_path, run, rows_of(run))
    table = pq.read_table(tmp_path / runs.PARQUET)
    assert table.num_rows == 8
    first = table.slice(0, 1).to_pylist()[0]
    assert first["round_documents"] == [["d1"]]
    assert first["gold_recall"] == [0.5]
    assert (first["strict"], first["prompt_tokens"], first["tries"]) == (True, 90, 1)


def test_two_runs_are_compared_over_what_both_asked(tmp_path):
    run = small_run()
    made(tmp_path / "a", run, rows_of(run))
    made(tmp_path / "b", run, rows_of(run, lambda one, question: question.id == "q1")[:4])
    found, recall = report.compare_runs(tmp_path / "a", tmp_path / "b")
    assert (recall.measure, recall.difference.mean, recall.questions) == ("recall@5", 0.0, 3)
    assert (found.questions, found.only_a, found.only_b) == (4, 3, 0)
    done = CliRunner().invoke(app, ["benchmark", "compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert "+75.0" in done.output
    assert "3 : 0" in done.output
    other = small_run(("medcpt_k1",))
    made(tmp_path / "c", other, rows_of(other))
    with pytest.raises(BadInput, match="share no method"):
        report.compare_runs(tmp_path / "a", tmp_path / "c")

import pyarrow.parquet as pq
import pytest

from hybrid_ir.evaluation.retrieval import report as retrieval_report
from hybrid_ir.evaluation.retrieval.methods import Row, methods_for


def row(question, method, value):
    return Row(
        question_id=question, method=method, ranked=("a", "b"), gold=("a",), measures={"recall@5": value}, seconds=0.1
    )


ROWS = [row(f"q{i}", "dense", i % 2) for i in range(40)] + [row(f"q{i}", "graph + dense", 1.0) for i in range(40)]


def test_the_table_has_every_method_and_the_comparison():
    summary = retrieval_report.summarise("musique", 3, "b1", ROWS, ("dense",), "graph + dense")
    assert [line.method for line in summary.lines] == ["dense", "graph + dense"]
    assert summary.lines[0].measures["recall@5"].mean == 0.5
    assert summary.comparison.path == "dense"
    assert summary.comparison.difference.mean == 0.5
    assert summary.comparison.p < 0.01
    table = retrieval_report.table(summary)
    assert "musique: 40 questions over 3 documents" in table
    assert "graph + dense less dense, recall@5: +0.500" in table


def test_rows_and_plot_are_files(tmp_path):
    retrieval_report.write_rows(tmp_path / "r.parquet", ROWS)
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column_names == ["question_id", "method", "ranked", "gold", "recall@5", "seconds"]
    assert table.num_rows == len(ROWS)
    assert table["ranked"][0].as_py() == ["a", "b"]
    pytest.importorskip("matplotlib")
    retrieval_report.plot(
        tmp_path / "p.png", retrieval_report.summarise("musique", 3, "b1", ROWS, ("dense",), "graph + dense")
    )
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_measured(tmp_path):
    summary = retrieval_report.summarise("musique", 3, "b1", [], ("dense",), "graph + dense")
    assert "0 questions" in retrieval_report.table(summary)
    retrieval_report.write_rows(tmp_path / "r.parquet", [])


def test_methods_follow_the_paths_of_the_index():
    names = [method.name for method in methods_for(("graph", "dense"), ("graph", "dense"), True, 3)]
    assert names[:4] == ["graph", "dense", "graph + dense, plain RRF", "graph + dense"]
    assert names[4:] == ["loop, 1 round", "loop, 3 rounds", "loop over dense, 3 rounds", "gold sub-questions"]
    three = methods_for(("graph", "dense", "sparse"), ("graph", "dense"), False, 1)
    names = [method.name for method in three]
    assert names[3:] == [
        "graph + dense, plain RRF",
        "graph + dense",
        "graph + dense + sparse, plain RRF",
        "graph + dense + sparse",
        "loop, 1 round",
        "loop over dense + sparse, 1 round",
    ]
    assert three[-2].paths == ("graph", "dense")
    assert not any(method.rounds for method in methods_for(("graph", "dense"), ("graph", "dense"), True, 0))

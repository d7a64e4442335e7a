"""A grid file becomes cells with stable keys and whole settings; what is not there is named."""

from pathlib import Path

import pytest
import yaml

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.run import benchmark
from hybrid_ir.evaluation.run.grid import Grid, fingerprint, plan, read_grid, suite
from hybrid_ir.evaluation.sets import question_sets
from hybrid_ir.progress import Reporter

CONFIGS = Path(__file__).parents[2] / "configs"
LLM = {"reasoner": {"kind": "llm", "llm": {"backend": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "m"}}}


def written(path, **grid):
    path.write_text(yaml.safe_dump({"methods": ["hybrid_ir"], "datasets": ["medqa"], **grid}), encoding="utf-8")
    return path


@pytest.fixture
def with_model(tmp_path):
    """A configuration with a language model."""
    path = tmp_path / "llm.yaml"
    path.write_text(yaml.safe_dump(LLM), encoding="utf-8")
    return path


def test_cells_are_the_product_without_what_does_not_apply(tmp_path, with_model):
    grid = Grid(
        name="g",
        methods=["zero_shot", "medrag", "hybrid_ir"],
        datasets=["medqa", "mmlu"],
        rounds=[1, 3],
        top_k=[5],
        seeds=[0, 1],
    )
    made = plan(grid, tmp_path, with_model)
    assert [one.cell.key for one in made.planned if one.cell.dataset == "medqa"] == [
        "zero_shot/default/medqa/rounds=own/k=own/seed=0",
        "zero_shot/default/medqa/rounds=own/k=own/seed=1",
        "medrag/default/medqa/rounds=own/k=5/seed=0",
        "medrag/default/medqa/rounds=own/k=5/seed=1",
        "hybrid_ir/default/medqa/rounds=1/k=5/seed=0",
        "hybrid_ir/default/medqa/rounds=1/k=5/seed=1",
        "hybrid_ir/default/medqa/rounds=3/k=5/seed=0",
        "hybrid_ir/default/medqa/rounds=3/k=5/seed=1",
    ]
    last = made.planned[-1].settings
    assert (last.loop.rounds, last.loop.top_k, last.loop.deadline_s) == (3, 5, 3600.0)
    assert last.reasoner.llm.seed == 1
    assert len({fingerprint(one) for one in made.planned}) == 8  # datasets do not change settings


def test_a_grid_over_a_model_file_beside_it(tmp_path, with_model):
    grid = Grid(name="g", methods=["zero_shot", "hybrid_ir"], models={"none": None, "m": "llm.yaml"}, datasets=["mmlu"])
    made = plan(grid, tmp_path, None)
    assert [(one.cell.model, one.cell.method) for one in made.planned] == [
        ("none", "hybrid_ir"),
        ("m", "zero_shot"),
        ("m", "hybrid_ir"),
    ]
    assert made.left_out == (
        "zero_shot needs a language model, which none is not: name one in the settings (reasoner.kind: llm).",
    )
    with pytest.raises(BadInput, match="zero_shot needs a language model"):
        plan(grid, tmp_path, None, strict=True)


@pytest.mark.parametrize("path", sorted((CONFIGS / "grids").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_ready_grid_can_be_planned(path, with_model):
    grid = read_grid(path)
    made = plan(grid, path.parent, with_model)
    assert {one.cell.method for one in made.planned} == set(grid.methods)
    assert suite(path.stem).samefile(path)


def test_the_ready_grids_are_the_papers():
    assert plan(read_grid(suite("figure3")), CONFIGS / "grids", None).planned[4].settings.loop.rounds == 5
    assert len(plan(read_grid(suite("table2")), CONFIGS / "grids", None).planned) == 18


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"methods": ["medgraphrag"]}, "no method 'medgraphrag'; there are ablation_all_paths,"),
        ({"method": ["medrag"]}, "method: there is no such field (there are name, title, methods,"),
        ({"rounds": [0]}, "rounds.0: Input should be greater than or equal to 1"),
        ({"methods": []}, "methods: "),
        ({"methods": ["served"]}, "cannot be run without a service"),
        ({"methods": ["a/x.yaml", "b/x.yaml"]}, "two files of one name"),
        ({"models": {"m": "absent.yaml"}}, "absent.yaml: no such settings file"),
        ({"paper": "table9"}, "paper: "),
        ({"methods": ["gold_sub_questions"]}, "needs answers: false"),
    ],
)
def test_what_a_grid_gets_wrong_is_named(tmp_path, grid, said):
    path = written(tmp_path / "g.yaml", **grid)
    with pytest.raises((BadInput, NotFound)) as raised:
        plan(read_grid(path), tmp_path, None)
    assert said in str(raised.value)


def test_files_that_are_no_grids(tmp_path):
    (tmp_path / "list.yaml").write_text("- a\n", encoding="utf-8")
    (tmp_path / "bad.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(BadInput, match="found a list"):
        read_grid(tmp_path / "list.yaml")
    with pytest.raises(BadInput, match="not a readable YAML file"):
        read_grid(tmp_path / "bad.yaml")
    with pytest.raises(NotFound, match="no such grid file"):
        read_grid(tmp_path / "absent.yaml")
    with pytest.raises(
        BadInput, match=r"no suite 'x'; there are figure3, local, local_rounds, mirage, retrieval, table1, table2"
    ):
        suite("x")


def test_requests_that_cannot_be_run(tmp_path):
    quiet = Reporter(quiet=True)
    request = benchmark.Request
    for given, said in (
        (request(suite="local"), "either --root"),
        (request(suite="local", root="r", url="u"), "either --root"),
        (request(suite="local", grid="g.yaml", root="r"), "Name one of --suite"),
        (request(suite="table2", root=str(tmp_path)), "needs the folder of the data sets"),
        (request(suite="local", root=str(tmp_path), methods=","), "--methods is empty"),
        (request(suite="local", url="http://127.0.0.1:9"), "with --url the one method is 'served'"),
        (request(rerun=str(tmp_path), limit=3), "leave out --limit"),
    ):
        with pytest.raises(BadInput) as raised:
            benchmark.prepare(given, quiet)
        assert said in str(raised.value)
    with pytest.raises(NotFound, match="no run is there"):
        benchmark.prepare(request(rerun=str(tmp_path)), quiet)
    with pytest.raises(NotFound):  # no index there
        benchmark.prepare(request(suite="local", root=str(tmp_path / "none")), quiet)


def test_datasets_by_name_by_path_and_what_is_wrong_with_them(tmp_path):
    load = question_sets.load
    sample = load("../../examples/questions.jsonl", None, CONFIGS / "grids", limit=None, strict=False)
    assert sample.name == "questions"
    assert len(sample.questions) > 20
    assert len(load("../../examples/questions.jsonl", None, CONFIGS / "grids", limit=7, strict=False).questions) == 7
    with pytest.raises(BadInput, match="no set 'medqb'; the sets are medqa,"):
        load("medqb", tmp_path, tmp_path, limit=None, strict=False)
    with pytest.raises(NotFound, match=r"absent\.jsonl: no such file of questions"):
        load("absent.jsonl", None, tmp_path, limit=None, strict=False)
    with pytest.raises(NotFound, match=r"medqa\.jsonl"):
        load("medqa", tmp_path, tmp_path, limit=None, strict=False)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n", encoding="utf-8")
    with pytest.raises(BadInput, match="no question that can be used"):
        load(str(empty), None, tmp_path, limit=None, strict=False)
    mirage = '{"id": "1", "question": "?", "options": {"A": "x", "B": "y"}, "answer": "A"}\n'
    odd = tmp_path / "odd.jsonl"
    without = mirage.replace(', "answer": "A"', "").replace('"1"', '"2"')
    odd.write_text(mirage + without + mirage.replace('"A"}', '"E"}'), encoding="utf-8")
    found = load(str(odd), None, tmp_path, limit=None, strict=False)
    assert len(found.questions) == 1
    assert "line 2: the field 'answer' is missing" in found.problems[0]
    assert "line 3: the answer 'E' is not among the options A, B" in found.problems[1]
    with pytest.raises(BadInput, match="line 2: the field 'answer' is missing"):
        load(str(odd), None, tmp_path, limit=None, strict=True)
    ours = tmp_path / "ours.jsonl"
    line = '{"id": "1", "type": "choice", "question": "?", "options": {"A": "x", "B": "y"}, "answer": "%s"}\n'
    ours.write_text(line % "A" + line % "B", encoding="utf-8")
    assert "line 2: id '1' was given before" in load(str(ours), None, tmp_path, limit=None, strict=False).problems[0]
    with pytest.raises(BadInput, match="line 2: id '1' was given before"):
        load(str(ours), None, tmp_path, limit=None, strict=True)
    ours.write_text(line % "C", encoding="utf-8")
    with pytest.raises(BadInput, match="the answer 'C' is not among the options A, B"):
        load(str(ours), None, tmp_path, limit=None, strict=False)


def test_retrieval_alone_asks_no_service_and_a_ceiling_is_not_varied(tmp_path):
    methods = ["ablation_graph", "hybrid_ir", "gold_sub_questions"]
    grid = Grid(name="g", answers=False, methods=methods, datasets=["musique"], rounds=[1, 3])
    made = plan(grid, tmp_path, None)
    assert [(one.cell.method, one.cell.rounds) for one in made.planned] == [
        ("ablation_graph", None),
        ("hybrid_ir", 1),
        ("hybrid_ir", 3),
        ("gold_sub_questions", None),
    ]
    with pytest.raises(BadInput, match="answers: false"):
        plan(grid.model_copy(update={"methods": ("served",)}), tmp_path, None, served=True)

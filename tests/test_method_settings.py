"""configs/methods: each file loads, says what its name says and no more, and runs where no language model is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import hybrid_ir
from hybrid_ir.errors import BadInput, HybridIRError
from hybrid_ir.settings import FusionSettings, Settings, load

CONFIGS = Path(__file__).parents[1] / "configs"
METHODS = {path.stem: path for path in sorted((CONFIGS / "methods").glob("*.yaml"))}
FLOWS = {
    "zero_shot": "zero_shot",
    "chain_of_thought": "chain_of_thought",
    "medcpt_k1": "single",
    "medrag": "single",
    "imedrag": "imedrag",
    "gfm_rag": "single",
    "hipporag": "single",
    "hybrid_ir": "hybrid",
    "ablation_graph": "single",
    "ablation_dense": "single",
    "ablation_graph_dense": "single",
    "ablation_sparse": "single",
    "ablation_all_paths": "single",
    "plain_rrf": "single",
    "text_iterated": "hybrid",
    "ablation_graph_iterated": "hybrid",
    "ablation_dense_iterated": "hybrid",
}
PATHS = {
    "medcpt_k1": ("dense",),
    "medrag": ("sparse", "dense"),
    "imedrag": ("dense",),
    "gfm_rag": ("graph",),
    "hipporag": ("graph",),
    "hybrid_ir": ("graph", "dense"),
    "ablation_graph": ("graph",),
    "ablation_dense": ("dense",),
    "ablation_graph_dense": ("graph", "dense"),
    "ablation_sparse": ("sparse",),
    "ablation_all_paths": ("graph", "dense", "sparse"),
    "plain_rrf": ("graph", "dense"),
    "text_iterated": ("dense", "sparse"),
    "ablation_graph_iterated": ("graph",),
    "ablation_dense_iterated": ("dense",),
}
QUESTION = "Which virus is transmitted by the bite of bats?"


def over(name: str) -> Settings:
    """The method over the paper's models."""
    return load(CONFIGS / "paper.yaml", METHODS[name])


def test_every_method_of_the_table_has_a_file() -> None:
    assert set(METHODS) == set(FLOWS)
    assert {name: load(path).loop.flow for name, path in METHODS.items()} == FLOWS
    assert {name: load(METHODS[name]).fusion.paths for name in PATHS} == PATHS


@pytest.mark.parametrize("name", list(FLOWS))
def test_a_method_changes_how_is_asked_and_not_what(name: str) -> None:
    paper, found = load(CONFIGS / "paper.yaml"), over(name)
    for part in ("build", "reasoner", "rerank", "job", "serve"):
        assert getattr(found, part) == getattr(paper, part)
    assert set(yaml.safe_load(METHODS[name].read_text())) <= {"loop", "fusion", "linker", "graph_path", "sparse_path"}
    assert (found.loop.deadline_s, found.loop.flow) == (paper.loop.deadline_s, FLOWS[name])


def test_no_two_methods_are_the_same() -> None:
    """Over the embedded models: paper.yaml's graph path is HippoRAG's already."""
    told = [load(path).model_dump_json() for path in METHODS.values()]
    assert len(set(told)) == len(told)


def test_each_method_is_what_its_paper_says() -> None:
    assert over("medcpt_k1").loop.top_k == 1
    medrag = over("medrag")
    assert (medrag.loop.top_k, medrag.fusion.eta) == (32, 100)
    assert (set(medrag.fusion.weights.values()), set(medrag.fusion.peaks.values())) == ({1.0}, {0.0})
    imedrag = over("imedrag").loop
    assert (imedrag.rounds, imedrag.sub_questions, imedrag.stop_early) == (4, 3, False)
    gfm = over("gfm_rag").graph_path
    assert gfm.scorer == "gfm"
    assert gfm.gfm is not None
    assert gfm.gfm.ranker == "top20"
    hippo = over("hipporag").graph_path
    assert (hippo.scorer, hippo.damping, hippo.seed_by_document_count, hippo.meeting_share) == (
        "pagerank",
        0.5,
        True,
        0,
    )
    ours = over("hybrid_ir")
    assert (ours.loop.rounds, ours.loop.sub_questions, ours.fusion.eta) == (3, 3, 60)


def test_rows_of_the_ablation_differ_in_paths_and_rounds_alone() -> None:
    full = over("hybrid_ir").model_dump()
    for name in (name for name in METHODS if name.startswith("ablation")):
        row = over(name).model_dump()
        row["fusion"]["paths"] = full["fusion"]["paths"]
        row["loop"]["flow"] = full["loop"]["flow"]
        assert row == full


def test_later_files_win_key_by_key(tmp_path) -> None:
    base, more = tmp_path / "base.yaml", tmp_path / "more.yaml"
    base.write_text("loop: {rounds: 2, top_k: 7}\nfusion: {weights: {dense: 0.3}}\n")
    more.write_text("loop: {rounds: 4}\nfusion: {weights: {sparse: 0.2}}\n")
    found = load(base, more)
    assert (found.loop.rounds, found.loop.top_k, found.fusion.weights) == (4, 7, {"dense": 0.3, "sparse": 0.2})
    assert found.fusion.eta == FusionSettings().eta
    more.write_text("loop: {round: 4}\n")
    with pytest.raises(BadInput, match=r"base\.yaml, .*more\.yaml: loop\.round: there is no such key"):
        load(base, more)
    more.write_text("[loop]")
    with pytest.raises(BadInput, match=r"more\.yaml: expected settings"):
        load(base, more)


def test_each_method_without_a_language_model_answers_over_the_sample_corpus(sample_root) -> None:
    loaded = hybrid_ir.open(sample_root).index
    _ = loaded.extractor, loaded.chunk_encoder, loaded.entity_encoder
    for name in PATHS:
        ir = hybrid_ir.open(sample_root, load(METHODS[name]))
        ir.index.share_models(loaded)
        if name == "imedrag":
            with pytest.raises(BadInput, match="needs a language model"):
                ir.ask(QUESTION)
            continue
        if name == "gfm_rag":  # its weights are not here
            with pytest.raises(HybridIRError, match=r"GFM|gfm"):
                ir.retrieve(QUESTION)
            continue
        found = ir.ask(QUESTION, {"A": "rabies virus", "B": "influenza virus"}, deadline_s=600)
        assert found.choice == "A", name
        assert {sub.sub_question.text for sub in found.rounds[0].sub_answers} >= {QUESTION}
        brought = [item for round_ in found.rounds for sub in round_.sub_answers for item in sub.retrieval.evidence]
        assert {path for item in brought for path in item.paths} == set(PATHS[name]), name
        if FLOWS[name] == "single":
            assert (len(found.rounds), len(brought)) == (1, ir.index.settings.loop.top_k)
            assert found.rounds[0].sub_answers[0].statements == ()

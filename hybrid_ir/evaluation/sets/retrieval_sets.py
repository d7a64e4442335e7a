"""Public sets of questions with gold documents: plain functions from a data folder to one record each.

Every loader takes the folder that ``HYBRID_IR_DATA`` names; what it needs there stands in its docstring.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.sets.questions import GoldQuestion

Passage = dict[str, Any]


@dataclass(frozen=True)
class RetrievalSet:
    """A corpus and questions about it."""

    name: str
    documents: list[dict[str, str]]
    """``id``, ``title``, ``text``; ids are what the questions' gold names."""
    questions: list[GoldQuestion]
    graph: list[Passage] | None = None
    """Ready triples as OpenIE passages (``document``, ``entities``, ``triples``); None: extract them."""

    @property
    def corpus(self) -> str:
        """Sets of one corpus share a root, and with it the vectors that were paid for: ``bc5cdr-gold``, ``bc5cdr``."""
        return self.name.partition("-")[0]

    def limited(self, questions: int | None) -> RetrievalSet:
        """With the first questions alone, over the whole corpus."""
        return self if questions is None else replace(self, questions=self.questions[:questions])

    def write(self, folder: Path) -> tuple[Path, Path, Path | None]:
        """(questions, corpus, graph) as files: for a run, and for the index job; the graph only where there is one."""
        folder.mkdir(parents=True, exist_ok=True)
        questions, corpus, graph = folder / f"{self.name}.jsonl", folder / "corpus.jsonl", folder / "openie.jsonl"
        _write_lines(questions, [question.model_dump() for question in self.questions])
        _write_lines(corpus, self.documents)
        if self.graph is None:
            return questions, corpus, None
        _write_lines(graph, self.graph)
        return questions, corpus, graph


def pubmedqa(data: Path) -> RetrievalSet:
    """1,000 PubMedQA questions (``pubmedqa/``); BC5CDR's and BioRED's abstracts stand beside theirs as distractors.

    The PubMedQA abstracts carry no title: the question is often the title itself.
    """
    documents = {row["id"]: _document(row["id"], "", row["text"]) for row in _rows(data / "pubmedqa/corpus.jsonl")}
    for folder in ("bc5cdr", "biored"):
        for row in _rows(data / folder / "docs.jsonl"):
            documents.setdefault(row["pmid"], _document(row["pmid"], row["title"], row["abstract"]))
    questions = [
        GoldQuestion(
            id=row["id"],
            question=row["question"],
            type="yesno",
            answer=row["answer"],
            gold=tuple(str(pmid) for pmid in row["gold_pmids"]),
        )
        for row in _rows(data / "pubmedqa/questions.jsonl")
    ]
    return RetrievalSet("pubmedqa", list(documents.values()), questions)


def bc5cdr(data: Path) -> RetrievalSet:
    """Two-document questions over 1,500 abstracts (``bc5cdr/``), with the project's own extraction."""
    documents = [_document(r["pmid"], r["title"], r["abstract"]) for r in _rows(data / "bc5cdr/docs.jsonl")]
    questions = [
        GoldQuestion(
            id=row["id"], question=row["question"], answer=row["answer"], gold=tuple(row["gold_pmids"]), hops=2
        )
        for row in _rows(data / "bc5cdr/multihop_intersection.jsonl")
    ]
    return RetrievalSet("bc5cdr", documents, questions)


def bc5cdr_gold(data: Path) -> RetrievalSet:
    """The same with the graph of the gold mentions and chemical-disease relations, by their MeSH names."""
    plain = bc5cdr(data)
    names = {row["id"]: row["name"] for row in _rows(data / "bc5cdr/entities.jsonl")}
    graph = []
    for row in _rows(data / "bc5cdr/docs.jsonl"):
        mentioned = [names[i] for _, _, _, _, ids in row["entities"] for i in ids if i in names]
        facts = [[names[h], "induces", names[t]] for _, h, t in row["relations"] if h in names and t in names]
        graph.append({"document": row["pmid"], "entities": list(dict.fromkeys(mentioned)), "triples": facts})
    return RetrievalSet("bc5cdr-gold", plain.documents, plain.questions, graph)


def openie_folder(data: Path, name: str, folder: str) -> RetrievalSet:
    """HippoRAG's form, in ``folder``: ``*_corpus.json`` (title, text), ``questions.jsonl`` with ``gold_idx`` (places
    in the corpus) and, where known, a ``decomposition``, and ``openie.jsonl`` with the entities and triples of each
    place (``idx``).  A document's id is its place: titles repeat."""
    corpus = sorted((data / folder).glob("*_corpus.json"))
    if not corpus:
        raise _missing(data / folder / "*_corpus.json")
    passages = _json(corpus[0])
    documents = [_document(str(place), row["title"], row["text"]) for place, row in enumerate(passages)]
    questions = [
        GoldQuestion(
            id=row["id"],
            question=row["question"],
            answer=row["answer"],
            aliases=tuple(row.get("answer_aliases", ())),
            gold=tuple(str(place) for place in row["gold_idx"]),
            hops=int(row.get("hops", len(row["gold_idx"]))),
            steps=_steps(row.get("decomposition") or []),
        )
        for row in _rows(data / folder / "questions.jsonl")
    ]
    graph = [
        {"document": str(row["idx"]), "entities": row["entities"], "triples": row["triples"]}
        for row in _rows(data / folder / "openie.jsonl")
    ]
    return RetrievalSet(name, documents, questions, graph)


def _steps(decomposition: list[dict[str, Any]]) -> tuple[str, ...]:
    """MuSiQue writes ``#1`` for the first step's answer."""
    filled = []
    for step in decomposition:
        text = str(step["question"])
        for number in range(len(decomposition), 0, -1):
            text = text.replace(f"#{number}", str(decomposition[number - 1]["answer"]))
        filled.append(text.replace(" >> ", " "))
    return tuple(filled)


SETS: dict[str, Callable[[Path], RetrievalSet]] = {
    "musique": lambda data: openie_folder(data, "musique", "hipporag_musique"),
    "bc5cdr-gold": bc5cdr_gold,
    "bc5cdr": bc5cdr,
    "pubmedqa": pubmedqa,
    "hotpotqa": lambda data: openie_folder(data, "hotpotqa", "hipporag_hotpotqa"),
    "2wikimultihopqa": lambda data: openie_folder(data, "2wikimultihopqa", "hipporag_2wikimultihopqa"),
}
DEFAULT = ("musique", "bc5cdr-gold", "bc5cdr", "pubmedqa")


def load(name: str, data: Path) -> RetrievalSet:
    """A set by its name.  Raises BadInput for an unknown name, NotFound where its files are not there."""
    if name not in SETS:
        raise BadInput(f"There is no set {name!r}; the sets are: {', '.join(SETS)}.")
    if not data.is_dir():
        raise NotFound(f"{data}: no such folder. Name the folder of the data sets with --data or HYBRID_IR_DATA.")
    try:
        return SETS[name](data)
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"The files of {name} in {data} are not in their usual form ({error!r}).") from error


def _document(identity: str, title: str, text: str) -> dict[str, str]:
    return {"id": identity, "title": title, "text": text}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise BadInput(f"{path}, line {number}: not valid JSON ({error}).") from error
                yield row
    except FileNotFoundError:
        raise _missing(path) from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{path}: not valid JSON ({error}).") from error


def _missing(path: Path) -> NotFound:
    return NotFound(
        f"{path}: no such file. Put the set's files there, leave the set out with --set, or name another folder "
        "with --data or HYBRID_IR_DATA."
    )


def _write_lines(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")

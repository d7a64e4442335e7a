"""Entities and relations of an extractor against the gold annotations of BioRED and BC5CDR.

    python benchmarks/openie.py --set bc5cdr --split test [--limit N] [--config FILE] [--misses N] [--out FILE]

Without a config the rules are measured; a config's ``build.extractor`` names another, a language
model for one.  The data folder is HYBRID_IR_DATA, or --data.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from pathlib import Path

from machine import describe

from hybrid_ir.corpus.chunker import chunk
from hybrid_ir.evaluation.openie import GoldDocument, Judged, Rename, judge, read_gold
from hybrid_ir.extraction import vocabulary
from hybrid_ir.extraction.load import load
from hybrid_ir.records import Extraction
from hybrid_ir.roles import Extractor
from hybrid_ir.settings import BuildSettings
from hybrid_ir.settings import load as load_settings

BATCH = 50
VOCABULARIES = ("diseases", "drugs", "phenotypes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("HYBRID_IR_DATA", "../shared/data"))
    parser.add_argument("--set", choices=["bc5cdr", "biored"], required=True)
    parser.add_argument("--split", choices=["train", "dev", "test"], default="test")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--config")
    parser.add_argument("--misses", type=int, default=0, help="print so many gold relations without a triple")
    parser.add_argument("--out", help="a JSON Lines file: the extractions of every document")
    given = parser.parse_args()
    build = load_settings(given.config).build if given.config else BuildSettings()
    extractor = load(build.extractor)
    gold = read_gold(Path(given.data) / given.set / "docs.jsonl", given.split)[: given.limit]
    print(f"{given.set} {given.split}, {json.dumps(extractor.fingerprint)}\n{describe()}")
    extractor.mentions(["start"])  # what is loaded at the first call is start-up
    start = time.monotonic()
    found, errors = extract(gold, extractor, build)
    seconds = time.monotonic() - start
    terms = vocabulary.load(VOCABULARIES)
    whole = Judged()
    for document, extractions in zip(gold, found, strict=True):
        whole += judge(document, extractions, terms.name)
    report(whole, errors, seconds)
    for document, extractions in zip(gold, found, strict=True):
        given.misses = show_misses(document, extractions, terms.name, given.misses)
    if given.out:
        rows = [
            {"id": document.id, "extractions": [one.model_dump() for one in extractions]}
            for document, extractions in zip(gold, found, strict=True)
        ]
        Path(given.out).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def extract(
    gold: list[GoldDocument], extractor: Extractor, build: BuildSettings
) -> tuple[list[list[Extraction]], list[str]]:
    """The extractions of each document's chunks, and the reasons of those that failed."""
    chunks = [(row, piece) for row, document in enumerate(gold) for piece in chunk(document.document(), build.chunker)]
    found: list[list[Extraction]] = [[] for _ in gold]
    errors = []
    for first in range(0, len(chunks), BATCH):
        some = chunks[first : first + BATCH]
        for (row, _), result in zip(some, extractor.extract([piece for _, piece in some]), strict=True):
            if isinstance(result, str):
                errors.append(result)
            else:
                found[row].append(result)
    return found, errors


def report(judged: Judged, errors: list[str], seconds: float) -> None:
    documents = max(1, judged.documents)
    print(
        f"{judged.documents} documents in {seconds:.0f} s ({judged.documents / seconds:.1f}/s), "
        f"{judged.names / documents:.1f} names and {judged.triples / documents:.1f} triples a document, "
        f"{len(errors)} chunks failed"
    )
    for reason in errors[:3]:
        print(f"  failed: {reason[:200]}")
    print("\n| | count | share |\n|---|---|---|")

    def row(what: str, count: int, share: float) -> None:
        print(f"| {what} | {count} | {share:.3f} |")

    row("entities of gold", judged.gold_entities.total(), 1)
    row("found (recall)", judged.found.total(), judged.share("found", "gold_entities"))
    row("found in part only", judged.partly.total(), judged.share("partly", "gold_entities"))
    for kind, count in sorted(judged.gold_entities.items()):
        near = judged.partly[kind] / count
        print(f"| of {count} {kind}: found | {judged.found[kind]} | {judged.found[kind] / count:.3f} (+{near:.3f}) |")
    row("names that are gold (precision, at least)", judged.right_names, judged.share("right_names", "names"))
    row("names near to gold", judged.near_names, judged.share("near_names", "names"))
    row("relations of gold", judged.gold_relations, 1)
    row("with a triple (recall)", judged.linked, judged.share("linked", "gold_relations"))
    row(
        "with a triple of longer or shorter names",
        judged.linked_nearly,
        judged.share("linked_nearly", "gold_relations"),
    )
    row("triples between two gold entities", judged.judged_triples, judged.share("judged_triples", "triples"))
    row("of these gold relations (precision)", judged.right_triples, judged.share("right_triples", "judged_triples"))
    for kind, count in Counter(kind for _, kind in judged.missed).most_common():
        row(f"missed: {kind}", count, count / max(1, judged.gold_relations))


def show_misses(document: GoldDocument, extractions: list[Extraction], rename: Rename, left: int) -> int:
    """Print gold relations without a triple, with those that there are; returns how many more to print."""
    missed = judge(document, extractions, rename).missed[:left]
    names = {entity.id: max(entity.names, key=len) for entity in document.entities}
    for pair, kind in missed:
        print(f"{document.id}: {' - '.join(names[end] for end in sorted(pair))}: {kind}")
    if missed:
        print("   has", [(t.head, t.relation, t.tail) for one in extractions for t in one.triples])
    return left - len(missed)


if __name__ == "__main__":
    main()

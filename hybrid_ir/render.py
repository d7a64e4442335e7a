"""Answers and evidence as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import shorten, wrap

from hybrid_ir.reasoning.citations import WEAK_SUPPORT
from hybrid_ir.records import Answer, Chunk, Evidence, PathName, Retrieval, Statement, SubAnswer
from hybrid_ir.retrieval.comparison import Comparison
from hybrid_ir.retrieval.explanation import Explanation

WIDTH = 100


def answer(found: Answer) -> str:
    """The answer with its statements, rounds, evidence and citations."""
    return "\n".join(_answer(found))


def comparison(found: Comparison) -> str:
    """A table of chunks with their rank in the fused list and in each path's own, then the texts of the fused."""
    return "\n".join(_comparison(found))


def explanation(found: Explanation) -> str:
    """What each path saw in one chunk."""
    return "\n".join(_explanation(found))


def _comparison(found: Comparison) -> Iterator[str]:
    yield from _links(found.retrieval, "")
    if unlinked := [link.mention for link in found.retrieval.links if not link.entity]:
        yield _cut(f"not in the graph: {', '.join(unlinked)}")
    if not found.chunks:
        yield "Nothing was found."
    else:
        looked_at = [path for path in found.shown if path not in found.fused]
        beside = f"; {_and(looked_at)} beside it" if looked_at else ""
        yield f"fused: {_and(found.fused)}{beside}.  Columns: the rank in each list, - where it is not in it."
        yield "".join(f"{name:>7}" for name in ("fused", *found.shown)) + "  chunk"
        for row in found.chunks:
            ranks = (row.paths[path].rank if path in row.paths else "-" for path in found.shown)
            columns = "".join(f"{value:>7}" for value in (row.place or "-", *ranks))
            yield _cut(f"{columns}  {_where(row.chunk)}")
        yield ""
        for place, item in enumerate(found.retrieval.evidence, start=1):
            yield _cut(f"{place:>3}. {_where(item.chunk)}")
            yield from (f"     {line}" for line in wrap(shorten(item.chunk.text, 280, placeholder=" …"), WIDTH - 5))
    if found.retrieval.degraded:
        yield f"degraded: the {' and the '.join(found.retrieval.degraded)} path did not serve"


def _explanation(found: Explanation) -> Iterator[str]:
    yield _cut(f"Why {_where(found.chunk)}")
    fused = found.fused
    place = f"place {fused.place}" if fused.place else "not among the places shown"
    parts = " + ".join(f"{value:.4f} ({path})" for path, value in fused.terms.items())
    yield f"fused: {place}, score {fused.score:.4f}{' = ' + parts if len(fused.terms) > 1 else ''}"

    def ranked(rank: int | None) -> str:
        return f"rank {rank}" if rank else f"not among its first {found.list_length}"

    if found.graph is not None:
        graph = found.graph
        yield f"graph: {ranked(graph.rank)}" + (f", score {graph.score:.3g}" if graph.score is not None else "")
        links = [
            f"{link.mention} -> {link.entity} ({link.similarity:.2f}{', ' + link.match if link.match else ''})"
            if link.entity
            else f"{link.mention} -> nothing (nearest {link.similarity:.2f})"
            for link in graph.links
        ]
        yield from _listed("links", links)
        yield from _listed("starts from", [f"{seed.entity} {seed.weight:.3g}" for seed in graph.seeds])
        mentions = [f"{mention.entity} {mention.score:.3g} (no. {mention.place})" for mention in graph.mentions]
        yield from _listed("mentions of the chunk, by score", mentions or ["none with a score"])
        for chain in graph.chains:
            stated = dict.fromkeys(step.chunk_id for step in chain.triples if step.chunk_id)
            where = f"  [{', '.join(stated)}]" if stated else ""
            yield from wrap(f"chain: {chain}{where}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    if found.dense is not None:
        yield f"dense: {ranked(found.dense.rank)}, similarity {found.dense.similarity:.3f}"
    if found.sparse is not None:
        sparse = found.sparse
        yield f"sparse: {ranked(sparse.rank)}, score {sparse.score:.3f}"
        for part in sparse.terms:
            holds = f"{part.count} here, in {part.chunks} chunks, idf {part.idf:.2f}"
            yield _cut(f"  {part.score:>7.3f}  {part.term:<24} {holds}")
        if not sparse.terms:
            yield "  no term of the query is in the index"


def _listed(name: str, items: Sequence[str]) -> Iterator[str]:
    yield from wrap(f"{name}: {', '.join(items)}", WIDTH, initial_indent="  ", subsequent_indent="    ")


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 2]} …"


def _answer(found: Answer) -> Iterator[str]:
    yield f"Question: {found.question.text}"
    for letter, text in sorted(found.question.options.items()):
        yield f"  {letter}. {text}"
    for number, round_ in enumerate(found.rounds, start=1):
        yield ""
        yield f"Round {number}" + (f" - missing: {round_.missing}" if round_.missing else "")
        for sub_answer in round_.sub_answers:
            yield from _sub_answer(sub_answer)
    yield ""
    guess = " (picked from the quotes, which may say more than it)" if _is_guess(found) else ""
    yield f"Answer: {_headline(found)}{guess}"
    numbers = {chunk.id: number for number, chunk in enumerate(found.citations, start=1)}
    for statement in found.statements:
        yield from _statement(statement, numbers)
    if found.citations:
        yield ""
        yield "Citations"
        for chunk in found.citations:
            yield f"  [{numbers[chunk.id]}] {_where(chunk)} - {chunk.source}{_locator(chunk)}"
    yield ""
    yield (
        f"reasoner: {found.reasoner}; build {found.build_id}; {len(found.rounds)} rounds "
        f"(stopped: {found.stopped}); {found.seconds:.2f} s"
    )
    if found.stopped == "deadline":
        there = "this is what was there by then" if found.rounds else "nothing was retrieved by then"
        yield f"out of time: {there}; --deadline-s, or loop.deadline_s in the settings, gives more"
    if found.unread_replies:
        yield f"unread: {found.unread_replies} of the model's replies could not be read; --trace FILE keeps them"
    if found.dropped_citations:
        yield f"dropped: {found.dropped_citations} citations of passages that were not in the evidence"
    if found.degraded:
        yield f"degraded: the {' and the '.join(found.degraded)} path did not serve everywhere"


def _is_guess(found: Answer) -> bool:
    """The extractive reasoner's short answer to an open question is one span of its quotes."""
    return found.reasoner == "extractive" and not found.question.options and bool(found.short)


def _headline(found: Answer) -> str:
    if found.choice is not None:
        support = "" if found.enough_evidence else " (weakly supported)"
        return f"{found.choice}. {found.question.options.get(found.choice, found.short)}{support}"
    return found.short or ("none in time" if found.stopped == "deadline" else "not enough evidence")


def _sub_answer(found: SubAnswer) -> Iterator[str]:
    reason = f"  ({found.sub_question.reason})" if found.sub_question.reason else ""
    yield f"  ? {found.sub_question.text}{reason}"
    yield from _links(found.retrieval, "    ")
    for place, item in enumerate(found.retrieval.evidence, start=1):
        yield f"    {place}. {_where(item.chunk)}  [{_paths(item)}]"
    for statement in found.statements:
        for i, line in enumerate(wrap(statement.text, WIDTH - 6)):
            yield f"    {'>' if i == 0 else ' '} {line}"
    if not found.statements:
        yield "    > not enough evidence"


def _links(found: Retrieval, indent: str) -> Iterator[str]:
    links = [f"{link.mention} -> {link.entity} ({link.similarity:.2f})" for link in found.links if link.entity]
    if links:
        yield f"{indent}linked: {', '.join(links)}"


def _statement(statement: Statement, numbers: dict[str, int]) -> Iterator[str]:
    marks = "".join(f"[{numbers[chunk_id]}]" for chunk_id in statement.citations if chunk_id in numbers)
    weak = " (weakly supported)" if statement.support is not None and statement.support < WEAK_SUPPORT else ""
    yield from (f"  {line}" for line in wrap(f"{statement.text} {marks}{weak}", WIDTH - 2))


def _paths(item: Evidence) -> str:
    order: list[PathName] = sorted(item.paths)
    return ", ".join(f"{path} {item.paths[path].rank}" for path in order)


def _where(chunk: Chunk) -> str:
    section = f" > {chunk.section}" if chunk.section else ""
    return f"{chunk.id} {shorten(chunk.title + section, 70, placeholder=' …')}"


def _locator(chunk: Chunk) -> str:
    place = f", {chunk.locator}" if chunk.locator else ""
    return f"{place}, characters {chunk.start}-{chunk.end}"

"""Answers and evidence as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten, wrap

from hybrid_ir.records import Answer, Chunk, Evidence, PathName, Retrieval, Statement, SubAnswer

WIDTH = 100


def answer(found: Answer) -> str:
    """The answer with its statements, rounds, evidence and citations."""
    return "\n".join(_answer(found))


def retrieval(found: Retrieval) -> str:
    """A ranked list, with each chunk's rank on each path."""
    lines = list(_links(found, ""))
    for place, item in enumerate(found.evidence, start=1):
        lines.append(f"{place:>3}. {_where(item.chunk)}  [{_paths(item)}]  {item.score:.4f}")
        lines += [f"     {line}" for line in wrap(shorten(item.chunk.text, 300, placeholder=" …"), WIDTH - 5)]
    if not found.evidence:
        lines.append("Nothing was found.")
    if found.degraded:
        lines.append(f"degraded: the {' and the '.join(found.degraded)} path did not serve")
    return "\n".join(lines)


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
    if found.degraded:
        yield f"degraded: the {' and the '.join(found.degraded)} path did not serve everywhere"


def _is_guess(found: Answer) -> bool:
    """The extractive reasoner's short answer to an open question is one span of its quotes."""
    return found.reasoner == "extractive" and not found.question.options and bool(found.short)


def _headline(found: Answer) -> str:
    if found.choice is not None:
        support = "" if found.enough_evidence else " (weakly supported)"
        return f"{found.choice}. {found.question.options.get(found.choice, found.short)}{support}"
    return found.short or "not enough evidence"


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
    yield from (f"  {line}" for line in wrap(f"{statement.text} {marks}", WIDTH - 2))


def _paths(item: Evidence) -> str:
    order: list[PathName] = sorted(item.paths)
    return ", ".join(f"{path} {item.paths[path].rank}" for path in order)


def _where(chunk: Chunk) -> str:
    section = f" > {chunk.section}" if chunk.section else ""
    return f"{chunk.id} {shorten(chunk.title + section, 70, placeholder=' …')}"


def _locator(chunk: Chunk) -> str:
    place = f", {chunk.locator}" if chunk.locator else ""
    return f"{place}, characters {chunk.start}-{chunk.end}"

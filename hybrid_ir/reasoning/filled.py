"""A prompt filled for one call: question, passages and history in blocks that their writers cannot leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid_ir.llm.records import Message
from hybrid_ir.reasoning.fence import Fence
from hybrid_ir.reasoning.prompt_files import PromptFile
from hybrid_ir.reasoning.windows import Pair
from hybrid_ir.records import Evidence, Question

NOT_FOUND = "nothing was found in the documents"


def labels_of(evidence: Sequence[Evidence]) -> list[str]:
    """``E1``, ``E2``, ...: what statements cite."""
    return [f"E{number}" for number in range(1, len(evidence) + 1)]


def filled(
    file: PromptFile, values: Mapping[str, str], evidence: Sequence[Evidence], pairs: Sequence[Pair], again: str
) -> tuple[Message, ...]:
    """The messages; whatever others wrote stands in blocks of one fence."""
    passages = [
        (label, f"{_heading(item)}\n{item.chunk.text}")
        for label, item in zip(labels_of(evidence), evidence, strict=True)
    ]
    names = {item.chunk.id: label for label, item in zip(labels_of(evidence), evidence, strict=True)}
    history = "\n\n".join(_told(pair, names) for pair in pairs)
    others = {name: text for name, text in values.items() if name in ("question", "sub_question")}
    fence = Fence([*others.values(), history, *(text for _, text in passages)])
    blocks = {name: fence.block(name.replace("_", "-"), text) for name, text in others.items()}
    blocks |= {
        "fence": fence.code,
        "passages": fence.passages(passages),
        "history": fence.block("found so far", history) if history else "",
    }
    system, user = file.fill({**values, **blocks})
    return system, Message(role="user", content=user.content + again)


def told_question(question: Question) -> str:
    """With its options."""
    options = "\n".join(f"{letter}. {' '.join(text.split())}" for letter, text in question.options.items())
    return f"{question.text.strip()}\n\nOptions:\n{options}" if options else question.text.strip()


def _heading(item: Evidence) -> str:
    section = f" > {item.chunk.section}" if item.chunk.section else ""
    return " ".join(f"{item.chunk.title}{section}".split())


def _told(pair: Pair, labels: Mapping[str, str]) -> str:
    """A sub-question and what was found; passages that are in the prompt by their labels."""
    lines = [f"Q: {' '.join(pair.question.split())}"]
    for text, citations in pair.statements:
        known = [labels[chunk_id] for chunk_id in citations if chunk_id in labels]
        lines.append(f"- {' '.join(text.split())}" + (f" [{', '.join(known)}]" if known else ""))
    if not pair.statements:
        lines.append("- (answered)" if pair.shortened else f"- {NOT_FOUND}")
    return "\n".join(lines)

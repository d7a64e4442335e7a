"""Names that a text explains in brackets: "iodide transport defect (ITD)", "vitamin B12 (cobalamin)"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hybrid_ir.extraction.entities import Entities
from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.parse import Doc
from hybrid_ir.extraction.phrases import phrase_name
from hybrid_ir.extraction.vocabulary import Vocabulary

_SHORT = re.compile(r"[A-Za-z0-9α-ω][\w\-/+*]{1,11}")
ALIAS = "is also called"


def find_aliases(doc: Doc, entities: Entities, vocabulary: Vocabulary) -> Iterator[tuple[str, str, str]]:
    """(long, ``is also called``, short) for abbreviations, (example, ``is a``, class) after a plural."""
    for bracket in re.finditer(r"\(([^()]{2,60})\)", doc.text):
        inside = re.split(r"[;,]", bracket.group(1))[0].strip()
        before = doc.text[: bracket.start()].rstrip()
        if _SHORT.fullmatch(inside) and sum(c.isupper() for c in inside) >= 2:
            long = long_form(inside, before)
            if long:
                words = doc.char_span(len(before) - len(long), len(before), alignment_mode="expand")
                short = canonical(inside)
                name = vocabulary.name(long) or (canonical(long) if words is None else phrase_name(words))
                if name and short and name != short:
                    span = doc.char_span(len(before) - len(long), bracket.end(), alignment_mode="expand")
                    if span is not None:
                        entities.add(span.start, span.end, name)
                        entities.add(span.start + 1, span.end, short)
                    yield name, ALIAS, short
                    continue
        inner = vocabulary.name(inside)
        host = doc.char_span(max(0, len(before) - 1), len(before), alignment_mode="expand")
        if inner and host is not None and len(host):
            head = entities.heads.get(host.root.i)
            if head and head != inner:
                plural = host.root.tag_ in ("NNS", "NNPS")
                yield (inner, "is a", head) if plural else (head, ALIAS, inner)


def long_form(short: str, before: str) -> str:
    """The words before a bracket that its abbreviation stands for, or ``""``.

    Schwartz & Hearst, A simple algorithm for identifying abbreviation definitions in biomedical
    text (2003): the letters of the short form are found from right to left in at most
    min(|short| + 5, 2 |short|) words, the first of them at the start of a word.
    """
    most = min(len(short) + 5, len(short) * 2)
    words = re.findall(r"\S+", re.split(r"[.;:()]\s", before)[-1])[-most:]
    text = " ".join(words)
    at = len(text) - 1
    for position in range(len(short) - 1, -1, -1):
        letter = short[position].lower()
        if not letter.isalnum():
            continue
        while at >= 0 and (text[at].lower() != letter or (position == 0 and at > 0 and text[at - 1].isalnum())):
            at -= 1
        if at < 0:
            return ""
        at -= 1
    long = text[at + 1 :]
    return long if len(long) > len(short) and short not in long.split() and before.endswith(long) else ""

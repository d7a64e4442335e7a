"""XML without entities, DTD or network, and the text of its elements as a person reads it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterator
from typing import BinaryIO

from lxml import etree

Element = etree._Element

_BLANKS = re.compile(r"\s{2,}|[^\S ]")
"""Blanks that are not one plain blank already: text without any costs no copying."""
_NUMBER = re.compile(r"[+−–-]?\d+(?:[.,]\d+)?")

_BLOCKS = frozenset(
    """
    p title list list-item def-list disp-formula disp-formula-group disp-quote boxed-text verse-group
    verse-line statement speech attrib sec label caption
    """.split()
)
_SILENT = frozenset(
    "graphic inline-graphic media object-id fn table-wrap-foot processing-instruction permissions".split()
)
_MARKERS = frozenset({"bibr", "fn", "table-fn"})
_MARK = re.compile(r"[a-z*†‡§¶#]{1,2}")
"""A footnote's own mark at its beginning."""
_LETTER = re.compile(r"[a-h]")
_MARKED = re.compile(r"(?:\d|[^\W\d_A-Z]{3})\Z")
"""What a raised letter is a footnote mark to, not an index: ``Source`` and ``12.3``, not ``x`` or ``CD``."""
_NOTHING: frozenset[str] = frozenset()


def parse_elements(stream: BinaryIO, tags: Collection[str]) -> Iterator[Element]:
    """The elements named ``tags``, in any namespace, each as soon as it is complete.

    Hand every element to ``release`` once it is used up: a file of any size then takes the memory
    of one record.  No DTD is loaded, no entity is expanded, nothing is fetched.

    Raises:
        etree.XMLSyntaxError: at the first byte that is no XML.
    """
    events = etree.iterparse(
        stream,
        events=("end",),
        tag=[f"{{*}}{tag}" for tag in tags],
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,
    )
    for _, element in events:
        yield element


def release(element: Element) -> None:
    """Free an element and what stands before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def name(element: Element) -> str:
    """The tag without its namespace; empty for an entity."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def children(element: Element, *names: str) -> Iterator[Element]:
    """Child elements by name, or all of them."""
    return (child for child in element if isinstance(child.tag, str) and (not names or name(child) in names))


def child(element: Element | None, *path: str) -> Element | None:
    """The first element at ``path`` below ``element``."""
    for step in path:
        element = None if element is None else next(children(element, step), None)
    return element


def descendants(element: Element, *names: str) -> Iterator[Element]:
    """All elements of these names below ``element``, in document order."""
    return element.iterdescendants(*[f"{{*}}{tag}" for tag in names])


def flatten(element: Element | None, skip: Collection[str] = _NOTHING) -> str:
    """The text of an element on one line a block (paragraph, list item), inline tags dissolved.

    ``CO<sub>2</sub>`` is ``CO2``; ``10<sup>6</sup>`` is ``10^6``, since 106 is another number; a
    raised reference mark becomes `` [12]``, so that it is not glued to the word.  Elements
    named in ``skip`` are left out.
    """
    if element is None:
        return ""
    out: list[str] = []
    _inside(element, skip, out)
    lines = "".join(out).split("\n")
    return "\n".join(line for raw in lines if (line := _BLANKS.sub(" ", raw).strip()))


def _last_character(out: list[str]) -> str:
    return next((part[-1] for part in reversed(out) if part), "")


def _inside(element: Element, skip: Collection[str], out: list[str]) -> None:
    """Append the text within ``element``; a line break in ``out`` always stands for a block's edge."""
    raw = element.text or ""
    out.append(_BLANKS.sub(" ", raw))
    for part in element:
        tag = name(part)
        if not tag:
            out.append(html.unescape(part.text or ""))  # &beta; of a DTD that is not loaded
        elif tag not in skip:
            if tag in ("sub", "sup") and "\n" in raw[len(raw.rstrip()) :]:
                out[-1] = out[-1].rstrip()  # a line break before an index comes from pretty-printing
            _WRITERS.get(tag, _write_default)(part, skip, out)
        raw = part.tail or ""
        out.append(_BLANKS.sub(" ", raw))


def _write_default(element: Element, skip: Collection[str], out: list[str]) -> None:
    tag = name(element)
    if tag in _SILENT:
        return
    if tag in _BLOCKS:
        out.append("\n")
    _inside(element, skip, out)
    if tag in _BLOCKS:
        out.append("\n")


def _write_break(element: Element, skip: Collection[str], out: list[str]) -> None:
    out.append(" ")


def _write_definition(element: Element, skip: Collection[str], out: list[str]) -> None:
    term, meaning = (flatten(child(element, part), skip).replace("\n", " ") for part in ("term", "def"))
    out.append("\n" + ": ".join(part for part in (term.rstrip(" :"), meaning) if part) + "\n")


def _write_raised(element: Element, skip: Collection[str], out: list[str]) -> None:
    text = flatten(element, skip).replace("\n", " ")
    before = "".join(out[-4:])
    if any(part.get("ref-type") in _MARKERS for part in descendants(element, "xref")) or (
        name(element) == "sup" and _LETTER.fullmatch(text) and _MARKED.search(before)
    ):
        _write_marker(text, out)
    elif before[-1:] in ("", "\n") and _MARK.fullmatch(text):
        out.append(text + " ")
    else:
        power = name(element) == "sup" and before[-1:].isdigit() and _NUMBER.fullmatch(text)
        out.append(f"^{text}" if power else text)


def _write_reference(element: Element, skip: Collection[str], out: list[str]) -> None:
    if element.get("ref-type") in _MARKERS and _last_character(out).isalnum():
        _write_marker(flatten(element, skip).replace("\n", " "), out)
    else:
        _inside(element, skip, out)


def _write_marker(text: str, out: list[str]) -> None:
    bare = text.strip("[]() ,")
    if bare:
        blank = "" if _last_character(out) in (" ", "\n", "") else " "
        out.append(f"{blank}[{bare}]")


def _write_alternatives(element: Element, skip: Collection[str], out: list[str]) -> None:
    options = list(children(element))
    chosen = next((option for option in options if name(option) == "math"), None)
    if chosen is None:
        chosen = next((option for option in options if name(option) not in _SILENT), None)
    if chosen is not None:
        _WRITERS.get(name(chosen), _write_default)(chosen, skip, out)


def _write_math(element: Element, skip: Collection[str], out: list[str]) -> None:
    out.append(_math(element))


def _write_tex(element: Element, skip: Collection[str], out: list[str]) -> None:
    if any(name(sibling) == "math" for sibling in element.itersiblings()):
        return
    tex = _plain(element)
    body = tex.partition(r"\begin{document}")[2].partition(r"\end{document}")[0] or tex
    out.append(body.strip(" $"))


def _plain(element: Element) -> str:
    return _BLANKS.sub(" ", "".join(map(str, element.itertext("*"))))


def _math(element: Element) -> str:
    """A MathML formula on one line: ``x^2``, ``a_i``, ``(a+b)/(c)``, ``√(x)``."""
    tag = name(element)
    if tag in ("annotation", "annotation-xml"):
        return ""
    parts = [_math(part) for part in children(element)]
    if tag in ("msub", "munder") and len(parts) == 2:
        return f"{parts[0]}_{parts[1]}"
    if tag == "msup" and len(parts) == 2:
        return f"{parts[0]}^{parts[1]}"
    if tag == "mover" and len(parts) == 2:
        return parts[0] + {".": "\u0307", "˙": "\u0307", "¯": "\u0304", "^": "\u0302"}.get(parts[1], f"^{parts[1]}")
    if tag in ("msubsup", "munderover") and len(parts) == 3:
        return f"{parts[0]}_{parts[1]}^{parts[2]}"
    if tag == "mfrac" and len(parts) == 2:
        return f"({parts[0]})/({parts[1]})"
    if tag == "msqrt":
        return f"√({''.join(parts)})"
    if parts:
        return (" ; " if tag == "mtable" else " " if tag == "mtr" else "").join(parts)
    return _plain(element) if tag != "mspace" else " "


_WRITERS: dict[str, Callable[[Element, Collection[str], list[str]], None]] = {
    "sub": _write_raised,
    "sup": _write_raised,
    "inf": _write_raised,
    "def-item": _write_definition,
    "xref": _write_reference,
    "break": _write_break,
    "alternatives": _write_alternatives,
    "math": _write_math,
    "tex-math": _write_tex,
}

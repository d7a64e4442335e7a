"""Medical vocabularies as one table of terms (their lists: :mod:`hybrid_ir.extraction.term_lists`).

A term is found whatever its hyphens, case and number.  What a synonym is called in the graph is
decided with care: MeSH lists narrower things as entry terms of a heading (MODY under type 2
diabetes, estrogen replacement therapy under estradiol), so an entry term keeps its own name
unless it is the heading in other words of the same kind:
- a one-word name of a DrugBank substance (paracetamol, Tylenol), or the substance with its salt;
- an exact synonym of the HPO that belongs to one term only (heart attack).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.term_lists import PACKAGES, disease_terms, drug_terms, phenotype_terms
from hybrid_ir.extraction.words import NO_TERMS

_TOKEN = re.compile(r"\w+|[^\w\s]")
_MOST_TOKENS = 8


class Term(NamedTuple):
    """A term at ``text[start:end]``; ``name`` as it stands in the graph."""

    start: int
    end: int
    name: str


class Vocabulary:
    """Terms by key; ``""`` as a name means: called as the text calls it."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._longest: dict[str, int] = {}
        for key in names:
            first, length = key.split(" ", 1)[0], key.count(" ") + 1
            if length > self._longest.get(first, 0):
                self._longest[first] = length

    def __len__(self) -> int:
        return len(self._names)

    def find(self, text: str) -> list[Term]:
        """Longest matches from left to right, without overlap; offsets are those of ``text``."""
        found: list[Term] = []
        written = list(tokens(text))
        at = 0
        while at < len(written):
            term, step = self._match(text, written, at)
            if term is not None:
                found.append(term)
            at += step
        return found

    def name(self, text: str) -> str | None:
        """The name of a text that is a term from end to end."""
        name = self._names.get(key_of(text))
        return name if name is None or name else _own_name(text)

    def _match(self, text: str, written: Sequence[tuple[str, int, int]], at: int) -> tuple[Term | None, int]:
        word, start, _ = written[at]
        longest = self._longest.get(word, self._longest.get(singular(word), 0))
        for length in range(min(longest, len(written) - at), 0, -1):
            words = [token[0] for token in written[at : at + length]]
            words[-1] = singular(words[-1])
            name = self._names.get(" ".join(words))
            if name is not None:
                end = written[at + length - 1][2]
                return Term(start, end, name or _own_name(text[start:end])), length
        return None, 1


def load(vocabularies: Sequence[str]) -> Vocabulary:
    """Read the vocabularies from the installed packages (about two seconds)."""
    check(vocabularies)
    names: dict[str, str] = {}
    # The later one decides a synonym's name: the HPO's synonyms are curated as exact.
    readers = {"diseases": _diseases, "drugs": _drugs, "phenotypes": _phenotypes}
    for vocabulary, read in readers.items():
        if vocabulary in vocabularies:
            for key, name in read():
                if is_term(key) and (name or key not in names):
                    names[key] = name
    return Vocabulary(names)


def check(vocabularies: Sequence[str]) -> None:
    """Raises BadInput where a name is none of a vocabulary."""
    for vocabulary in vocabularies:
        if vocabulary not in PACKAGES:
            raise BadInput(
                f"build.extractor.vocabularies: unknown name {vocabulary!r}; choose from {', '.join(PACKAGES)}."
            )


def key_of(text: str) -> str:
    """The form under which a term is looked up: small letters, no hyphens, last word in the singular."""
    words = [word for word, _, _ in tokens(text)]
    if words:
        words[-1] = singular(words[-1])
    return " ".join(words)


def tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """(word in small letters, start, end) of the words and signs that tell names apart."""
    possessive = False
    for match in _TOKEN.finditer(text):
        word = match.group()
        if word in "-‐‑–'’":
            possessive = word in "'’"
            continue
        if possessive and word in ("s", "S"):
            possessive = False
            continue
        possessive = False
        yield word.lower().replace("µ", "μ"), match.start(), match.end()


def _own_name(text: str) -> str:
    return singular_name(canonical(text))


def singular_name(name: str) -> str:
    """A name with its last word in the singular."""
    head, _, last = name.rpartition(" ")
    return f"{head} {singular(last)}" if head else singular(last)


def is_term(key: str) -> bool:
    words = key.split(" ")
    if not 0 < len(words) <= _MOST_TOKENS or "," in words:
        return False
    if len(words) > 1:
        return not all(word in NO_TERMS or len(word) < 2 for word in words)
    return len(key) > 3 and not key.isdigit() and key not in NO_TERMS


# --- readers: (key, name) of each term, the name empty where a term keeps its own -------------


def _diseases() -> Iterator[tuple[str, str]]:
    for variant, _ in disease_terms():
        yield key_of(variant), ""


def _drugs() -> Iterator[tuple[str, str]]:
    for variant, substance, name in drug_terms():
        yield key_of(variant), _tidy(name) if name and variant != substance else ""


def _tidy(name: str) -> str:
    """DrugBank's ``Vitamin B 12`` as everybody writes it."""
    return singular_name(canonical(re.sub(r"(?<=[Vv]itamin )([A-Z]) (\d+)\b", r"\1\2", name)))


def _phenotypes() -> Iterator[tuple[str, str]]:
    terms: dict[str, set[str]] = {}
    for term in phenotype_terms():
        name = singular_name(canonical(term.name))
        terms.setdefault(key_of(term.name), set()).add(name)
        for synonym, everyday in term.synonyms:
            # One everyday word has many meanings ("hostility" is not anger): it keeps its own name.
            own = "" if everyday and " " not in synonym and key_of(synonym) != key_of(term.name) else name
            terms.setdefault(key_of(synonym), set()).add(own)
    for key, names in terms.items():
        name = next(iter(names)) if len(names) == 1 else ""
        # "heart disease" is a synonym of "Abnormality of the cardiovascular system": wider than what was said.
        yield key, "" if name.startswith("abnormal") else name

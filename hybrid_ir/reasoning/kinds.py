"""What kind of thing a name stands for: disorder, substance, enzyme ...; and what kind a question asks for.

A name shows its kind by a vocabulary that lists it, by its ending (``-itis``, ``-ase``, ``-mab``)
or by its own head (``Fanconi syndrome``).  Without installed vocabularies the last two remain.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction import vocabulary
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.words import GENERIC

_HEADS: dict[str, frozenset[str]] = {
    "disorder": frozenset(
        """disease disorder syndrome side-effect complication condition infection illness reaction toxicity
        symptom sign tumour tumor cancer carcinoma lymphoma anaemia anemia deficiency disturbance abnormality injury
        failure defect weakness paralysis neuropathy event hypersensitivity intoxication poisoning finding""".split()
    ),
    "substance": frozenset(
        """drug medication medicine antibiotic antidepressant anticoagulant antiarrhythmic antidote agent steroid
        statin vitamin dye chemical compound substance metabolite inhibitor agonist antagonist blocker beta-blocker
        β-blocker diuretic analogue glycoside hormone toxin opioid anaesthetic anesthetic antiviral antiepileptic
        vaccine electrolyte amine""".split()
    ),
    "enzyme": frozenset(["enzyme"]),
    "antibody": frozenset(["antibody"]),
    "organ": frozenset(["organ", "tissue", "gland"]),
}
"""The nouns by which a question asks for each kind."""
_HARM = re.compile(r"\b(?:adverse|side|toxic|unwanted|undesirable)\s+(?:effect|event|reaction)s?\b", re.IGNORECASE)
"""An effect alone may be anything."""
_ENDINGS: dict[str, re.Pattern[str]] = {
    "disorder": re.compile(
        r"(?:itis|[oi]osis|osis|aemia|emia|pathy|algia|oma|penia|plegia|paresis|trophy|uria|rrhoea|rrhea|rrhage|lepsy|"
        r"rrhythmia|cardia|tension|dystonia|kinesia|kinesias|onism|sclerosis|spasm|ism|phobia|toxicity|philia|ache|"
        r"infarction|failure|seizures?|edema|oedema|syndrome|disease|disorder|delirium|psychosis|thrombosis|"
        r"infection|haemolysis|hemolysis|fever|palsy|cancer|rabies|malaria)$"
    ),
    "substance": re.compile(
        r"(?:cillin|mycin|micin|floxacin|azole|vir|olol|pril|sartan|statin|tidine|prazole|gliptin|gliflozin|formin|"
        r"parin|xaban|gatran|mab|nib|caine|azepam|barbital|triptan|dipine|thiazide|oxetine|triptyline|quine|cycline|"
        r"sone|solone|amine|idine|zine|ine|ide|ate|one|ol|in)$"
    ),
    "enzyme": re.compile(r"(?:[a-z]{2,}ase(?: [a-z0-9-]{1,4})?$|^cyp\d\w*$)"),
    "antibody": re.compile(r"mab$"),
    "organ": re.compile(r"$^"),
}
"""``-ase`` also ends ``disease``, ``phase``: these are caught below.  Weak endings are only used where no
vocabulary knows the name."""
_NO_ENZYME = re.compile(r"(?:disease|phase|base|case|phrase|increase|decrease|release|lease|purchase)$")
_VOCABULARIES = {"disorder": ("diseases", "phenotypes"), "substance": ("drugs",)}

VAGUE = GENERIC | frozenset(
    """phenomenon profile withdrawal passenger tablet dosing therapy regimen observation exposure administration
    induction complaint manifestation outcome episode evaluation parameter pathway factor variable control animal rat
    mouse dog rabbit human infusion injection discontinuation rechallenge onset recovery survival death literature
    toxicity adverse side effect side-effect complication disturbance abnormality impairment damage injury
    dysfunction deterioration disability hospital clinic physician nurse family home year anesthesia surgery
    operation procedure wound bite cut scratch sensitivity tolerance response""".split()
)
"""Words that answer nothing when they stand alone: every abstract has them."""


def families(noun: str) -> frozenset[str]:
    """The kinds that a noun phrase asks for: ``adverse effect or disease`` -> disorder; empty where unknown."""
    heads = {singular(part.split()[-1]) for part in re.split(r"\s+(?:or|and)\s+", noun.casefold()) if part.split()}
    found = {family for family, nouns in _HEADS.items() if heads & nouns}
    return frozenset(found | {"disorder"} if _HARM.search(noun) else found)


@lru_cache(maxsize=65536)
def kinds_of(name: str) -> frozenset[str]:
    """The kinds that a name shows; empty where nothing is known of it."""
    text = " ".join(name.casefold().split())
    found = {family for family in _VOCABULARIES if _listed(family, text)}
    head = singular(text.split()[-1]) if text else ""
    for family, ending in _ENDINGS.items():
        weak = family == "substance" and (found or " " in text)
        if not weak and ending.search(head if family != "enzyme" else text):
            found.add(family)
    if _NO_ENZYME.search(head):
        found.discard("enzyme")
    if "enzyme" in found or "disorder" in found:
        found.discard("substance")  # the drug vocabulary lists enzymes, and some diseases, among chemicals
    return frozenset(found)


def is_medical(name: str) -> bool:
    """Whether a vocabulary lists it."""
    text = " ".join(name.casefold().split())
    return any(_listed(family, text) for family in _VOCABULARIES)


def is_vague(name: str) -> bool:
    """Whether all its words say nothing of their own."""
    words = [singular(word) for word in re.split(r"[\s-]+", name.casefold()) if word]
    return all(word in VAGUE for word in words)


def _listed(family: str, text: str) -> bool:
    held = _vocabulary(family)
    return held is not None and held.name(text) is not None


@lru_cache(maxsize=len(_VOCABULARIES))
def _vocabulary(family: str) -> vocabulary.Vocabulary | None:
    """About a second, once for each kind; None where its package is not installed."""
    try:
        return vocabulary.load(_VOCABULARIES[family])
    except BadInput:
        return None

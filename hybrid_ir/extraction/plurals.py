"""The singular of common nouns."""

from __future__ import annotations

import re

_SAME = frozenset(
    """aids always ards ascites athletics atlas bias biceps canvas caries christmas diabetes economics
    electronics ethics faeces feces forceps gallows gas genetics gymnastics herpes hives iris kuru lens
    linguistics mathematics means measles mechanics menses mers mumps news obstetrics orthopaedics orthopedics
    paediatrics pancreas paris pediatrics perhaps physics politics pubes rabies rickets sars scabies sepsis series
    shingles species statistics tabes tetanus texas times triceps us usa wales whereas yaws""".split()
)
_IRREGULAR = {
    "bacilli": "bacillus",
    "bacteria": "bacterium",
    "calories": "calorie",
    "children": "child",
    "cookies": "cookie",
    "criteria": "criterion",
    "emboli": "embolus",
    "feet": "foot",
    "fungi": "fungus",
    "ganglia": "ganglion",
    "gases": "gas",
    "halves": "half",
    "knives": "knife",
    "larvae": "larva",
    "leaves": "leaf",
    "lenses": "lens",
    "lives": "life",
    "men": "man",
    "mice": "mouse",
    "movies": "movie",
    "nuclei": "nucleus",
    "phenomena": "phenomenon",
    "prairies": "prairie",
    "teeth": "tooth",
    "thrombi": "thrombus",
    "vertebrae": "vertebra",
    "wolves": "wolf",
    "women": "woman",
    "zombies": "zombie",
}
# metastases, thromboses, diagnoses, fibroses, necroses, stenoses, psychoses, hypotheses, crises,
# analyses; but kinases, doses, responses and diseases only lose their s.
_SIS = re.compile(r"(?:sta|mbo|gno|bro|cro|pto|phro|rrho|eno|euro|cho|culo|lero|the|cri|[aeio]ly|aly)ses$")
_FIELDS = ("omics", "kinetics", "dynamics")  # one field of study, not several things


def singular(word: str) -> str:
    """The singular of a common noun in lower case; a word that only looks plural stays (``rabies``).

    A plain function of the word, so that a passage and a question meet under one name whatever
    a tagger thought of either.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.endswith("s") or not (word.isalpha() and word.islower()) or word in _SAME:
        return word
    if word.endswith(("ss", "us", "is")) or word.endswith(_FIELDS):
        return word
    if word.endswith("itides"):
        return word[:-3] + "s"
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if _SIS.search(word):
        return word[:-2] + "is"
    if word.endswith(("sses", "shes", "ches", "xes", "zes", "ruses", "nuses", "tuses")):
        return word[:-2]
    return word[:-1]

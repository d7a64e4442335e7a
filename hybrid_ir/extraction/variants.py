"""Spellings of one name: what a question writes and what a passage wrote meet under one key.

A key folds what means nothing between two writings of a medical name: hyphens, spaces, case,
plurals, accents, Greek letters and their English names, British and American spelling, and Roman
numerals after words such as ``type``.  It keeps what does: numbers, signs (``CD4+``), the exponent
in ``10⁵``.  Two names of one key may still differ by case alone (:func:`same_case`), and two names
that vectors take for neighbours may be siblings or contraries (:func:`may_be_same`).
"""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from functools import lru_cache

from hybrid_ir.extraction.plurals import singular

_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi "
    "psi omega"
).split()
_GREEK = str.maketrans({**dict(zip("αβγδεζηθικλμνξοπρστυφχψω", _GREEK_NAMES, strict=True)), "ς": "sigma"})
_ACCENTED = re.compile(r"([a-z])[\u0300-\u036f]+")
_EXPONENT = re.compile(r"(\d)([⁰¹²³⁴-⁹])")
_ACRONYMS = re.compile(r"\b([A-Z][A-Z0-9]+)s$")  # CDKs, SSRIs
_LAST_WORD = re.compile(r"[^\s-]+$")
_ROMAN = {n: i for i, n in enumerate("i ii iii iv v vi vii viii ix x xi xii xiii xiv".split(), start=1)}
_COUNTED = "types?|grade|stage|class|factor|phase|group|subtype|complex|nerve|angiotensin|collagen"
_NUMERAL = re.compile(rf"\b({_COUNTED})([\s-]+)({'|'.join(_ROMAN)})(?![a-z0-9])")
_BRITISH = re.compile(r"[ao]e(?=[a-z]{3})|(?<=rrh)oe|(?<=pn)oe|(?<=[a-z]{3}o)ur(?=s?\b)|sulph|leuco")
_AMERICAN = {"ae": "e", "oe": "e", "ur": "r", "sulph": "sulf", "leuco": "leuko"}
_PLAIN = re.compile(r"[a-z -]*")
_WITHOUT_JOINS = str.maketrans("", "", " -")
_POSSESSIVE = re.compile(r"['’]s\b")
_SIGN = re.compile(r"(?<=\d)-(?=$|[ /)])")  # CD4-: no hyphen
_JOIN = re.compile(r"""[\s\-_.,:;/\\'"’‘“”()\[\]{}*&#@!?|·•…‐-―]+""")

_TOKEN = re.compile(r"[^\W_]+")
_SYMBOL = re.compile(r"[A-Z]{2,5}s?")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_STEREO = frozenset("dlrsnomp")
"""Letters before a hyphen that say how a molecule is built: (R)-warfarin is warfarin."""
_ALIKE = 0.75
_LONGEST_NAME = 8
"""Words; longer is a sentence, which may hold numbers that its entity has not."""

ENGLISH_SYMBOLS = frozenset("cat was rest set met kit march ace fat cap face impact large max hip can aim ran".split())
"""English words that are something else in capitals, the symbol of a gene or a test: there case tells the two apart."""

_PREFIXES = tuple(
    (one, other)
    for group in ("hyper hypo", "tachy brady", "pre post", "intra extra", "macro micro", "mono di tri tetra")
    for one in group.split()
    for other in group.split()
    if one != other
)
_CONTRARIES = tuple(
    pair.split("/")
    for pair in """acute/chronic systolic/diastolic agonist/antagonist agonist/inhibitor agonist/blocker
    activator/inhibitor inducer/inhibitor upper/lower left/right male/female benign/malignant anterior/posterior
    proximal/distal afferent/efferent retrograde/anterograde positive/negative sensory/motor maternal/paternal
    dominant/recessive congenital/acquired primary/secondary artery/vein arterial/venous increase/decrease""".split()
)


def key(name: str) -> str:
    """The key of a name; ``""`` where nothing is left to compare."""
    name = name.strip()
    if not name.isascii():
        name = unicodedata.normalize("NFKC", _EXPONENT.sub(r"\1^\2", name))
    text = _ACRONYMS.sub(r"\1", name)
    last = _LAST_WORD.search(text)
    if last:
        word = last.group()
        text = text[: last.start()] + singular(word.lower() if word.istitle() else word)
    text = _american(text.lower())
    if _PLAIN.fullmatch(text):
        return _arabic(text).translate(_WITHOUT_JOINS)
    if not text.isascii():
        text = _ACCENTED.sub(r"\1", unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", text).translate(_GREEK)
    text = _SIGN.sub("−", _POSSESSIVE.sub("", _arabic(text)))
    return _JOIN.sub(lambda gap: " " if _between_digits(gap) else "", text)


def same_case(a: str, b: str) -> bool:
    """May two names of one key be the same in spite of their case?  ``hiv``, ``HIV`` may; ``cat``, ``CAT`` not."""
    return a.isupper() == b.isupper() or a.lower() not in ENGLISH_SYMBOLS


def may_be_same(mention: str, entity: str) -> bool:
    """Whether nothing in the two names says that they are different things, however near their vectors."""
    asked, held = designators(mention), designators(entity)
    agree = held <= asked if mention.count(" ") >= _LONGEST_NAME else held == asked
    if not agree or opposed(mention, entity):
        return False
    # What PAH is near to by its letters is no kin of it; but "HIV infection" may be called an infection.
    symbols, held_symbols = _symbols(mention), _symbols(entity)
    must_share = symbols and (held_symbols or " " not in mention)
    return not must_share or bool(symbols & _words(entity))


def alike(a: str, b: str) -> bool:
    """Do two names share a word, or most of their letters in order (``tobramicyn``, ``tobramycin``)?"""
    return bool(_words(a) & _words(b)) or SequenceMatcher(None, key(a), key(b), autojunk=False).ratio() >= _ALIKE


@lru_cache(65_536)  # a mention is held against each of its neighbours
def designators(name: str) -> frozenset[str]:
    """What tells siblings apart: numbers, single letters, Greek letters (``type 2``, ``hepatitis B``, ``TNF-α``)."""
    text = _arabic(_POSSESSIVE.sub("", unicodedata.normalize("NFKC", name).lower()))
    text = "".join(f" {c.translate(_GREEK)} " if ord(c) in _GREEK else c for c in text)
    found = set(_NUMBER.findall(text))
    for match in _TOKEN.finditer(text):
        token, after = match.group(), text[match.end() : match.end() + 2]
        bound = after.startswith(".") or (match.start() <= 1 and token in _STEREO and "-" in after)
        if token in _GREEK_NAMES or (len(token) == 1 and "a" <= token <= "z" and not bound):
            found.add(token)
    return frozenset(found)


def opposed(a: str, b: str) -> bool:
    """Does one name say the contrary of the other?  ``hypokalaemia`` and ``hyperkalaemia`` are near by vector."""
    ones, others = _words(a) - _words(b), _words(b) - _words(a)
    if "non" in ones | others:  # non-Hodgkin lymphoma
        return True
    for here, there in _PREFIXES:
        if any(there + one.removeprefix(here) in others for one in ones if one.startswith(here)):
            return True
    return any((x in ones and y in others) or (y in ones and x in others) for x, y in _CONTRARIES)


@lru_cache(65_536)
def _symbols(name: str) -> frozenset[str]:
    """Short words in capitals, in small letters: ``tpo``, ``cfc`` in ``CFCs``."""
    return frozenset(singular(word.lower()) for word in _TOKEN.findall(name) if _SYMBOL.fullmatch(word))


@lru_cache(65_536)
def _words(name: str) -> frozenset[str]:
    return frozenset(singular(word) for word in _TOKEN.findall(_american(name.lower())))


def _american(text: str) -> str:
    return _BRITISH.sub(lambda match: _AMERICAN[match.group()], text)


def _arabic(text: str) -> str:
    return _NUMERAL.sub(lambda match: f"{match[1]} {_ROMAN[match[3]]}", text)


def _between_digits(gap: re.Match[str]) -> bool:
    text = gap.string
    return gap.start() > 0 and text[gap.start() - 1].isdigit() and text[gap.end() : gap.end() + 1].isdigit()

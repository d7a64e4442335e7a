"""What a question is made of: things it names side by side, and things it only describes.

    induced both by A and by B            two *sides*: an answer must be right for each
    the enzyme that the drug which ...    a *hop*: what is described must be found before the rest can be asked
    What causes X, and how is it treated? a *sequel*: its pronoun stands for the first part's answer

No parser is used; each pattern is a shape that can be cut out and still leaves a sentence.  Where
the end of a description is not certain, it is left alone: a question that does not read is worse than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hybrid_ir.extraction.words import GENERIC, HOLLOW
from hybrid_ir.reasoning.words import content_words

_PREPOSITION = r"by|with|in|of|for|to|from|on|after|against|during|under|at"
_BOTH = re.compile(
    rf"\bboth\s+(?:(?P<prep>{_PREPOSITION})\s+)?(?P<one>[^?;]+?)\s+and\s+(?:also\s+)?(?P<other>[^?;]+)", re.IGNORECASE
)
_SIDE_END = re.compile(r"[,;?](?:\s|$)|\s(?:in|when|because|although|if|during|after)\s")
_SEQUEL = re.compile(
    rf",?\s+and\s+(?P<rest>(?:(?:{_PREPOSITION})\s+)?(?:what|which|who|whom|whose|how|where|when|why)\s)", re.IGNORECASE
)
_PRONOUN = re.compile(
    r"\b(?:it|they|them|he|she|him|this|that|these|those|its|their|his|her)\b(?!\s+(?:is|was)\s+that\b)"
)
_POSSESSIVE = frozenset({"its", "their", "his", "her"})

_RELATIVE = rf"(?:(?:{_PREPOSITION})\s+)?(?:that|which|who|whom|whose|where)"
_PARTICIPLE = r"(?:\w+(?:ed|en|wn|de)\s+by|named\s+after|known\s+(?:as|for)|containing)"
_NOUN = r"(?:(?!(?:that|which|who|whom|whose|where|when|is|are|was|were|and|or|but|of)\s)[^\W_][\w'’/+-]*\s+){1,5}?"
_DESCRIPTION = re.compile(
    rf"\b(?P<article>[Tt]he|[Aa]n?|[Tt]his)\s+(?P<noun>{_NOUN})(?P<how>{_RELATIVE}|{_PARTICIPLE})\s"
)
_CAPITALS = r"[A-Z][\w'’&.-]*(?:\s+(?:(?:of|the|and|in|for|with|de|la|a|to|on)\s+)*(?:[A-Z0-9][\w'’&.-]*|\d+))*"
_OF_NAME = re.compile(rf"\b[Tt]he\s+(?P<noun>(?:[a-z][\w-]*\s+){{1,3}})of\s+(?P<name>\"[^\"]+\"|{_CAPITALS})")
_NAMES_NOUN = re.compile(
    rf"(?:\b[Tt]he\s+)?(?P<name>{_CAPITALS})(?:(?<=['’]s)|(?<=s['’]))\s+"
    r"(?P<noun>(?:(?:main|own|first|last|current|former|native|only)\s+)?[a-z][\w-]*(?:\s+of\s+birth)?)"
)
_EPONYM_HEADS = frozenset(
    "disease syndrome palsy sign lymphoma sarcoma tumor tumour chorea esophagus node law test".split()
)

_AUXILIARY = r"(?:does|do|did|can|could|may|might|should|will|would|has|have|had|is|are|was|were)"
_INVERTED = re.compile(rf"\b{_AUXILIARY}\s+$", re.IGNORECASE)
_SUBJECT = re.compile(
    r"(?:^|\b(?:that|why|when|because|although|if|after|before|while|how)\s+|^[^,]*,\s+)$", re.IGNORECASE
)
_FINITE = re.compile(rf"\s(?={_AUXILIARY}\s)", re.IGNORECASE)
_END = re.compile(r"[;:?]|,\s(?![A-Z])|\sand\s(?=(?:is|are|was|were|has|have|had)\s)")
_FULL_STOP = re.compile(r"(?<!\b[A-Z][a-z])\.(?:\s|$)")
_SENTENCE_STOP = re.compile(r"(?<!\b[A-Z][a-z])[.?]\s")
_PRONOUN_OBJECT = re.compile(r"\b(?:it|them|they)\b")
"""A description with one cannot be asked on its own."""
_ASKS = re.compile(
    rf"(?:(?:{_PREPOSITION}|through)\s+)?(?:which|what|who|whose|whom|how|where|when|why)\b", re.IGNORECASE
)

_BARE_VERBS = re.compile(
    r"\s(?=(?:act|affect|alter|attend|become|belong|bind|block|carry|cause|change|cross|damage|decrease|depend|destroy|"
    r"die|dissolve|enhance|enter|explain|harm|have|help|impair|improve|increase|induce|inhibit|interact|involve|lead|"
    r"leave|live|lose|lower|occur|play|prevent|produce|prolong|protect|raise|reach|reduce|relieve|remain|require|"
    r"reverse|serve|spread|start|stop|suppress|travel|treat|trigger|win|work|worsen|write)\s)"
)
"""Bare verbs in which questions ask what something does: after ``does the drug that binds antacids`` one of them
begins the rest of the question.  One that is missing here costs a sub-question, not a wrong one."""
MIN_REST_WORDS = 1
"""A description that is the whole question is no part of it."""
MAX_HOPS = 4


@dataclass(frozen=True)
class Part:
    """A part of a question that can be asked on its own."""

    text: str
    """A readable question."""
    subject: str
    """The name, or the description, that it is about."""
    noun: str = ""
    """Of a description, what it describes: ``motor protein``."""
    start: int = -1
    end: int = -1
    """Where the subject stands in the question, for an answer to take its place."""


@dataclass(frozen=True)
class Plan:
    """The parts of one question; any may be empty."""

    question: str
    sides: tuple[Part, ...] = ()
    hops: tuple[Part, ...] = ()
    """Innermost first: the others hold it or do not need it."""
    first: str = ""
    """The first of two questions in one sentence."""
    sequel: str = ""
    """The second one; it has a pronoun where ``first``'s answer belongs, or stands on its own."""

    def filled(self, hop: Part, answer: str) -> str:
        """The question with an answer in the place of a description."""
        return self.question[: hop.start] + answer + self.question[hop.end :]


def plan_of(question: str, need: str) -> Plan:
    """``need`` is the sentence of the question that asks; sides and sequels are sought in it, hops everywhere."""
    first, sequel = _sequel(need)
    hops = tuple(_hops(question)[:MAX_HOPS])
    sides, both = _sides(need)
    at = question.find(need) + both
    if any(hop.start <= at < hop.end for hop in hops):
        sides = ()  # "an analogue that is active against both HIV and HBV": the sides of a description
    return Plan(question=question, sides=sides, hops=hops, first=first, sequel=sequel)


def resolved(sequel: str, answer: str) -> str:
    """``which class does it belong to?`` with the answer for ``it``; as it is where it has no pronoun."""
    match = _PRONOUN.search(sequel)
    if not match:
        return sequel
    name = answer + "'s" if match.group().casefold() in _POSSESSIVE else answer
    return sequel[: match.start()] + name + sequel[match.end() :]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _question(text: str) -> str:
    return _capital(" ".join(text.split()).strip(" ,;.?")) + "?"


def _sides(need: str) -> tuple[tuple[Part, ...], int]:
    """The sides of ``both by A and by B`` and where they begin; a preposition that is repeated marks their ends."""
    match = _BOTH.search(need)
    if not match:
        return (), -1
    before, prep = need[: match.start()], match.group("prep")
    one, other, lead = match.group("one"), match.group("other"), before
    if prep:
        split = re.match(rf"(.+?)\s+and\s+(?:also\s+)?{prep}\s+(.+)", need[match.start("one") : match.end()], re.I)
        one, other = split.groups() if split else (one, other)
        lead = f"{before}{prep} "
    elif not re.search(rf"\b(?:{_PREPOSITION})\s+$", before):
        return (), -1  # "which measure both corrects the acidosis and removes the cause": no names
    cut = _SIDE_END.search(other)
    rest = other[cut.start() :] if cut else ""
    names = [name.strip(" ,;.?") for name in (one, other[: cut.start()] if cut else other)]
    if not all(content_words(name) for name in names):
        return (), -1
    return tuple(Part(text=_question(f"{lead}{name}{rest}"), subject=name) for name in names), match.start()


def _sequel(need: str) -> tuple[str, str]:
    match = _SEQUEL.search(need)
    if not match or len(content_words(need[: match.start()])) < 2 or not _ASKS.match(need):
        return "", ""
    return _question(need[: match.start()]), _question(need[match.start("rest") :])


def _hops(question: str) -> list[Part]:
    """Descriptions that can be asked for, the innermost (last and shortest) first."""
    found: dict[tuple[int, int], Part] = {}
    at = 0
    while match := _DESCRIPTION.search(question, at):
        at = match.end("article")
        end, noun = _clause_end(question, match), " ".join(match.group("noun").split())
        head = noun.split()[-1].casefold()
        indefinite = match.group("article").casefold() in ("a", "an")
        opens = not _sentence_before(question, match.start()).strip()
        if end is None or head in ("fact", "way") or (indefinite and (head in HOLLOW or opens)):
            continue
        if not _is_question_word(question, match) and not _PRONOUN_OBJECT.search(question, match.end(), end):
            _keep(found, question, match.start(), end, noun, "Who" if match.group("how") in ("who", "whom") else "What")
    for pattern in (_OF_NAME, _NAMES_NOUN):
        for match in pattern.finditer(question):
            noun = " ".join(match.group("noun").split())
            head = noun.split()[-1].casefold()
            possessive = pattern is _OF_NAME and match.group("name").endswith(("'s", "’s", "s'"))
            if head not in GENERIC and head not in _EPONYM_HEADS and not possessive:
                _keep(found, question, match.start(), match.end(), noun, "What")
    return [found[place] for place in sorted(found, key=lambda place: (-place[0], place[1]))]


def _keep(found: dict[tuple[int, int], Part], question: str, start: int, end: int, noun: str, word: str) -> None:
    subject = question[start:end].strip(" ,;.?")
    rest = content_words(question[:start] + " " + question[end:]) - content_words(subject)
    if len(rest) < MIN_REST_WORDS or len(content_words(subject)) < 2 or _ASKS.match(subject):
        return
    head = noun.split(" of ")[0].split()[-1]
    plural = head.endswith("s") and not head.endswith(("ss", "us", "is"))
    said = re.sub(r"^(?:an?|this|the)\s", "the ", subject, flags=re.IGNORECASE)
    text = f"{word} {'are' if plural else 'is'} {said}?"
    found[(start, start + len(subject))] = Part(text, subject, noun, start, start + len(subject))


def _is_question_word(question: str, match: re.Match[str]) -> bool:
    """``The response to which vaccine``: the word asks and begins no relative clause."""
    how = match.group("how").split()
    if how[-1].casefold() not in ("which", "whom") or len(how) < 2:
        return False
    sentence = _sentence_before(question, match.start("how")).strip()
    asks = question.find("?", match.end())
    closed = question.find(". ", match.end())
    return (
        asks >= 0 and not 0 <= closed < asks and not _ASKS.match(sentence) and not re.match(_AUXILIARY, sentence, re.I)
    )


def _clause_end(question: str, match: re.Match[str]) -> int | None:
    """Where a description ends; None where that cannot be told.

    A description that stands before the verb of its sentence ends where that verb begins.
    """
    stop = _END.search(question, match.end())
    full = _FULL_STOP.search(question, match.end())
    end = min(stop.start() if stop else len(question), full.start() if full else len(question))
    before = _sentence_before(question, match.start())
    inverted, subject = _INVERTED.search(before), _SUBJECT.search(before)
    if not inverted and not subject:
        return end
    copula = inverted is not None and inverted.group().strip().casefold() in ("is", "are", "was", "were")
    clause = question[match.end() : end]
    pattern = _BARE_VERBS if inverted and not copula else _FINITE
    cuts = [cut.start() for cut in pattern.finditer(clause) if len(clause[: cut.start()].split()) >= 2]
    if pattern is _FINITE and match.group("how").split()[-1] in ("where", "which", "whom", "whose"):
        cuts = cuts[1:]  # the first is the clause's own verb: "the area where it is found is ..."
    while len(cuts) > 1 and " " not in clause[cuts[0] : cuts[1]].strip():
        cuts = cuts[1:]  # "the infection that cave animals carry reach": the second verb is the sentence's
    return match.end() + cuts[0] if cuts else None


def _sentence_before(question: str, at: int) -> str:
    """The sentence that ``at`` stands in, up to there."""
    starts = [stop.end() for stop in _SENTENCE_STOP.finditer(question, 0, at)]
    return question[starts[-1] if starts else 0 : at]

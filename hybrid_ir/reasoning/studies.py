"""What the report of a study says on a yes/no question, where the report draws no conclusion of its own.

Signs are counted and weighed: null results, positive results, conditions (``only``, ``whereas``),
statements of findings, words of direction that agree with the question's.  Sentences that tell
the aim or the methods count nothing, those of the second half LATE times as much.  Closeness to
the question is not looked at within one report: its result is often told in other words.

The weights are a multinomial logistic regression on the 500 training questions of PubMedQA,
fitted and checked by ``benchmarks/study_verdicts.py``, which prints them as they stand here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LATE = 3.0
P_LIMIT = 0.05
TOLD = 2
"""Sentences in the past that make a report: so nearly all abstracts are one, and of the sample corpus's notes none."""

_RESULT = (
    r"(?:differ|associat|correlat|relat|improv|affect|chang|increas|reduc|decreas|predict|influenc|alter|impact)\w*"
)
_MANY = r"(?:(?:statistically|clinically|apparent|overall|other|clear|major|further|additional|such|direct|linear)\s+)*"
_NULL = re.compile(
    rf"\bno\s+{_MANY}(?:significan\w*|effects?|evidence|benefit\w*|advantage\w*|link|interaction|{_RESULT})\b"
    r"|\b(?:no|not|nor)\s(?:\w+\s){0,2}significan\w*"
    rf"|\bnot\s(?:\w+\s)?(?:{_RESULT}|superior|better|higher|lower|effective|show|find|found|support\w*|demonstrat\w*|"
    r"detect\w*|observ\w*|seen|reach\w*|sufficient\w*|contribut\w*|necessar\w*|reliabl\w*|accurate\w*|useful)\b"
    r"|\b(?:non-?|in)significant|\bsimilar\b|\b(?:was|were|is|are|remained)\s(?:\w+\s)?(?:comparable|equivalent|"
    r"unchanged|identical|equal|the same|unrelated)\b|\bun(?:affected|related)\b|\bfail(?:ed|s|ure)?\sto\b"
    r"|\bdid\snot\b|\bneither\b|\bnone\sof\b|\bregardless\sof\b|\black\sof\b|\bno\slonger\b",
    re.IGNORECASE,
)
_POSITIVE = re.compile(
    r"\bsignificant(?:ly)?\b|\bassociated\swith\b|\bcorrelat\w+|\bpredict\w+|\bsuperior\b|\beffective\w*|\bimprov\w+"
    r"|\bmore\slikely\b|\b(?:independent|strong|positive|inverse|good|excellent)(?:ly)?\s(?:\w+\s)?"
    r"(?:associat|relat)\w*",
    re.IGNORECASE,
)
_P_VALUE = re.compile(r"\bp(?:[ -]?values?)?\s?(<|>|=|≤|≥|was|of|less than)?\s?(?:or\s?=\s?)?(0?\.\d+)", re.IGNORECASE)
_RATIO = re.compile(
    r"(?:\b[aA]?(?:OR|RR|HR)\b|\bratio|\brelative risk)[^.;()\d]{0,25}[=:,]?\s?\(?\d+\.\d+[^)\];]{0,40}?"
    r"(\d+\.\d+)\s?(?:-|–|to|,|;)\s?(\d+\.\d+)"
)
"""A ratio and the ends of its confidence interval: one that holds 1 is a null result."""
_AIM = re.compile(
    r"\b(?:aims?|aimed|purpose|objectives?|goals?|hypothes\w*|sought\sto|whether|to\s(?:determine|evaluate|assess|"
    r"examine|investigate|compare|study|explore|test|describe|identify|analy[sz]e|estimate|review)|(?:were|was)\s"
    r"(?:evaluated|assessed|examined|investigated|compared|analy[sz]ed|measured|recorded|performed|included|enrolled|"
    r"reviewed))\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:only|however|although|when|whereas|while|but|except|depend\w*|unless|within|some|none)\b", re.IGNORECASE
)
_FINDING = re.compile(
    r"\b(?:show\w*|demonstrat\w*|reveal\w*|found|indicat\w*|suggest\w*|conclu\w*|confirm\w*|support\w*|findings?|"
    r"result\w*)\b",
    re.IGNORECASE,
)
UP = re.compile(
    r"\b(?:rais|increas|ris(?:e|ing)|higher|elevat|more|great|better|improv|longer|enhanc|promot|gain)\w*",
    re.IGNORECASE,
)
DOWN = re.compile(
    r"\b(?:lower|reduc|decreas|fall|fewer|less|suppress|wors|poor|shorter|impair|declin|diminish|inferior)\w*",
    re.IGNORECASE,
)
_NEED = re.compile(
    r"\b(?:necess\w+|needed|needs?|mandatory|require[ds]?|justified|indicated|routine\w*|should|always|warranted|"
    r"contraindicat\w*|really|we)\b",
    re.IGNORECASE,
)
_GOOD = re.compile(
    r"\b(?:effective\w*|efficac\w*|useful\w*|benefi\w*|help\w*|reduc\w*|improv\w*|valuable|feasib\w*|reliabl\w*|"
    r"accurate|valid|safe\w*|possible|role|protect\w*|enhanc\w*)\b",
    re.IGNORECASE,
)
_STUDY = re.compile(
    r"\bp\s?[<>=≤≥]|\bsignifican\w+|\bconfidence interval|\b95\s?% ?CI\b|\bn\s?=\s?\d|\bodds ratio|\bcohort\b|"
    r"\b\d+ (?:\w+ )?(?:patients|women|men|children|subjects|cases|participants)\b|\bwe (?:\w+ )?(?:found|compared|"
    r"examined|studied|analy[sz]ed|investigated|report\w*)|\bthis (?:study|trial|report)\b|"
    r"\b(?:did not differ|no difference)",
    re.IGNORECASE,
)

_PAST = re.compile(r"\b(?:was|were|did|had)\b", re.IGNORECASE)

SIGNS = ("null", "agree", "condition", "finding", "null_results", "positive_results", "asks_need", "asks_good")
VERDICTS = ("yes", "no", "maybe")
BIAS = {"no": -0.87, "maybe": -1.08}
WEIGHTS = {
    "no": (2.56, -1.15, 0.67, -1.37, 1.05, -0.52, 1.53, -0.71),
    "maybe": (0.36, -0.71, 2.74, 0.06, 0.10, -0.26, 0.83, -0.37),
}
"""Of each sign; ``yes`` has none."""


def is_study(sentences: Sequence[str]) -> bool:
    """Whether a text reports a study, which is told in the past, and not what is known."""
    past = sum(_PAST.search(text) is not None for text in sentences)
    return past >= TOLD or any(_STUDY.search(text) for text in sentences)


def results(sentence: str) -> tuple[bool, bool]:
    """(a null result, a positive one) in a sentence, by its words, p-values and confidence intervals; may be both."""
    null = _NULL.search(sentence) is not None
    positive = _POSITIVE.search(_NULL.sub(" ", sentence)) is not None
    for match in _P_VALUE.finditer(sentence):
        above = match[1] in (">", "≥") or float(match[2]) > P_LIMIT
        null, positive = null or above, positive or not above
    for match in _RATIO.finditer(sentence):
        low, high = float(match[1]), float(match[2])
        if low < high:
            null, positive = null or low <= 1 <= high, positive or not low <= 1 <= high
    return null, positive


def signs(question: str, sentences: Sequence[str]) -> NDArray[np.float64]:
    """The signs of one report in its order, shape (len(SIGNS),).

    Shares are of all sentences that count, each by its place; ``null_results`` and
    ``positive_results`` are log(1 + number).
    """
    place = np.arange(len(sentences)) / max(len(sentences) - 1, 1)
    told = np.array([_AIM.search(text) is None for text in sentences], np.float64)
    weight = told * np.where(place >= 0.5, LATE, 1.0)
    weight = weight / weight.sum() if weight.any() else np.full(len(sentences), 1.0 / len(sentences))
    found = np.array([results(text) for text in sentences], np.float64)
    null, positive = found[:, 0], found[:, 1]
    towards = np.array([_direction(text) for text in sentences], np.float64)
    return np.array(
        [
            weight @ (null * (1 - positive)),
            _direction(question) * (weight @ towards),
            weight @ np.array([_CONDITION.search(text) is not None for text in sentences], np.float64),
            weight @ np.array([_FINDING.search(text) is not None for text in sentences], np.float64),
            np.log1p(told @ null),
            np.log1p(told @ positive),
            float(_NEED.search(question) is not None),
            float(_GOOD.search(question) is not None),
        ]
    )


def _direction(text: str) -> int:
    return int(UP.search(text) is not None) - int(DOWN.search(text) is not None)


def verdict(question: str, sentences: Sequence[str]) -> str:
    """``yes``, ``no`` or ``maybe``, by the sentences of one report in their order."""
    values = signs(question, sentences)
    scores = {"yes": 0.0} | {word: BIAS[word] + float(values @ np.array(WEIGHTS[word])) for word in WEIGHTS}
    return max(VERDICTS, key=lambda word: scores[word])

"""Read an option's letter out of what models really write.

``read_choice`` is ours: what cannot be read for certain is no answer.  ``mirage_choice`` is
the rule of the MIRAGE benchmark, for scores that can be compared with published ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_REPLY_CHARS = 100_000
"""Of a longer reply the end is read: that is where a model that ran away would answer."""

_JSON_FIELD = re.compile(
    r"""["'](?:answer_choice|final_answer|answer_letter|answer|choice|option|letter)["']\s*:\s*\[?\s*"""
    r"""(?:"((?:[^"\\]|\\.)*+)|'((?:[^'\\]|\\.)*+)|([^\s"',}\]]*))""",
    re.IGNORECASE,
)
"""A field of a JSON object, which may be fenced, cut off, or written as Python writes a dict."""

_OPENERS = r"[\s*_`\"'“‘(\[{$]"
_OPEN = rf"{_OPENERS}*+(?:\\(?:boxed|text)\{{)*+(?:(?:option|choice)(?![^\W_]){_OPENERS}*+)?+"
"""What may stand before the letter: brackets, quotes, emphasis, ``\\boxed{``, ``Option``.

Stars are possessive here and below: a reply of 100,000 brackets takes linear time.
"""
_CLOSE = r"[*_`\"'”’)\]}$]*+"
_ALONE = re.compile(rf"{_OPEN}([A-Za-z])[\s*_`\"'”’)\]}}$.,:;!]*+", re.IGNORECASE)
"""A letter with nothing around it but brackets, quotes, emphasis and a final stop."""

_MARKED = re.compile(
    rf"{_OPENERS}{{0,8}}(?:(?:option|choice)\s+)?(?:"
    r"\(([A-Za-z])\)|\[([A-Za-z])\]|([A-Za-z])\)|(?:\*\*|__)([A-Za-z])[.):]?(?:\*\*|__)"
    r"|([A-Za-z])[*_]{0,3}\s?:|([A-Za-z])\s[-–—]\s|([A-Za-z]),\s|([A-Za-z])\.)",
    re.IGNORECASE,
)
"""A letter marked as an option at the start of a line: ``(B) ...``, ``B) ...``, ``**B** ...``, ``B: ...``, ``B. ...``.

The last group is the bare letter before a full stop.
"""

_PHRASE = re.compile(
    r"(?<![^\W_])(?:(?:answer|choice|option)(?:\s(?:choice|option|letter))?[*_]{0,3}"
    r"(?:\s+(?:is|would\s+be|should\s+be|must\s+be)(?![^\W_])|\s?[:=：]|\s*\n)"
    r"|(?:Antwort|Réponse|Respuesta|Risposta|答案)[*_]{0,3}\s?(?:[:：]|(?:ist|est|es|è)(?![^\W_])|是))[\s:：]*+",
    re.IGNORECASE,
)
"""What announces an answer; the answer itself must follow at once ("the answer is not B" has none)."""

_ANNOUNCED = re.compile(rf"{_OPEN}([A-Za-z])(?![^\W_])({_CLOSE})", re.IGNORECASE)
_VERDICT = re.compile(
    rf"(?<![^\W_])(?:(?:option|choice|answer)\s{_OPENERS}{{0,8}}([A-Z]){_CLOSE}|\(([A-Z])\))\s+is\s+(?:the\s+)?"
    r"(?:most\s+(?:likely|appropriate)\s+)?(?:correct|right|best)(?![^\W_])",
    re.IGNORECASE,
)
"""``Option B is correct``, ``(B) is the best answer``."""

_GOES_ON = re.compile(r"\s+(?:because|since|as|due|given|based|therefore|which|so)(?![^\W_])|\s+[-–—]\s", re.IGNORECASE)
"""After a bare letter only these words: ``B because`` is option B, ``B cells`` and ``A patient`` are not."""

_SECOND = re.compile(rf"{_CLOSE}\s*+(?:/|,|&|or|and){_OPEN}[A-Z](?![^\W_])")
"""``A or B``, ``A/B``, ``A, C``: two options are no answer."""


def read_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """The letter of the option that ``reply`` chooses, or ``None`` where that cannot be read.

    In this order: an answer field of a JSON object; a first line that is an option; the last
    "the answer is ..." or "option B is correct"; a last line that is an option.  A line is an
    option when it is a letter alone, begins with a marked letter, or is an option's text.
    A letter that is not among ``options`` is no answer, and so are two letters.
    """
    if not options:
        return None
    text = reply[-MAX_REPLY_CHARS:].strip()
    fields = [
        next((group for group in match.groups() if group is not None), "") for match in _JSON_FIELD.finditer(text)
    ]
    if fields:
        return _line_choice(fields[-1].replace("\\n", "\n").replace('\\"', '"').strip(), options)
    lines = [line for line in (raw.strip().strip("#>").strip() for raw in text.splitlines()) if line.strip("`")]
    if not lines:
        return None
    return _line_choice(lines[0], options) or _announced_choice(text, options) or _line_choice(lines[-1], options)


def _line_choice(line: str, options: Mapping[str, str]) -> str | None:
    """A line that is an option."""
    alone = _ALONE.fullmatch(line)
    if alone:
        return _known(alone[1], options)
    by_text = _text_choice(line, options)
    if by_text:
        return by_text
    marked = _MARKED.match(line)
    if not marked:
        return None
    letter = _known(marked[marked.lastindex or 0], options)
    rest = line[marked.end() :].strip(" *_")
    if letter is None or _SECOND.match(line, marked.end(marked.lastindex or 0)):
        return None
    # "E. coli" is a name; "B. metformin" is an option when that is how option B begins.
    is_name = marked.lastindex == _MARKED.groups and rest[:1].islower() and not _starts_with(rest, options[letter])
    return None if is_name else letter


def _announced_choice(text: str, options: Mapping[str, str]) -> str | None:
    """The last announced answer that can be read."""
    found: list[tuple[int, str | None]] = []
    for phrase in _PHRASE.finditer(text):
        following = text[phrase.end() : phrase.end() + 400]
        found.append((phrase.end(), _following_choice(following, options)))
    found += [(match.start(), _known(match[1] or match[2], options)) for match in _VERDICT.finditer(text)]
    return next((letter for _, letter in sorted(found, key=lambda item: -item[0]) if letter), None)


def _following_choice(following: str, options: Mapping[str, str]) -> str | None:
    line = following.strip().partition("\n")[0]
    match = _ANNOUNCED.match(line)
    if match:
        letter = _known(match[1], options)
        rest = line[match.end() :]
        if letter and _SECOND.match(rest):
            return None
        wrapped = bool(match[2]) and not match[2].isspace()
        if letter and (wrapped or _delimited(rest, options[letter]) or (match[1].isupper() and _GOES_ON.match(rest))):
            return letter
    return _text_choice(line, options)


def _delimited(rest: str, option: str) -> bool:
    """What follows a bare letter ends it: nothing, punctuation, or the option's own text."""
    if not rest.strip(" *_"):
        return True
    if rest[0] == ".":
        after = rest[1:].lstrip(" *_")
        return not after[:1].islower() or _starts_with(after, option)
    return rest[0] in ",;:!?)" or _starts_with(rest.strip(" *_:-"), option)


def _text_choice(line: str, options: Mapping[str, str]) -> str | None:
    """The one option whose text the line is, or begins with up to a punctuation mark."""
    said = _plain(line)
    exact = [letter for letter, option in options.items() if _plain(option) == said]
    if exact:
        return exact[0] if len(exact) == 1 else None
    heads = [
        (len(_plain(option)), letter)
        for letter, option in options.items()
        if _plain(option) and re.match(re.escape(_plain(option)) + r"\s*(?:[,;:(]|[.!]\s|\s[-–—]\s)", said)
    ]
    longest = [letter for length, letter in heads if length == max(heads)[0]]
    return longest[0] if len(longest) == 1 else None


def _starts_with(text: str, option: str) -> bool:
    return bool(_plain(option)) and _plain(text).startswith(_plain(option))


def _plain(text: str) -> str:
    """Folded, without emphasis, quotes and a final stop."""
    return " ".join(text.casefold().split()).strip(" *_`\"'“”‘’.!")


def _known(letter: str, options: Mapping[str, str]) -> str | None:
    return letter.upper() if letter.upper() in options else None


def mirage_choice(reply: str) -> str:
    """The letter A to D that MIRAGE's evaluation reads out of a reply; A where it finds none.

    Case-sensitive.  A question without any reply is counted as wrong by MIRAGE: do not call
    this for it.
    """
    answer = reply.rsplit('"answer_choice": "', 1)[-1].strip()
    for pattern in _MIRAGE:
        match = pattern.search(answer)
        if match:
            return match[1]
    return "A"


_MIRAGE = tuple(
    re.compile(pattern)
    for pattern in (
        r"\A([A-D])\Z",
        r"\A([A-D]) or",
        r"\A([A-D]) and",
        r"\A([A-D])/",
        r"\A([A-D]),",
        r"[Oo]ption ([A-D])",
        r":\s*([A-D])",
        r"\A([A-D])\.",
        r"\A([A-D])\"",
        r"\A([A-D]):",
    )
)

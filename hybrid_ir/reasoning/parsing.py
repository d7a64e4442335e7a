"""Read an option's letter out of what models really write.

``read_choice`` is ours: what cannot be read for certain is no answer.  ``mirage_choice`` is
the rule of the MIRAGE benchmark, for scores that can be compared with published ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_REPLY_CHARS = 100_000
"""Of a longer reply the end is read: that is where a model that ran away would answer."""

_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_TAGS = re.compile(r"</?(?:b|strong|em|i|u|p|code|br)\s?/?>", re.IGNORECASE)

_JSON_FIELD = re.compile(
    r"""["'](?:answer_choice|final_answer|answer_letter|answer|choice|option|letter)["']\s*:\s*(\[)?\s*"""
    r"""(?:"((?:[^"\\]|\\.)*+)|'((?:[^'\\]|\\.)*+)|([^\s"',}\]]*))""",
    re.IGNORECASE,
)
"""A field of a JSON object, which may be fenced, cut off, or written as Python writes a dict."""

_FURTHER = re.compile(r"""["']?\s*,\s*["']?[A-Za-z]""")
"""A second item of a list."""

_OPENERS = r"[\s*_`\"'“‘(\[{$]"
_OPEN = rf"{_OPENERS}*+(?:\\(?:boxed|text)\{{)*+(?:(?:option|choice)(?![^\W_]){_OPENERS}*+)?+"
"""What may stand before the letter: brackets, quotes, emphasis, ``\\boxed{``, ``Option``.

Stars are possessive here and below: a reply of 100,000 brackets takes linear time.
"""
_CLOSE = r"[*_`\"'”’)\]}$]*+"
_ALONE = re.compile(rf"{_OPEN}([A-Za-z])[\s*_`\"'”’)\]}}$.,:;!。，；：]*+", re.IGNORECASE)
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
    r"(?:(?<![^\W_])(?:(?:answer|ans|choice|option)(?:\s(?:choice|option|letter))?[*_]{0,3}"
    r"(?:\s+(?:is|would\s+be|should\s+be|must\s+be)(?![^\W_])|\s?[:=：]|\s[-–—]\s|(?<=answer)\s*\n|(?<=answer\*\*)\s*\n)"
    r"|(?:choose|select|pick)(?![^\W_])"
    r"|(?:Antwort|Réponse|Respuesta|Resposta|Risposta|Odpowiedź|Ответ)[*_]{0,3}(?:\s(?:correcta|correta|corretta))?\s?"
    r"(?:[:：]|(?:ist|est|es|è|é)(?![^\W_])))|(?:答案|回答|正解|정답)[*_]{0,3}\s?(?:[:：]|是|は|은))[\s:：]*+",
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

_REASON = re.compile(r"\s+(?:because|since)(?![^\W_])")

_SECOND = re.compile(rf"{_CLOSE}\s*+(?:/|,|&|or|and){_OPEN}[A-Z](?![^\W_])")
"""``A or B``, ``A/B``, ``A, C``: two options are no answer."""


def read_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """The letter of the option that ``reply`` chooses, or ``None`` where that cannot be read.

    In this order: an answer field of a JSON object; a first line that is an option's letter or text; the last
    "the answer is ..." or "option B is correct"; a line with a marked letter (``B) ...``), if it is the first or the
    last and the lines are no list of the options; a last line that is an option's letter or text.  A letter that is
    not among ``options`` is no answer, and so are two letters.  What a model thinks before ``</think>`` is not read.
    """
    if not options:
        return None
    text = _TAGS.sub(" ", _THOUGHT.sub("", reply[-MAX_REPLY_CHARS:])).strip()
    field = next(reversed(list(_JSON_FIELD.finditer(text))), None)
    if field is not None:
        if field[1] and _FURTHER.match(text, field.end()):
            return None
        value = next((group for group in field.groups()[1:] if group is not None), "")
        value = value.replace("\\n", "\n").replace('\\"', '"').strip()
        return _line_choice(value, options) or _announced_choice(value, options)
    lines = [line for line in (raw.strip().strip("#>-•").strip() for raw in text.splitlines()) if line.strip("`")]
    if not lines:
        return None
    return (
        _whole_choice(lines[0], options)
        or _announced_choice(text, options)
        or _marked_line(lines, options)
        or _whole_choice(lines[-1], options)
    )


def _line_choice(line: str, options: Mapping[str, str]) -> str | None:
    """A line that is an option."""
    return _whole_choice(line, options) or (None if _ALONE.fullmatch(line) else _marked_choice(line, options))


def _whole_choice(line: str, options: Mapping[str, str]) -> str | None:
    """A line that is a letter alone (or with its reason: ``B because``), an option's text, or both."""
    alone = _ALONE.fullmatch(line)
    if alone:
        return _known(alone[1], options)
    by_text = _text_choice(line, options)
    if by_text:
        return by_text
    both = _ANNOUNCED.match(line)
    if both is None:
        return None
    letter, rest = _known(both[1], options), line[both.end() :].lstrip(" *_.:;,()[]–—-")
    if letter and both[1].isupper() and _REASON.match(line, both.end()):
        return letter
    if letter is None or not _starts_with(rest, options[letter]):
        return None
    # "A patient" is the article where option A is "patient".
    return letter if letter != "A" or not line[both.end() :].startswith(" " + rest[:1]) else None


def _marked_choice(line: str, options: Mapping[str, str]) -> str | None:
    """A line that begins with a marked letter."""
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


def _marked_line(lines: list[str], options: Mapping[str, str]) -> str | None:
    """The first or else the last line, where its letter is marked; None where the lines go through the options."""
    letters = [letter for letter in (_marked_choice(line, options) for line in lines) if letter]
    listed = list(dict.fromkeys(letters))
    if len(listed) > 1 and listed[0] == min(options) and listed == sorted(listed):
        return None
    return _marked_choice(lines[0], options) or _marked_choice(lines[-1], options)


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
    if not rest.strip(" *_") or rest[0] in "。，；":
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

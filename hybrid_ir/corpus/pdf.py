"""PDF files with a text layer, one section a page.

pypdfium2 is not thread-safe: read one PDF at a time in a process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from hybrid_ir.corpus.assembly import TextBuilder, one_line, read_error
from hybrid_ir.corpus.source import Unreadable, file_id, read_all, stem
from hybrid_ir.records import Document, ErrorRecord, SourceFile
from hybrid_ir.settings import ReaderSettings

# pdfium writes a hyphen at a line's end as U+0002 or U+FFFE and leaves the line break out.
_BROKEN_WORD = re.compile(r"(?<!\w)(\w++)(?:([-\u2010\u00ad])[ \t]*\n|([\x02\ufffe]))\s*(\w+)")
_WORD = re.compile(r"(?<!\w)(\w++)([-\u2010\u00ad\ufffe])[ \t]*\n[ \t]*(\w+)")
_WORD = re.compile(r"\w+(?:-\w+)*")
_NO_TITLE = re.compile(r"untitled|microsoft word|\.(docx?|indd|tex|pdf|dvi|qxd)\b|^\W*$", re.IGNORECASE)


def read_pdf(source: SourceFile, stream: BinaryIO, settings: ReaderSettings) -> Iterator[Document | ErrorRecord]:
    """One document a file; a page without text becomes an error record and the others are kept.

    Raises:
        Unreadable: it is encrypted or broken, or no page has a text layer.
    """
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(read_all(stream))
    except pypdfium2.PdfiumError as error:
        secret = "password" in str(error).lower() or "security" in str(error).lower()
        advice = "it is encrypted; remove the password" if secret else f"it is a broken PDF ({error})"
        raise Unreadable(advice) from None
    try:
        pages = [_page_text(pdf, number) for number in range(len(pdf))]
        stated = one_line(str(pdf.get_metadata_dict(skip_empty=True).get("Title", "")))
    finally:
        pdf.close()
    if not any(isinstance(page, str) and page.strip() for page in pages):
        raise Unreadable(f"none of its {len(pages)} pages has a text layer; run OCR on it first")
    words = count_words(page for page in pages if isinstance(page, str))
    text = TextBuilder()
    identity = one_line(file_id(source.path))
    for number, page in enumerate(pages, start=1):
        if isinstance(page, Unreadable) or not page.strip():
            reason = (
                str(page) if isinstance(page, Unreadable) else "has no text layer; run OCR on it to have it indexed"
            )
            yield read_error(identity, source.path, f"Page {number} of {source.path} {reason}.")
        else:
            text.add(join_broken_words(page, words), [f"page {number}"])
    yield Document(
        id=identity,
        title=one_line(stem(source.path).replace("_", " ")) if _NO_TITLE.search(stated) else stated,
        text=text.text,
        sections=text.sections,
        source=source.path,
    )


def _page_text(pdf: object, number: int) -> str | Unreadable:
    import pypdfium2

    try:
        page = pdf[number]  # type: ignore[index]
        layer = page.get_textpage()
        text: str = layer.get_text_bounded()
        layer.close()
        page.close()
    except pypdfium2.PdfiumError as error:
        return Unreadable(f"cannot be read ({error})")
    # The library joins UTF-16 halves it cannot pair into surrogates: one bad glyph must not cost the file.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def count_words(pages: Iterable[str]) -> Counter[str]:
    """How often each word stands in the pages, also with its hyphens; broken words are not counted."""
    return Counter(word for page in pages for word in _WORD.findall(_BROKEN_WORD.sub(" ", page).casefold()))


def join_broken_words(page: str, words: Counter[str]) -> str:
    """Undo hyphenation at line ends.

    ``inflam-`` / ``mation`` becomes ``inflammation``.  The hyphen stays before a capital or a digit
    (``IL-`` / ``6``), and where ``words`` (of the whole file) knows the word better with it, or
    knows only its parts (``two-`` / ``thirds``).
    """

    def join(found: re.Match[str]) -> str:
        head, hyphen, _, tail = found.groups()
        with_hyphen, without = words[f"{head}-{tail}".casefold()], words[f"{head}{tail}".casefold()]
        if not tail[0].islower() or head[-1].isdigit() or (head.isupper() and len(head) > 1):
            hard = True
        elif with_hyphen or without:
            hard = with_hyphen > without
        else:
            hard = hyphen != "\u00ad" and words[head.casefold()] > 0 and words[tail.casefold()] > 0
        return f"{head}-{tail}" if hard else head + tail

    joined = _BROKEN_WORD.sub(join, page)
    return joined.replace("\ufffe", "-").replace("\x02", "-").replace("\u00ad", "")

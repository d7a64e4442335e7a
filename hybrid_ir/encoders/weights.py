"""A pretrained transformer with its tokenizer, loaded to run: for encoders and for rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import transformers
from transformers import AutoModel, AutoTokenizer

from hybrid_ir.encoders.location import ModelLocation, cannot_load
from hybrid_ir.errors import BadInput

_OFFSET_POSITIONS = frozenset({"mpnet", "roberta", "xlm-roberta", "camembert", "longformer"})
"""Architectures that number positions from after the padding id: two of MPNet's 514 are never used."""


class Model:
    """``kind`` is a transformers auto class; the model is on its device, in ``dtype``, ready to run."""

    def __init__(self, location: ModelLocation, kind: Any, device: str, dtype: str) -> None:
        """Raises :class:`BadInput` where files are missing or broken, or weights are not numbers."""
        transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(location.source)
            network, report = kind.from_pretrained(
                location.source, dtype=getattr(torch, dtype), output_loading_info=True
            )
        except Exception as error:  # files of all kinds: whatever they raise, the model is not usable
            raise cannot_load(location, error) from error
        self._require_weights(location, kind, network, report)
        self.device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
        self.network: Any = network.eval().to(self.device)
        self.longest = _longest(network.config, self.tokenizer)
        self.commit: str | None = getattr(network.config, "_commit_hash", None)

    def tokens(self, texts: Sequence[str], pairs: Sequence[str] | None, max_tokens: int) -> Any:
        """A padded batch on the model's device; what is too long loses its end, of a pair the longer text first."""
        return self.tokenizer(
            list(texts),
            list(pairs) if pairs is not None else None,
            padding=True,
            truncation=True,
            max_length=min(max_tokens, self.longest),
            return_tensors="pt",
        ).to(self.device)

    @staticmethod
    def _require_weights(location: ModelLocation, kind: Any, network: Any, report: dict[str, Any]) -> None:
        missing = sorted(report["missing_keys"])
        if kind is AutoModel:  # its pooler is no part of [CLS] or mean pooling, and many checkpoints lack it
            missing = [name for name in missing if "pooler" not in name]
        if missing:
            raise BadInput(
                f"The model {location.name} lacks weights that it needs ({missing[0]} and {len(missing) - 1} more): it "
                "was trained for something else."
            )
        for name, weights in network.named_parameters():
            if not torch.isfinite(weights).all():
                raise BadInput(f"The model {location.name} has weights that are not numbers ({name}); fetch it again.")


def _longest(config: Any, tokenizer: Any) -> int:
    positions = int(getattr(config, "max_position_embeddings", 512))
    if getattr(config, "model_type", "") in _OFFSET_POSITIONS:
        positions -= int(config.pad_token_id or 0) + 1
    return min(positions, int(tokenizer.model_max_length))


def clean(text: str) -> str:
    """Tokenizers refuse lone surrogates; a query may carry them."""
    return text.encode("utf-8", "replace").decode("utf-8")

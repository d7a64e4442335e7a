"""Extraction by an engine that answers in batches: what it is to be asked next, and what it said.

An engine in a data pipeline (vLLM in Ray Data) gets prompts and gives texts; it does not wait for
one to ask the next.  So a shard is read again and again with what is known: each reading finds the
prompts that are still without a reply, retries of unusable ones among them, until none is.  The
reading is the extractor's own, so the graph is the one that an endpoint of the same model makes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pyarrow as pa

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction.llm import LLMExtractor
from hybrid_ir.extraction.llm_calls import Calls
from hybrid_ir.extraction.llm_reply import Unreadable
from hybrid_ir.index import layout
from hybrid_ir.index.manifest import digest
from hybrid_ir.index.replies import Replies, prompt_key
from hybrid_ir.index.shard import SegmentPlan, load_chunks, stage_done
from hybrid_ir.llm.records import Message, Prompt, Reply, Usage
from hybrid_ir.settings import LLMExtractorSettings
from hybrid_ir.store import Store

SAID = pa.schema([("key", pa.binary(16)), ("text", pa.string()), ("error", pa.string())])

Said = tuple[bytes, str, str]
"""Key of the prompt, the reply, and the engine's error where there is none."""


class SaidLLM:
    """See :class:`hybrid_ir.roles.LLM`: replies that were given before; ``missing`` are the prompts without one."""

    def __init__(self, said: Sequence[Said], name: str) -> None:
        self._said = {key: (text, error) for key, text, error in said}
        self._name = name
        self.missing: list[Prompt] = []

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, prompt: Prompt) -> Reply:
        text, error = self._said.get(prompt_key(prompt), (None, ""))
        if error:
            raise Unreadable(f"The language model refuses the passage: {error}")
        if text is None:
            self.missing.append(prompt)
            raise Unreadable("The language model was not asked about this passage.")
        return Reply(text=text, finish="other", usage=Usage(), seconds=0.0)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Reply, None]:
        yield await self.complete(prompt)

    async def count(self, messages: Sequence[Message]) -> int:
        raise BadInput("Replies that were given before have no tokens.")

    async def window(self) -> int:
        raise BadInput("Replies that were given before have no window.")

    async def close(self) -> None:
        pass


def open_shard(plan: SegmentPlan, shard: int) -> LLMExtractor:
    """An extractor of this shard that asks nobody."""
    return _extractor(plan, SaidLLM(said(plan, shard), "batched"))


def missing(plan: SegmentPlan, shard: int) -> list[Prompt]:
    """What is still to be asked about a shard; none where it is done.  Valid replies are kept on the way."""
    if stage_done(plan, "extract", shard) is not None:
        return []
    model = SaidLLM(said(plan, shard), "batched")
    extractor = _extractor(plan, model)
    with Replies(plan.store, extractor.reply_fingerprint, plan.segment_id, shard, plan.shards) as replies:
        extractor.extract_kept(load_chunks(plan, shard), replies)
    return list({prompt_key(prompt): prompt for prompt in model.missing}.values())


def write(store: Store, segment_id: str, shard: int, replies: Sequence[Said]) -> None:
    """Set down what the engine said; a batch written twice overwrites itself."""
    rows = sorted(replies)
    table = pa.Table.from_pylist([dict(zip(SAID.names, row, strict=True)) for row in rows], schema=SAID)
    store.write_table(f"{_folder(segment_id, shard)}/{digest([row[0].hex() for row in rows])}.parquet", table)


def _extractor(plan: SegmentPlan, said: SaidLLM) -> LLMExtractor:
    settings = plan.settings.extractor
    if not isinstance(settings, LLMExtractorSettings):
        raise BadInput("build.extractor.kind is not llm.")
    return LLMExtractor(settings, said, Calls(None))


def said(plan: SegmentPlan, shard: int) -> list[Said]:
    """All that the engine said about a shard."""
    found: list[Said] = []
    for name in plan.store.files(_folder(plan.segment_id, shard)):
        table = plan.store.read_table(name)
        found += zip(table["key"].to_pylist(), table["text"].to_pylist(), table["error"].to_pylist(), strict=True)
    return found


def _folder(segment_id: str, shard: int) -> str:
    return f"{layout.work(segment_id)}/said/shard-{shard:05d}"

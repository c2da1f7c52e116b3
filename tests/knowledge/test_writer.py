"""The writer of chunks into a store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firefly_memory import (
    InMemoryStore,
)
from firefly_memory.knowledge import moving
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.moving import Writing
from tests.knowledge import row


@pytest.fixture
def target() -> Iterator[InMemoryStore]:
    with InMemoryStore() as store:
        yield store


async def test_a_writer_keeps_few_chunks_in_memory(target: InMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "_PAGE", 2)
    log, writer = target.suspending.log(KNOWLEDGE_LOG), moving.KnowledgeWriter(target.suspending, Writing())
    items = [moving._as_json(row(f"text {number}", owner=f"person {number}")) for number in range(5)]
    for number, each in enumerate(items, 1):
        await writer.take("chunk", each)
        assert await log.count(None, None) == number // 2 * 2
    await writer.flush()
    assert await log.count(None, None) == 5
    monkeypatch.setattr(moving, "_MOST_CHARACTERS", 10)
    await writer.take("chunk", moving._as_json(row("a long text")))
    assert await log.count(None, None) == 6
    await writer.take("chunk", moving._as_json(row("short")))
    assert await log.count(None, None) == 6
    await writer.flush()
    await writer.take("chunk", moving._as_json(row("there")), there=True)
    await writer.finish()
    assert await log.count(None, None) == 7, "what is there is not written"

"""Samples of knowledge."""

from __future__ import annotations

import pytest

from firefly_memory import EntryStore, ErasedError
from firefly_memory.knowledge import Chunk, KnowledgeStore


async def store_data_of(store: EntryStore, owner: str) -> None:
    knowledge = KnowledgeStore(store, embedder=None)
    chunks = [Chunk(f"chunk {number} of {owner}", who=owner, group=f"group of {owner}") for number in range(3)]
    await knowledge.async_add(f"collection of {owner}", chunks, source={owner: owner}, owner=owner)


async def assert_late_writes_are_refused(store: EntryStore, owner: str) -> None:
    for collection in ("new", f"collection of {owner}"):
        with pytest.raises(ErasedError):
            await KnowledgeStore(store, embedder=None).async_add(collection, "late", owner=owner)


def store_hostile(store: EntryStore, text: str) -> None:
    chunks = [Chunk(text * 20, who=text, group=text), Chunk("短い" * 100)]
    KnowledgeStore(store, space=text, embedder=None).add(text, chunks, source={text: text}, owner=text)


def store_archived(store: EntryStore) -> None:
    knowledge = KnowledgeStore(store, embedder=None)
    knowledge.add("handbook", [Chunk(f"page {number}", who="Bob", group="g") for number in range(2)], source="file")
    knowledge.add("letters", "dear Ann", owner="ann")

"""What an erasure finds and cannot delete."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from firefly_memory import DatabaseStoreError, InMemoryStore, erasure
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.people import LongTermEraser
from firefly_memory.people import Counts, Owned

OWNER = "web:Ann"


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    MemoryService(store, embedder=None).set_fact("colour", "green", user_id=OWNER)
    return store


def test_a_row_that_its_writer_takes_back_at_that_moment_is_no_error(
    store: InMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = LongTermEraser.delete

    async def taken_back(self: LongTermEraser, owned: Sequence[Owned]) -> Counts:
        await self._log.delete([each.name for each in owned])
        return await delete(self, owned)

    monkeypatch.setattr(LongTermEraser, "delete", taken_back)
    assert not erasure.erase(store, OWNER).rows
    assert not erasure.find_text(store, "green")


def test_a_row_that_stays_is_an_error_that_may_pass(store: InMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def in_vain(_: LongTermEraser, __: Sequence[Owned]) -> Counts:
        return {}

    monkeypatch.setattr(LongTermEraser, "delete", in_vain)
    with pytest.raises(DatabaseStoreError, match="cannot be deleted") as raised:
        erasure.erase(store, OWNER)
    assert raised.value.retryable

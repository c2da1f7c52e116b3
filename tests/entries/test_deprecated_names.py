"""The names of the first documents still work, with a warning."""

from __future__ import annotations

import pytest

from firefly_memory import InMemoryStore, MemoryEntry


async def test_the_old_names_work_and_warn() -> None:
    store = InMemoryStore()
    entry = MemoryEntry(content="x")
    with pytest.warns(DeprecationWarning, match=r"save_async\(\) is now called async_save\(\)") as caught:
        await store.save_async("n", entry)
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="load_async"):
        assert await store.load_async("n") == [entry]
    with pytest.warns(DeprecationWarning, match="delete_async"):
        await store.delete_async("n", entry.entry_id)
    with pytest.warns(DeprecationWarning, match="clear_async"):
        await store.clear_async("n")

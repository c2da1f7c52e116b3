"""A store that is collected while it holds connections gives a warning that says how to close it."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firefly_memory import (
    Capability,
    ConfigurationError,
    DatabaseStoreError,
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MemoryManager,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    StoreClosedError,
    adapt,
)
from tests.support.backends import Place
from tests.support.folder_backend import FolderStore

pytestmark = pytest.mark.thorough

OPENERS: dict[str, Callable[[Place], EntryStore]] = {
    "sqlite": lambda place: SQLiteStore(place.directory / "memory.db"),
    "postgresql": lambda place: PostgreSQLStore(place.postgresql(), schema_name="unclosed"),
    "mongodb": lambda place: MongoDBStore(place.mongodb(), database="unclosed"),
}
HOLDING_NOTHING: dict[str, Callable[[Place], EntryStore]] = {
    "memory": lambda _: InMemoryStore(),
    "file": lambda place: FileStore(place.directory / "files"),
    "adapted": lambda place: adapt(FolderStore(place.directory / "folder")),
}


NOTE = MemoryEntry(content="bread")


class PassesOn:
    """A user's store with the five methods, which keeps everything in a store of the library."""

    def __init__(self, inner: EntryStore) -> None:
        self.save, self.load, self.load_by_key = inner.save, inner.load, inner.load_by_key
        self.delete, self.clear = inner.delete, inner.clear


@contextmanager
def warnings_of_ours() -> Iterator[list[str]]:
    """The warnings when what the block leaves behind is collected."""
    gc.collect()
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
        gc.collect()
    found += ours(caught)


def ours(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(each.message) for each in caught if "a store was not closed" in str(each.message)]


@pytest.mark.parametrize("kind", OPENERS)
def test_a_store_that_is_collected_while_open_gives_a_warning_that_says_how_to_close_it(
    kind: str, place: Place
) -> None:
    with warnings_of_ours() as found:
        OPENERS[kind](place).save("notes", NOTE)
    (warning,) = found
    assert "close_sync()" in warning
    assert "await close()" in warning


@pytest.mark.parametrize("kind", OPENERS)
async def test_a_store_that_was_only_awaited_gives_the_warning_as_well(kind: str, place: Place) -> None:
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await OPENERS[kind](place).async_save("notes", NOTE)
        async with asyncio.timeout(30):  # until event loop and threads have let go of what they have called
            while not ours(caught):
                await asyncio.sleep(0.01)
                gc.collect()
    assert len(ours(caught)) == 1


@pytest.mark.parametrize("kind", ["postgresql", "mongodb"])
def test_connections_that_ended_with_their_event_loop_give_no_warning(kind: str, place: Place) -> None:
    async def use() -> None:
        await OPENERS[kind](place).async_save("notes", NOTE)

    with warnings_of_ours() as found:
        asyncio.run(use())
    assert found == []


@pytest.mark.parametrize("kind", OPENERS)
def test_a_closed_store_gives_no_warning(kind: str, place: Place) -> None:
    with warnings_of_ours() as found, OPENERS[kind](place) as store:
        store.save("notes", NOTE)
    assert found == []


@pytest.mark.parametrize("kind", OPENERS)
def test_a_store_that_was_never_used_gives_no_warning(kind: str, place: Place) -> None:
    with warnings_of_ours() as found:
        OPENERS[kind](place)
    assert found == []


@pytest.mark.parametrize("kind", HOLDING_NOTHING)
def test_a_store_that_holds_nothing_open_gives_no_warning(kind: str, place: Place) -> None:
    with warnings_of_ours() as found:
        HOLDING_NOTHING[kind](place).save("notes", NOTE)
    assert found == []


def test_a_store_of_a_user_on_an_open_store_gives_the_warning_of_that_store(place: Place) -> None:
    with warnings_of_ours() as found:
        adapt(PassesOn(OPENERS["sqlite"](place))).save("notes", NOTE)
    (warning,) = found
    assert "memory.db" in warning


def test_a_store_that_could_not_connect_gives_no_warning(tmp_path: Path) -> None:
    with warnings_of_ours() as found, pytest.raises(DatabaseStoreError):
        SQLiteStore(tmp_path).load("notes")  # a directory
    assert found == []


def test_a_constructor_that_fails_gives_no_warning() -> None:
    with warnings_of_ours() as found, pytest.raises(ConfigurationError, match="pool_size"):
        SQLiteStore(":memory:", pool_size=0)
    assert found == []


@pytest.mark.parametrize("kind", OPENERS | HOLDING_NOTHING)
async def test_the_coroutines_have_async_names_as_well(kind: str, place: Place) -> None:
    store = (OPENERS | HOLDING_NOTHING)[kind](place)
    await store.async_initialize()
    if Capability.LISTING in store.capabilities:
        assert await store.async_cleanup_expired() == 0
    await store.async_close()
    with pytest.raises(StoreClosedError):
        await store.async_load("notes")


async def test_a_manager_has_the_async_names_too() -> None:
    manager = MemoryManager()
    await manager.async_initialize()
    await manager.async_close()
    with pytest.raises(StoreClosedError):
        await manager.async_get_fact("city")

"""Stores, entries and pages, as a user's type checker sees them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

from firefly_memory import (
    ABSENT,
    Capability,
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MemoryManager,
    MemorySettings,
    MemoryStore,
    MongoDBStore,
    Page,
    PostgreSQLStore,
    SQLiteStore,
    adapt,
    connect,
)
from firefly_memory.archive import export_jsonl
from firefly_memory.database_store import PostgreSQLStore as Documented
from firefly_memory.erasure import Receipt, async_erase, erase
from firefly_memory.service import RowPage
from firefly_memory.service import list as list_rows

assert_type(connect("sqlite:///memory.db"), EntryStore)
connect("postgresql://host/name", schema_name="memory", pool_size=5, migrate=False)
connect("sqlite:///memory.db", timeuot=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
connect("sqlite:///memory.db", timeout="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
connect(Path("memory.db"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

with SQLiteStore(Path("memory.db")) as sqlite:
    assert_type(sqlite, SQLiteStore)
with PostgreSQLStore("postgresql://host/name") as postgresql, FileStore("notes") as files, InMemoryStore() as memory:
    assert_type(postgresql, PostgreSQLStore)
    assert_type(files, FileStore)
    assert_type(memory, InMemoryStore)
with connect("memory:") as store, MemoryManager(store=store) as manager:
    assert_type(store, EntryStore)
    assert_type(manager, MemoryManager)
assert_type(Documented("postgresql://host/name"), PostgreSQLStore)
SQLiteStore(url="sqlite:///memory.db")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
PostgreSQLStore(dsn="postgresql://host/name")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

entry = MemoryEntry(key="city", content={"name": "Oslo"}, importance=0.9)
assert_type(entry.key, str | None)
assert_type(entry.is_expired, bool)
MemoryEntry(keys="city")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

assert_type(store.save("notes", entry), None)
assert_type(store.load("notes"), list[MemoryEntry])
assert_type(store.load_by_key("notes", "city"), MemoryEntry | None)
assert_type(store.save_if("notes", entry, ABSENT), bool)
assert_type(store.delete_many("notes", [entry.entry_id]), int)
assert_type(store.namespaces("user:"), list[str])
assert_type(store.capabilities, frozenset[Capability])
assert_type(store.path, Path | None)
store.save("notes", {"key": "city"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
store.load("notes", lmit=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

page = store.load_page("notes", limit=10)
assert_type(page, Page)
assert_type(page[0], MemoryEntry)
assert_type(page[1:], Sequence[MemoryEntry])
assert_type([each for each in page], list[MemoryEntry])  # noqa: C416 - how each one is typed
assert_type(page.next, str | None)

rows = list_rows(store, "entries", where={"namespace": "notes"})
assert_type(rows, RowPage)
assert_type(rows[0], dict[str, Any])
assert_type(erase(store, "ada"), Receipt)
with Path("archive.jsonl").open("w") as file:
    export_jsonl(store, file)


async def both_modes_have_the_same_types() -> None:
    async with MongoDBStore("mongodb://host/name") as mongodb:
        assert_type(mongodb, MongoDBStore)
        assert_type(await mongodb.async_load("notes"), list[MemoryEntry])
        assert_type(await mongodb.async_load_by_key("notes", "city"), MemoryEntry | None)
        assert_type(await mongodb.async_save_if("notes", entry, ABSENT), bool)
        assert_type((await mongodb.async_load_page("notes"))[0], MemoryEntry)
        assert_type(await mongodb.async_cleanup_expired(), int)
        assert_type(await async_erase(mongodb, "ada"), Receipt)
    await mongodb.async_close()
    mongodb.async_load("notes")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]


class Folder:
    """A user's store has the five methods."""

    def save(self, namespace: str, entry: MemoryEntry) -> None: ...

    def load(self, namespace: str) -> list[MemoryEntry]:
        return []

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        return None

    def delete(self, namespace: str, entry_id: str) -> None: ...

    def clear(self, namespace: str) -> None: ...


class Incomplete:
    def save(self, namespace: str, entry: MemoryEntry) -> None: ...


of_a_user: MemoryStore = Folder()
assert_type(adapt(of_a_user), EntryStore)
MemoryManager(store=Folder())
MemoryManager(store=Incomplete())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
MemoryManager(store="memory.db")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

settings = MemorySettings()
assert_type(settings.migrate, bool)
assert_type(settings.postgres_pool_size, int)

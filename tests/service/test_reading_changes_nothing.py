"""Looking makes and migrates nothing, and a store with five methods is looked at as far as these go."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pymongo
import pytest

from firefly_memory import (
    ConversationMemory,
    EntryStore,
    FileStore,
    MemoryEntry,
    MongoDBStore,
    NotSupportedError,
    PostgreSQLStore,
    SchemaMismatchError,
    SQLiteStore,
    WorkingMemory,
    adapt,
    service,
)
from firefly_memory.testing import Mode
from tests.service.conftest import Look
from tests.support.backends import Place
from tests.support.folder_backend import FolderStore


async def look_at_everything(store: EntryStore, mode: Mode) -> None:
    look = Look(store, mode)
    await look.stats()
    await look.page("entries")
    await look.get("conversations", "c")
    assert await look.delete("entries", ["n/1"]) == 0


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


@pytest.mark.parametrize("mode", Mode)
async def test_files_are_not_made(tmp_path: Path, mode: Mode) -> None:
    store = FileStore(tmp_path / "none")
    await look_at_everything(store, mode)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("mode", Mode)
async def test_a_database_is_not_made(tmp_path: Path, mode: Mode) -> None:
    store = SQLiteStore(tmp_path / "none.db")
    with pytest.raises(SchemaMismatchError):
        await look_at_everything(store, mode)
    assert names_in(tmp_path) == []
    await store.close()


@pytest.mark.parametrize("mode", Mode)
async def test_a_schema_is_not_made(place: Place, name: str, admin: psycopg.Connection[Any], mode: Mode) -> None:
    store = PostgreSQLStore(place.postgresql(), schema_name=name)
    with pytest.raises(SchemaMismatchError):
        await look_at_everything(store, mode)
    assert admin.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [name]).fetchall() == []
    await store.close()


@pytest.mark.parametrize("mode", Mode)
async def test_collections_are_not_made(place: Place, mode: Mode) -> None:
    database = f"none_{uuid4().hex[:12]}"
    store = MongoDBStore(place.mongodb(), database=database)
    with pytest.raises(SchemaMismatchError):
        await look_at_everything(store, mode)
    with pymongo.MongoClient[dict[str, Any]](place.mongodb()) as client:
        assert database not in client.list_database_names()
    await store.close()


@pytest.fixture(params=Mode)
def five(request: pytest.FixtureRequest, tmp_path: Path) -> Look:
    return Look(adapt(FolderStore(tmp_path / "five")), request.param)


async def test_a_store_of_five_methods_shows_what_is_named(five: Look) -> None:
    store: Any = five.store
    await ConversationMemory(store=store).async_add_turn("c", "question", "answer")
    await store.async_save("notes", MemoryEntry(entry_id="1", key="k"))
    await WorkingMemory(store=store).async_set("colour", "green")
    assert [row["id"] for row in await five.rows("entries", where={"namespace": "notes"})] == ["notes/1"]
    assert [row["id"] for row in await five.rows("entries", where={"namespace": "notes", "key": "x"})] == []
    assert [row["id"] for row in await five.rows("working-facts", where={"scope": "default"})] == ["default/colour"]
    assert [row["id"] for row in await five.rows("conversations")] == ["c"]
    assert [row["id"] for row in await five.rows("turns", where={"conversation_id": "c"})] == ["c/0"]
    assert await five.delete("entries", ["notes/1"]) == 1
    assert await five.delete("conversations", ["c"]) == 1


async def test_a_store_of_five_methods_says_what_it_cannot_list(five: Look) -> None:
    for kind, name in (("entries", "namespace"), ("working-facts", "scope")):
        with pytest.raises(NotSupportedError, match=f"cannot list its namespaces; name one {name}"):
            await five.page(kind)
    stats = await five.stats()
    assert stats["entries"].rows is None
    assert stats["entries"].note == "this store cannot list its namespaces; name one namespace, and see its rows"
    assert stats["conversations"] == service.Stats("conversations", 0, 0)
    assert "agent-history" not in stats
    with pytest.raises(NotSupportedError, match="agent history cannot be kept in a store with the five methods only"):
        await five.page("agent-history")

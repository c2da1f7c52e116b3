"""A facet of another package in every kind of store, without a change to the library."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    NotSupportedError,
    PostgreSQLStore,
    SQLiteStore,
    adapt,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.testing import Mode, checks
from tests.registry.conftest import Open
from tests.support.backends import Place
from tests.support.folder_backend import FolderStore
from tests.toy_facet.facet import key
from tests.toy_facet.log import Note
from tests.toy_facet.rules import found

NOW = datetime(2024, 5, 6, 7, 8, 9, 123_000, UTC)
NOTES = key()


def put(store: EntryStore, note: Note) -> None:
    run_without_loop(store.blocking.log(NOTES).put(note))


def get(store: EntryStore, note_id: str) -> Note | None:
    return run_without_loop(store.blocking.log(NOTES).get(note_id, NOW))


@pytest.mark.parametrize("mode", Mode)
def test_the_conformance_kit_checks_its_rules_on_every_store(open_store: Open, mode: Mode) -> None:
    of_notes = [check for check in checks() if check.facet == NOTES]
    assert [check.rule for check in of_notes] == ["T1", "T2", "T3"]
    for check in of_notes:
        check.run(open_store, mode)


def test_the_kit_has_its_rules_only_while_it_is_registered() -> None:
    assert not [check for check in checks() if check.rule.startswith("T")]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("kind", ["files", "five methods"])
def test_stores_that_cannot_keep_the_facet_refuse_it(kind: str, tmp_path: Path) -> None:
    store = FileStore(tmp_path) if kind == "files" else adapt(FolderStore(tmp_path))
    with store:
        store.save("n", MemoryEntry(content=1))  # the rest of the store works
        with pytest.raises(NotSupportedError, match=r"notes of toy 1 cannot be kept in .*; .*PostgreSQLStore.* can"):
            store.blocking.log(NOTES)
        with pytest.raises(NotSupportedError):
            store.suspending.log(NOTES)
        assert store.cleanup_expired_sync() == 0 if kind == "files" else True


def test_expired_notes_are_cleaned_up_with_the_entries(open_store: Open) -> None:
    async def use() -> None:
        async with open_store() as store:
            await store.suspending.log(NOTES).put(Note("old", "it is over", datetime.now(UTC) - timedelta(seconds=1)))
            await store.suspending.log(NOTES).put(Note("new", "it goes on", datetime.now(UTC) + timedelta(hours=1)))
            await store.async_save("n", MemoryEntry(content=1))
            assert await store.cleanup_expired() == 1
            assert await store.cleanup_expired() == 0
            assert await found(store.suspending, "goes") == ["new"]

    asyncio.run(use())


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_threads_and_several_event_loops_share_one_store(kind: str, place: Place, name: str) -> None:
    store = (
        SQLiteStore(place.directory / "toys.db")
        if kind == "sqlite"
        else PostgreSQLStore(place.postgresql(), schema_name=name, pool_min_size=0)
    )

    async def in_a_loop(number: int) -> None:
        await store.suspending.log(NOTES).put(Note(f"loop {number}", "here"))

    with store, ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: asyncio.run(in_a_loop(number)), range(4)))
        list(threads.map(lambda number: put(store, Note(f"thread {number}", "here")), range(4)))
        assert len(run_without_loop(found(store.blocking, "here"))) == 8


@pytest.mark.usefixtures("toy")
def test_the_facet_commits_and_rolls_back_with_the_callers_transaction(place: Place, name: str) -> None:
    engine = create_engine(place.with_driver("psycopg"))
    with PostgreSQLStore(place.postgresql(), schema_name=name, pool_min_size=0) as store:
        put(store, Note("kept", "before"))
        for commits in (False, True):
            with engine.connect() as connection:
                put(store.bind(connection), Note("bound", "with the rest"))
                assert get(store, "bound") is None
                if commits:
                    connection.commit()
        assert get(store, "bound") == Note("bound", "with the rest")
    engine.dispose()


@pytest.mark.usefixtures("toy")
async def test_the_facet_can_be_bound_to_an_asynchronous_connection(place: Place) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{place.directory}/toys.db")
    async with SQLiteStore(place.directory / "toys.db") as store:
        await store.initialize()
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
            await store.bind(connection).suspending.log(NOTES).put(Note("bound", "words"))
            await connection.rollback()
        assert await store.suspending.log(NOTES).get("bound", NOW) is None
    await engine.dispose()


def test_a_store_opened_before_the_registration_lacks_the_facet(tmp_path: Path) -> None:
    with InMemoryStore() as store, pytest.raises(StopIteration):
        store.blocking.log(NOTES)


def test_its_grants_are_enough_for_a_role(toy: None, place: Place, name: str) -> None:
    from firefly_memory.databases.sql.schema.commands import grants

    with PostgreSQLStore(place.postgresql(), schema_name=name, pool_min_size=0) as store:
        put(store, Note("a", "word"))
    role = f"role_{name}"
    with psycopg.connect(place.postgresql(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role}".encode())
        try:
            for grant in grants(role, name):
                admin.execute(grant.encode())
            assert f"{name}.toy_1_notes" in " ".join(grants(role, name))
            admin.execute(f"SET ROLE {role}".encode())
            admin.execute(f"UPDATE {name}.toy_1_notes SET body = 'other' WHERE id = 'a'".encode())
            admin.execute(b"RESET ROLE")
        finally:
            admin.execute(f"DROP OWNED BY {role}".encode())
            admin.execute(f"DROP ROLE {role}".encode())

"""Errors of the library never quote stored contents, although databases quote a refused row."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import ConversationMemory, DatabaseStoreError, EntryStore, MemoryEntry, PostgreSQLStore, SQLiteStore
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.backends import Place
from tests.support.databases import execute
from tests.support.error_chains import shown_by

SECRET = "correct-horse"
REFUSED = "refused"


@asynccontextmanager
async def opened(kind: str, place: Place, name: str) -> AsyncIterator[EntryStore]:
    way, _, driver = kind.partition(" ")
    url = place.with_driver(driver)
    if way == "own":
        async with PostgreSQLStore(url, schema_name=name) as store:
            yield store
    elif way == "async_engine":
        suspending = create_async_engine(url)
        async with PostgreSQLStore(engine=suspending, schema_name=name) as store:
            yield store
        await suspending.dispose()
    else:
        engine = create_engine(f"sqlite:///{place.directory}/memory.db" if driver == "sqlite" else url)
        on_engine = (
            SQLiteStore(engine=engine) if driver == "sqlite" else PostgreSQLStore(engine=engine, schema_name=name)
        )
        async with on_engine as store:
            yield store
        engine.dispose()


WAYS = [
    ("own asyncpg", Mode.SUSPENDING),
    ("own psycopg", Mode.SUSPENDING),
    ("own psycopg", Mode.BLOCKING),
    ("engine psycopg", Mode.BLOCKING),
    ("engine psycopg2", Mode.BLOCKING),
    ("async_engine asyncpg", Mode.SUSPENDING),
]


@pytest.mark.parametrize(("kind", "mode"), [*WAYS, ("engine sqlite", Mode.BLOCKING)])
async def test_no_error_quotes_contents_that_were_to_be_stored(kind: str, mode: Mode, place: Place, name: str) -> None:
    async with opened(kind, place, name) as store:
        await store.async_count("n") if mode is Mode.SUSPENDING else store.count("n")
        for table, column in (("memory_entries", "namespace"), ("memory_turns", "conversation_id")):
            if kind == "engine sqlite":
                rule = f"WHEN NEW.{column} = '{REFUSED}' BEGIN SELECT RAISE(ABORT, 'not here'); END"
                trigger = f"CREATE TRIGGER no_{table} BEFORE INSERT ON {table} {rule}"
                execute(f"sqlite:///{place.directory}/memory.db", f"{trigger};")
            else:
                execute(place.postgresql(), f"ALTER TABLE {name}.{table} ADD CHECK ({column} <> '{REFUSED}')")
        entries = Memory(store, mode)
        turns = Memory(ConversationMemory(store=store), mode)
        entry = MemoryEntry(content={SECRET: SECRET}, metadata={"m": SECRET})
        acts: list[Callable[[], Awaitable[Any]]] = [
            lambda: entries.save(REFUSED, entry),
            lambda: entries.save_many(REFUSED, [entry, MemoryEntry(content=SECRET)]),
            lambda: turns.add_turn(REFUSED, SECRET, SECRET),
        ]
        for act in acts:
            with pytest.raises(DatabaseStoreError) as caught:
                await act()
            assert SECRET not in shown_by(caught.value)
            assert caught.value.__cause__ is not None
            assert "check" in str(caught.value) or "not here" in str(caught.value)


@pytest.mark.parametrize(("kind", "mode"), WAYS)
async def test_no_error_quotes_a_value_that_an_index_or_a_trigger_cannot_read(
    kind: str, mode: Mode, place: Place, name: str
) -> None:
    async with opened(kind, place, name) as store:
        await store.async_count("n") if mode is Mode.SUSPENDING else store.count("n")
        execute(place.postgresql(), f"CREATE INDEX ON {name}.memory_entries (((content->>'age')::int))")
        broken = "BEGIN PERFORM (NEW.user_prompt || ' {')::json; RETURN NEW; END"
        execute(
            place.postgresql(),
            f"CREATE FUNCTION {name}.t() RETURNS trigger LANGUAGE plpgsql AS '{broken.replace(chr(39), chr(39) * 2)}'",
        )
        execute(
            place.postgresql(),
            f"CREATE TRIGGER t BEFORE INSERT ON {name}.memory_turns FOR EACH ROW EXECUTE FUNCTION {name}.t()",
        )
        entries = Memory(store, mode)
        turns = Memory(ConversationMemory(store=store), mode)
        entry = MemoryEntry(content={"age": SECRET})
        acts: list[Callable[[], Awaitable[Any]]] = [
            lambda: entries.save("n", entry),
            lambda: entries.save_many("n", [entry, MemoryEntry()]),
            lambda: turns.add_turn("c", SECRET, SECRET),
        ]
        for act in acts:
            with pytest.raises(DatabaseStoreError, match="SQLSTATE 22P02") as caught:
                await act()
            assert SECRET not in shown_by(caught.value)

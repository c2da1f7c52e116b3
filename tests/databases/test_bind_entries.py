"""A store in the caller's transaction: a business row and an entry commit or roll back together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from firefly_memory import (
    ConfigurationError,
    EntryOwnershipError,
    InMemoryStore,
    InvalidEntryError,
    MemoryEntry,
    NotSupportedError,
    PostgreSQLStore,
    SchemaMismatchError,
    SQLiteStore,
    StoreClosedError,
)
from tests.support.backends import Place
from tests.support.bound_stores import DRIVERS, KINDS, NAMESPACE, opened, opened_async, orders


@KINDS
def test_a_row_and_a_memory_commit_together(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO orders VALUES (1)"))
            store.bind(connection).save(NAMESPACE, MemoryEntry(content="bought"))
            assert store.bind(connection).count(NAMESPACE) == 1
            assert store.count(NAMESPACE) == 0, "not committed yet"
        assert orders(engine) == 1
        assert store.count(NAMESPACE) == 1


@KINDS
@pytest.mark.parametrize("memory_first", [True, False])
@pytest.mark.parametrize("many", [True, False])
def test_a_row_and_a_memory_roll_back_together(kind: str, memory_first: bool, many: bool, place: Place) -> None:
    """Also where the memory comes first: SQLite's driver begins late, and a savepoint without a transaction commits."""

    def remember(connection: Connection) -> None:
        bound = store.bind(connection)
        if many:
            bound.save_many(NAMESPACE, [MemoryEntry(content=1), MemoryEntry(content=2)])
        else:
            bound.save(NAMESPACE, MemoryEntry(content=1))
            bound.delete_many(NAMESPACE, ["nothing"])

    with opened(kind, place) as (store, engine):
        with pytest.raises(LookupError), engine.begin() as connection:
            if memory_first:
                remember(connection)
            connection.execute(text("INSERT INTO orders VALUES (1)"))
            if not memory_first:
                remember(connection)
            raise LookupError
        assert orders(engine) == 0
        assert store.count(NAMESPACE) == 0


@KINDS
def test_a_connection_that_commits_in_between_keeps_its_commits(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        with engine.connect() as connection:
            bound = store.bind(connection)
            bound.save(NAMESPACE, MemoryEntry(content="kept"))
            connection.commit()
            bound.save(NAMESPACE, MemoryEntry(content="lost"))
            connection.rollback()
        assert [entry.content for entry in store.load(NAMESPACE)] == ["kept"]


@KINDS
def test_a_refused_batch_is_undone_without_the_rest_of_the_transaction(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        store.save("elsewhere", MemoryEntry(entry_id="theirs"))
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO orders VALUES (1)"))
            bound = store.bind(connection)
            bound.save(NAMESPACE, MemoryEntry(content="before"))
            with pytest.raises(EntryOwnershipError):
                bound.save_many(NAMESPACE, [MemoryEntry(content="undone"), MemoryEntry(entry_id="theirs")])
            with pytest.raises(EntryOwnershipError):
                bound.save(NAMESPACE, MemoryEntry(entry_id="theirs"))
            with pytest.raises(InvalidEntryError):
                bound.save(NAMESPACE, MemoryEntry(content=object()))
        assert orders(engine) == 1
        assert [entry.content for entry in store.load(NAMESPACE)] == ["before"]
        store.clear("elsewhere")


@KINDS
def test_every_operation_works_on_a_bound_store_in_both_modes(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine), engine.begin() as connection:
        bound = store.bind(connection)
        entries = [MemoryEntry(content=number, key="k") for number in range(5)]
        bound.save_many(NAMESPACE, entries)
        assert bound.load(NAMESPACE) == entries
        assert list(bound.load_page(NAMESPACE, 2)) == entries[:2]
        assert bound.load_by_key(NAMESPACE, "k") == entries[4]
        assert bound.delete_many(NAMESPACE, [entries[0].entry_id]) == 1
        assert NAMESPACE in bound.namespaces()
        bound.cleanup_expired_sync()
        bound.initialize_sync()
        bound.close_sync()
        assert asyncio.run(bound.async_count(NAMESPACE)) == 4
        bound.clear(NAMESPACE)
        assert bound.count(NAMESPACE) == 0
        assert not connection.closed
        assert "bound to a connection" in repr(bound)


@DRIVERS
async def test_a_store_can_be_bound_to_an_asynchronous_transaction(driver: str, place: Place) -> None:
    async with opened_async(driver, place) as (store, engine):
        async with engine.begin() as connection:
            await connection.execute(text("INSERT INTO orders VALUES (1)"))
            bound = store.bind(connection)
            await bound.async_save(NAMESPACE, MemoryEntry(content="kept"))
            await bound.async_save_many(NAMESPACE, [MemoryEntry(content="too"), MemoryEntry(content="also")])
            assert await bound.async_count(NAMESPACE) == 3
        with pytest.raises(LookupError):
            async with engine.begin() as connection:
                await store.bind(connection).async_save_many(NAMESPACE, [MemoryEntry(), MemoryEntry()])
                await connection.execute(text("INSERT INTO orders VALUES (2)"))
                raise LookupError
        assert [entry.content for entry in await store.async_load(NAMESPACE)] == ["kept", "too", "also"]
        async with engine.connect() as connection:
            assert (await connection.execute(text("SELECT id FROM orders"))).scalars().all() == [1]


@DRIVERS
async def test_a_blocking_call_on_an_asynchronous_connection_is_refused(driver: str, place: Place) -> None:
    async with opened_async(driver, place) as (store, engine), engine.connect() as connection:
        with pytest.raises(NotSupportedError, match="await the asynchronous ones"):
            store.bind(connection).save(NAMESPACE, MemoryEntry())


@KINDS
def test_the_applications_events_see_the_statements(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        seen: list[str] = []

        def see(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
            seen.append(statement)

        event.listen(engine, "before_cursor_execute", see)
        with engine.begin() as connection:
            store.bind(connection).save(NAMESPACE, MemoryEntry())
        assert any("INSERT INTO" in statement and "memory_entries" in statement for statement in seen)


def test_unsuitable_connections_are_refused(place: Place) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        postgresql = PostgreSQLStore(place.postgresql())
        with pytest.raises(ConfigurationError, match="for sqlite, this store is for postgresql"):
            postgresql.bind(connection)
        store = SQLiteStore(place.directory / "other.db")
        with pytest.raises(SchemaMismatchError, match="firefly-memory db upgrade"):
            store.bind(connection).save(NAMESPACE, MemoryEntry())
    with pytest.raises(ConfigurationError, match="has not been opened"):
        store.bind(AsyncConnection(create_async_engine("sqlite+aiosqlite://")))
    engine.dispose()
    assert not hasattr(InMemoryStore(), "bind")


@KINDS
def test_a_connection_in_autocommit_mode_is_refused(kind: str, place: Place) -> None:
    """It has no transaction to join: what is bound would be saved without the rest, or lost."""
    with opened(kind, place) as (store, engine):
        with (
            engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
            pytest.raises(ConfigurationError, match="commits each statement by itself"),
        ):
            store.bind(connection)
        always = create_engine(engine.url, isolation_level="AUTOCOMMIT")
        with (
            always.connect() as connection,
            pytest.raises(ConfigurationError, match="commits each statement by itself"),
        ):
            store.bind(connection)
        with always.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
            store.bind(connection).save_many(NAMESPACE, [MemoryEntry(), MemoryEntry()])
            connection.rollback()
        always.dispose()
        assert store.count(NAMESPACE) == 0


@DRIVERS
async def test_an_asynchronous_connection_in_autocommit_mode_is_refused(driver: str, place: Place) -> None:
    async with opened_async(driver, place) as (store, engine), engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")  # type: ignore[unused-awaitable]
        with pytest.raises(ConfigurationError, match="commits each statement by itself"):
            store.bind(connection)


def test_a_driver_in_autocommit_mode_is_refused_too(place: Place) -> None:
    with opened("postgresql", place) as (store, engine):
        connect = partial(psycopg.connect, place.postgresql(), autocommit=True)
        unaware = create_engine(engine.url, creator=connect)
        with unaware.connect() as connection, pytest.raises(ConfigurationError):
            store.bind(connection)
        unaware.dispose()


def test_a_store_joins_sqlite_transactions_that_the_application_begins(place: Place) -> None:
    """As SQLAlchemy recommends for savepoints: the driver is in autocommit mode, the application is not."""
    with opened("sqlite", place) as (store, engine):

        def leave_it_to_us(connection: sqlite3.Connection, _: object) -> None:
            connection.isolation_level = None

        def begin(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN")

        event.listen(engine, "connect", leave_it_to_us)
        event.listen(engine, "begin", begin)
        engine.dispose()
        with engine.begin() as connection:
            store.bind(connection).save_many(NAMESPACE, [MemoryEntry(content=1), MemoryEntry(content=2)])
        with pytest.raises(LookupError), engine.begin() as connection:
            store.bind(connection).save(NAMESPACE, MemoryEntry(content=3))
            raise LookupError
        assert [entry.content for entry in store.load(NAMESPACE)] == [1, 2]


@KINDS
def test_closing_a_store_closes_its_bound_stores(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine), engine.begin() as connection:
        bound = store.bind(connection)
        bound_again = bound.bind(connection)
        bound.save(NAMESPACE, MemoryEntry())
        store.close_sync()
        uses: list[Callable[[], object]] = [
            lambda: bound.save(NAMESPACE, MemoryEntry()),
            lambda: bound_again.count(NAMESPACE),
            bound.initialize_sync,
            lambda: bound.bind(connection),
            lambda: store.bind(connection),
        ]
        for use in uses:
            with pytest.raises(StoreClosedError):
                use()
        bound.close_sync()
        assert connection.execute(text("SELECT 1")).scalar_one() == 1


def test_closing_a_store_on_the_callers_engine_closes_its_bound_stores(place: Place) -> None:
    with opened("sqlite", place) as (_, engine), engine.connect() as connection:
        store = SQLiteStore(engine=engine)
        bound = store.bind(connection)
        store.close_sync()
        with pytest.raises(StoreClosedError):
            bound.save(NAMESPACE, MemoryEntry())

"""Stores use the engines and clients of the caller, and leave them open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymongo
import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    ConfigurationError,
    MemoryEntry,
    MongoDBStore,
    NotSupportedError,
    PostgreSQLStore,
    SchemaMismatchError,
    SQLiteStore,
    StoreClosedError,
)
from tests.support.backends import Place


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    engine = create_engine(f"sqlite:///{tmp_path}/app.db")
    yield engine
    engine.dispose()


def test_a_passed_engine_is_used_with_its_events_and_stays_open(engine: Any) -> None:
    seen: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *arguments: seen.append(arguments[2]))
    with SQLiteStore(engine=engine) as store:
        store.save("n", MemoryEntry())
    assert any("INSERT INTO memory_entries" in statement for statement in seen)
    with pytest.raises(StoreClosedError):
        store.count("n")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM memory_entries").scalar() == 1
    assert "engine=Engine(sqlite:///" in repr(store)


def test_a_passed_engine_without_the_schema_is_reported_or_migrated(engine: Any) -> None:
    with pytest.raises(SchemaMismatchError):
        SQLiteStore(engine=engine, migrate=False).load("n")
    with SQLiteStore(engine=engine) as store:
        assert store.load("n") == []


async def test_a_blocking_call_on_an_asynchronous_engine_is_refused(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/app.db")
    store = SQLiteStore(engine=engine)
    await store.async_save("n", MemoryEntry())
    for call in (lambda: store.load("n"), store.initialize_sync, store.cleanup_expired_sync):
        with pytest.raises(NotSupportedError, match="blocking methods cannot use an AsyncEngine"):
            call()
    await engine.dispose()


async def test_a_passed_client_serves_its_mode_and_stays_open(place: Place) -> None:
    client: pymongo.AsyncMongoClient[Any] = pymongo.AsyncMongoClient(place.mongodb())
    async with MongoDBStore(client=client, database="passed") as store:
        await store.async_clear("n")
        await store.async_save("n", MemoryEntry())
        assert await store.async_count("n") == 1
        with pytest.raises(NotSupportedError, match="cannot use an AsyncMongoClient"):
            store.load("n")
    assert (await client.admin.command("ping"))["ok"] == 1
    await client.close()
    with pymongo.MongoClient[Any](place.mongodb()) as blocking:
        store = MongoDBStore(client=blocking, database="passed")
        assert store.count("n") == await store.async_count("n") == 1
        await store.close()
        assert blocking.admin.command("ping")["ok"] == 1


@pytest.mark.parametrize(("make", "thing"), [(SQLiteStore, "x"), (PostgreSQLStore, 5)])
def test_other_objects_than_engines_are_refused(make: Any, thing: object) -> None:
    with pytest.raises(ConfigurationError, match="must be a SQLAlchemy Engine or AsyncEngine"):
        make(engine=thing)


@pytest.mark.parametrize("thing", [None, 5, "engine"])
def test_other_objects_than_connections_are_refused(thing: object, engine: Any) -> None:
    store = SQLiteStore(engine=engine)
    for each in (thing, engine):
        with pytest.raises(ConfigurationError, match=r"bind\(\) needs an open Connection"):
            store.bind(each)  # type: ignore[arg-type]

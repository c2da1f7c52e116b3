"""Stores beside an application's own table, to be bound to the application's connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from firefly_memory import (
    PostgreSQLStore,
    SQLiteStore,
)
from firefly_memory.stores.sql import SQLStore
from tests.support.backends import Place

NAMESPACE = "bound"


@contextmanager
def opened(kind: str, place: Place) -> Iterator[tuple[SQLStore, Engine]]:
    """A store, and an engine of an application that has a table of its own in the same database."""
    store: SQLStore
    if kind == "sqlite":
        store = SQLiteStore(place.directory / "app.db")
        engine = create_engine(f"sqlite:///{place.directory}/app.db")
    else:
        store = PostgreSQLStore(place.postgresql())
        engine = create_engine(place.with_driver("psycopg"))
    store.clear(NAMESPACE)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS orders"))
        connection.execute(text("CREATE TABLE orders (id INTEGER PRIMARY KEY)"))
    try:
        yield store, engine
    finally:
        engine.dispose()
        store.close_sync()


@asynccontextmanager
async def opened_async(driver: str, place: Place) -> AsyncIterator[tuple[SQLStore, AsyncEngine]]:
    kind = "sqlite" if driver == "aiosqlite" else "postgresql"
    with opened(kind, place) as (store, _):
        url = f"sqlite+aiosqlite:///{place.directory}/app.db" if kind == "sqlite" else place.with_driver(driver)
        engine = create_async_engine(url)
        yield store, engine
        await engine.dispose()


def orders(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM orders")).scalar_one())


KINDS = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


DRIVERS = pytest.mark.parametrize("driver", ["aiosqlite", "asyncpg", "psycopg"])

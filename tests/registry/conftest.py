"""A registered toy, and stores of every kind that have it, in places of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from firefly_memory import EntryStore, InMemoryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.facets import registered
from tests.support.backends import Place
from tests.support.spare_places import lent_database, lent_schema
from tests.toy_facet.facet import toys

KINDS = ["memory", "sqlite", "asyncpg", "psycopg", "engine", "mongodb", "motor"]

Open = Callable[[], EntryStore]


@pytest.fixture
def toy(toy_revisions: Path) -> Iterator[None]:
    with registered(toys(toy_revisions)):
        yield


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, place: Place, toy: None) -> Iterator[Open]:
    """Each call opens a store on the same data."""
    kind = request.param
    if kind == "memory":
        yield InMemoryStore
    elif kind == "sqlite":
        yield lambda: SQLiteStore(place.directory / "toys.db")
    elif kind in ("mongodb", "motor"):
        with lent_database(place.mongodb()) as own:
            yield partial(_on_mongodb, place, kind, own)
    else:
        with lent_schema(place.postgresql()) as own, ExitStack() as later:
            if kind == "engine":
                engine = create_engine(place.with_driver("psycopg"))
                later.callback(engine.dispose)
                yield lambda: PostgreSQLStore(engine=engine, schema_name=own)
            else:
                yield lambda: PostgreSQLStore(place.with_driver(kind), schema_name=own, pool_min_size=0)


def _on_mongodb(place: Place, kind: str, own: str) -> EntryStore:
    if kind == "mongodb":
        return MongoDBStore(place.mongodb(), database=own)
    from motor.motor_asyncio import AsyncIOMotorClient

    client: Any = AsyncIOMotorClient(place.mongodb())  # of this event loop
    place.later.callback(client.close)
    return MongoDBStore(client=client, database=own)

"""A registered toy, and stores of every kind that have it, in places of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import create_engine

from firefly_memory import EntryStore, InMemoryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.facets import registered
from tests.support.backends import Place
from tests.toy_facet.facet import toys

KINDS = ["memory", "sqlite", "asyncpg", "psycopg", "engine", "mongodb", "motor"]

Open = Callable[[], EntryStore]


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[None]:
    with registered(toys(tmp_path / "revisions")):
        yield


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, place: Place, toy: None) -> Iterator[Open]:
    """Each call opens a store on the same data."""
    own = f"toys_{uuid4().hex[:12]}"
    match request.param:
        case "memory":
            yield InMemoryStore
        case "sqlite":
            yield lambda: SQLiteStore(place.directory / "toys.db")
        case "mongodb":
            yield lambda: MongoDBStore(place.mongodb(), database=own)
        case "motor":
            from motor.motor_asyncio import AsyncIOMotorClient

            def in_this_loop() -> EntryStore:
                client: Any = AsyncIOMotorClient(place.mongodb())
                place.later.callback(client.close)
                return MongoDBStore(client=client, database=own)

            yield in_this_loop
        case driver:
            if driver == "engine":
                engine = create_engine(place.with_driver("psycopg"))
                place.later.callback(engine.dispose)
                yield lambda: PostgreSQLStore(engine=engine, schema_name=own)
            else:
                yield lambda: PostgreSQLStore(place.with_driver(driver), schema_name=own)
            with psycopg.connect(place.postgresql(), autocommit=True) as admin:
                admin.execute(f"DROP SCHEMA IF EXISTS {own} CASCADE".encode())

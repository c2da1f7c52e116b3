"""Servers for the session, a place for each test, and a look at every pool after it."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, find, settings
from hypothesis.strategies import none
from pymongo import monitoring
from sqlalchemy import event
from sqlalchemy.pool import Pool

from firefly_memory import (
    EntryStore,
    InMemoryStore,
    MemoryManager,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    TokenEstimator,
)
from firefly_memory.agent_history import moving as agent_history
from firefly_memory.testing import Mode
from firefly_memory.tokens import tiktoken_loader
from tests.support import pymongo_pauses, servers
from tests.support.backends import Place
from tests.support.databases import empty_postgresql
from tests.support.empty_store import opened_empty
from tests.support.ram_disk import use_ram_disk
from tests.support.spare_places import dropped_at_the_end
from tests.support.store_caller import MakeStoreCaller, StoreCaller
from tests.support.tiktoken_vocabularies import LONG_ENOUGH, fill_cache

# A run with the oldest pydantic-ai that the extra "agents" allows says so. Its ConversationStore came later.
_WITH_OLDEST_PYDANTIC_AI = os.environ.get("FIREFLY_TEST_PYDANTIC_AI") == "oldest"
_OF_CONVERSATION_STORES = [
    "agent_history/test_*.py",
    "migrations/test_upgrade_from_earlier_version.py",
    "mongodb/test_damage.py",
    "mongodb/test_renamed_collections.py",
    "transfer/test_*agent_history*.py",
]
collect_ignore_glob = _OF_CONVERSATION_STORES if _WITH_OLDEST_PYDANTIC_AI else []


# A busy machine is slow now and then, which says nothing about the code.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

_NEW_OBJECTS = 10_000
"""The garbage collector waits for so many: with Python's 700 it takes a twentieth of the time of the tests."""


def pytest_configure(config: pytest.Config) -> None:
    use_ram_disk()
    pymongo_pauses.shorten()
    if _WITH_OLDEST_PYDANTIC_AI:  # before 2.64, tasks of pydantic-ai's own stay behind when a run is cancelled
        config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The tests and modules last until the end of the run: the collector need not look at them before each of its rounds."""
    gc.disable()
    try:
        return (yield)
    finally:
        find(none(), lambda _: True)  # the oldest Hypothesis starts only where its random numbers are not frozen yet
        gc.freeze()
        gc.set_threshold(_NEW_OBJECTS, 10, 10)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Blocking calls go through psycopg, whatever driver a URL names. With asyncpg's URL a test of them is a second look at
    the same calls, and thorough, if the test is there with psycopg's URL as well."""
    there = {item.nodeid for item in items}
    for item in items:
        name, _, parameters = item.nodeid.partition("[")
        parts = parameters.rstrip("]").split("-")
        if "blocking" in parts and "asyncpg" in parts:
            with_psycopg = parameters.replace("asyncpg", "psycopg", 1)
            if f"{name}[{with_psycopg}" in there:
                item.add_marker(pytest.mark.thorough)


class _Connections(monitoring.ConnectionPoolListener):
    """Counts the connections that are checked out of any pool of this process."""

    def __init__(self) -> None:
        self.out: set[Any] = set()

    def checked_out(self, dbapi_connection: object, record: object, _: object) -> None:
        self.out.add(id(record))

    def checked_in(self, dbapi_connection: object, record: object) -> None:
        self.out.discard(id(record))

    def connection_checked_out(self, event: monitoring.ConnectionCheckedOutEvent) -> None:
        self.out.add((event.address, event.connection_id))

    def connection_checked_in(self, event: monitoring.ConnectionCheckedInEvent) -> None:
        self.out.discard((event.address, event.connection_id))

    def connection_closed(self, event: monitoring.ConnectionClosedEvent) -> None:
        self.out.discard((event.address, event.connection_id))

    def _nothing(self, event: Any) -> None:
        """The other events, which PyMongo wants a method for as well."""

    pool_created = pool_ready = pool_cleared = pool_closed = _nothing
    connection_created = connection_ready = connection_check_out_started = connection_check_out_failed = _nothing


_connections = _Connections()
event.listen(Pool, "checkout", _connections.checked_out)
event.listen(Pool, "checkin", _connections.checked_in)
monitoring.register(_connections)


@pytest.fixture(autouse=True)
def _no_connection_is_left_behind() -> Iterator[None]:
    yield
    left, _connections.out = _connections.out, set()
    assert not left, "connections were not given back"


@pytest.fixture(scope="session", autouse=True)
def directory_of_vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As on a machine that has tiktoken's vocabularies: nothing is downloaded, in processes that are started either."""
    directory = fill_cache(tmp_path_factory.mktemp("vocabularies"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(directory))
        patch.setattr(tiktoken_loader, "LOAD_TIMEOUT", LONG_ENOUGH)
        assert TokenEstimator().prepare(LONG_ENOUGH)  # so that coroutines count, too
        yield directory


@pytest.fixture(scope="session")
def servers_of_the_session() -> Iterator[dict[str, Callable[[], str]]]:
    """Each server is started when its URL is asked for, and lasts until the end."""
    with ExitStack() as running:

        def started(server: AbstractContextManager[str]) -> str:
            return running.enter_context(dropped_at_the_end(running.enter_context(server)))

        yield {
            "postgresql": cache(lambda: started(servers.postgresql())),
            "mongodb": cache(lambda: started(servers.mongodb())),
        }


@pytest.fixture(scope="session")
def toy_revisions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the revisions of one toy are. What is made of the same facets is made once."""
    return tmp_path_factory.mktemp("toy_revisions")


@pytest.fixture(scope="session")
def new_sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with empty tables, to be copied: a test whose subject is another need not wait for the migrations."""
    path = tmp_path_factory.mktemp("new_sqlite_file") / "memory.db"
    with SQLiteStore(path):
        return path


@pytest.fixture
def using() -> Iterator[MakeStoreCaller]:
    """Makes stores to be used in one mode, and closes them."""
    made: list[StoreCaller] = []

    def use(store: EntryStore, mode: Mode) -> StoreCaller:
        made.append(StoreCaller(store, mode))
        return made[-1]

    yield use
    for used in made:
        used.close()


@pytest.fixture
def place(tmp_path: Path, servers_of_the_session: dict[str, Callable[[], str]]) -> Iterator[Place]:
    with ExitStack() as later:
        yield Place(tmp_path, servers_of_the_session["postgresql"], servers_of_the_session["mongodb"], later)


@pytest.fixture(params=["memory", "sqlite", "asyncpg", "psycopg", "mongodb"])
async def store(request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path) -> AsyncIterator[EntryStore]:
    """A store of each kind, with nothing in it, for what is built on stores."""
    async with opened_empty(_of_kind(request.param, place, new_sqlite_file), "any_store") as store:
        yield store


def _of_kind(kind: str, place: Place, new_sqlite_file: Path) -> EntryStore:
    """On servers: a schema or database that no other test uses; no connection is opened before a test needs it."""
    if kind == "memory":
        return InMemoryStore()
    if kind == "sqlite":
        return SQLiteStore(shutil.copy(new_sqlite_file, place.directory / "memory.db"))
    if kind == "mongodb":
        return MongoDBStore(place.mongodb(), database="any_store")
    return PostgreSQLStore(place.with_driver(kind), schema_name="any_store", pool_min_size=0)


@pytest.fixture
def manager(store: EntryStore) -> MemoryManager:
    return MemoryManager(store=store)


@pytest.fixture
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few messages of a conversation fill a page of a transfer."""
    monkeypatch.setattr(agent_history, "_PAGE", 4)


@pytest.fixture
def admin(place: Place) -> Iterator[psycopg.Connection[Any]]:
    """A connection to PostgreSQL that may do anything."""
    with psycopg.connect(place.postgresql(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def name(admin: psycopg.Connection[Any]) -> Iterator[str]:
    """The name of a schema of the test's own, which is dropped after it."""
    name = f"own_{uuid4().hex[:12]}"
    yield name
    admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@pytest.fixture
def postgresql(place: Place) -> Iterator[str]:
    """The URL of an empty PostgreSQL database of the test's own."""
    with empty_postgresql(place.postgresql()) as url:
        yield url


@pytest.fixture
def sqlite(place: Place) -> str:
    """The URL of an SQLite database of the test's own, whose file is not there yet."""
    return f"sqlite:///{place.directory}/memory.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """Of an empty database of the test's own."""
    return str(request.getfixturevalue(request.param))

"""R12 for stores on a server: down at the start, lost in the middle, hanging. Each is one clear error, nothing is lost,
and the store goes on by itself when the server is back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from firefly_memory import (
    DatabaseConnectionError,
    EntryStore,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    StoreTimeoutError,
)
from firefly_memory.testing import Mode
from tests.support.servers import EmbeddedMongoDB, EmbeddedPostgreSQL, Server
from tests.support.store_caller import MakeStoreCaller

pytestmark = pytest.mark.thorough


@dataclass(frozen=True)
class Kind:
    name: str
    serve: Callable[[], Server]
    open: Callable[[str, float, str], EntryStore]
    """A store on the server with this URL, with a time-out and a place of its own."""

    def __str__(self) -> str:
        return self.name


def _postgresql(driver: str) -> Callable[[str, float, str], EntryStore]:
    def store(url: str, timeout: float, name: str) -> EntryStore:
        url = url.replace("postgresql://", f"postgresql+{driver}://")
        return PostgreSQLStore(url, timeout=timeout, schema_name=name)

    return store


KINDS = [
    Kind("postgresql-asyncpg", EmbeddedPostgreSQL, _postgresql("asyncpg")),
    Kind("postgresql-psycopg", EmbeddedPostgreSQL, _postgresql("psycopg")),
    Kind("mongodb", EmbeddedMongoDB, lambda url, timeout, name: MongoDBStore(url, timeout=timeout, database=name)),
]
IN_BOTH_MODES = pytest.mark.parametrize("mode", Mode)


@pytest.fixture(scope="module", params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


@pytest.fixture(scope="module")
def server(kind: Kind) -> Iterator[Server]:
    """A server of this module's own, to be stopped and frozen at will."""
    server = kind.serve()
    server.start()
    yield server
    server.remove()


@IN_BOTH_MODES
def test_a_server_that_is_down_is_an_error_and_is_used_when_it_is_back(
    kind: Kind, mode: Mode, server: Server, using: MakeStoreCaller
) -> None:
    store = using(kind.open(server.url, 3, f"down_{mode}"), mode)
    server.stop()
    try:
        with pytest.raises(DatabaseConnectionError, match=r"127\.0\.0\.1") as caught:
            store("save", "n", MemoryEntry())
        assert caught.value.retryable
    finally:
        server.start()
    store("save", "n", MemoryEntry(content="up again"))
    assert store("count", "n") == 1


@IN_BOTH_MODES
def test_a_store_reconnects_to_a_restarted_server(
    kind: Kind, mode: Mode, server: Server, using: MakeStoreCaller
) -> None:
    store = using(kind.open(server.url, 3, f"lost_{mode}"), mode)
    store("save", "n", MemoryEntry(content="before"))
    server.kill()
    try:
        for _ in range(2):
            with pytest.raises((DatabaseConnectionError, StoreTimeoutError), match=r"127\.0\.0\.1") as caught:
                store("save", "n", MemoryEntry(content="lost"))
            assert caught.value.retryable
    finally:
        server.start()
    assert [entry.content for entry in store("load", "n")] == ["before"], "kill -9 loses nothing acknowledged"
    store("save_many", "n", [MemoryEntry(content="after"), MemoryEntry(content="after")])
    assert store("count", "n") == 3


@IN_BOTH_MODES
def test_a_hanging_server_ends_in_a_time_out(kind: Kind, mode: Mode, server: Server, using: MakeStoreCaller) -> None:
    store = using(kind.open(server.url, 1, f"hanging_{mode}"), mode)
    store("count", "n")
    server.freeze()
    started = time.monotonic()
    try:
        with pytest.raises((DatabaseConnectionError, StoreTimeoutError), match=r"127\.0\.0\.1") as caught:
            store("save", "n", MemoryEntry())
        assert caught.value.retryable
        assert time.monotonic() - started < 20
    finally:
        server.thaw()
    entry = MemoryEntry()
    store("save", "n", entry)
    assert entry in store("load", "n")

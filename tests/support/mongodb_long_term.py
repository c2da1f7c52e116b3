"""Long-term memory in databases of MongoDB, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from firefly_memory import EntryStore, MongoDBStore
from firefly_memory.longterm.rows import FactRow
from firefly_memory.testing import Mode
from tests.support.long_term_logs import LongTerm, fact
from tests.support.mongodb_tombstones import Somewhere
from tests.support.servers import EmbeddedMongoDB

FACTS, VERSIONS, USERS = "memory_facts", "memory_fact_versions", "memory_users"
VECTORS, SIGNATURES = f"{FACTS}_vectors", f"{FACTS}_signatures"


class Stored(LongTerm):
    """The operations of a store in one mode, in a database of the test's own."""

    def __init__(self, somewhere: Somewhere, store: EntryStore, mode: Mode = Mode.BLOCKING) -> None:
        super().__init__(store, mode)
        self.somewhere = somewhere
        self.store = store

    def contents(self) -> dict[str, list[dict[str, Any]]]:
        """What there is of long-term memory, without tombstones and markers."""
        return contents(self.somewhere)

    def markers(self) -> list[dict[str, Any]]:
        return list(self.somewhere.database[FACTS].find({"key": b"moved"}).sort("_id"))


def contents(somewhere: Somewhere) -> dict[str, list[dict[str, Any]]]:
    """The documents of facts, versions, people, vectors and signatures, without tombstones and markers."""
    ours = (FACTS, VERSIONS, USERS, VECTORS, SIGNATURES)
    return {name: found for name, found in somewhere.contents().items() if name in ours and found}


_ON = [("replica set", Mode.BLOCKING), ("standalone", Mode.SUSPENDING)]
_THEN_ON = [("replica set", Mode.SUSPENDING), ("standalone", Mode.BLOCKING)]


@pytest.fixture(
    params=[*_ON, *(pytest.param(each, marks=pytest.mark.thorough) for each in _THEN_ON)],
    ids=lambda each: f"{each[0]}, {each[1]}",
)
def server_and_mode(request: pytest.FixtureRequest) -> tuple[str, Mode]:
    found: tuple[str, Mode] = request.param
    return found


@pytest.fixture
def server(server_and_mode: tuple[str, Mode]) -> str:
    return server_and_mode[0]


# A database for all tests of a module: to make the indexes takes longer than most tests.


@pytest.fixture(scope="module")
def database_of_replica_set(servers_of_the_session: dict[str, Callable[[], str]]) -> Iterator[Somewhere]:
    with ExitStack() as later:
        yield Somewhere(servers_of_the_session["mongodb"](), later)


@pytest.fixture(scope="module")
def database_of_standalone(standalone: EmbeddedMongoDB) -> Iterator[Somewhere]:
    with ExitStack() as later:
        yield Somewhere(standalone.url, later)


@pytest.fixture
def replica_set(database_of_replica_set: Somewhere) -> Iterator[Somewhere]:
    with emptied(database_of_replica_set):
        yield database_of_replica_set


@pytest.fixture
def somewhere(server: str, request: pytest.FixtureRequest) -> Iterator[Somewhere]:
    found: Somewhere = request.getfixturevalue(f"database_of_{server.replace(' ', '_')}")
    with emptied(found):
        yield found


@contextmanager
def emptied(somewhere: Somewhere) -> Iterator[None]:
    """Without documents when the test has ended."""
    try:
        yield
    finally:
        for name in somewhere.database.list_collection_names():
            somewhere.database[name].delete_many({})


@pytest.fixture
async def stored(somewhere: Somewhere, server_and_mode: tuple[str, Mode]) -> AsyncIterator[Stored]:
    """The long-term memory of a store, on each server and in each mode."""
    async with somewhere.store() as store:
        yield Stored(somewhere, store, server_and_mode[1])


@contextmanager
def rivals(somewhere: Somewhere, listener: Any) -> Iterator[tuple[Stored, Stored]]:
    """A store whose commands are listened to, and another one. Both have made their indexes."""
    with somewhere.listened(listener) as store, MongoDBStore(somewhere.url, database=somewhere.name) as other:
        for each in (store, other):
            each.count("warm")
        yield Stored(somewhere, store), Stored(somewhere, other)


def of(name: str, key: str = "k", value: Any = "value", **options: Any) -> FactRow:
    """A person's own fact."""
    return fact(key, value, scope="user", scope_id=name, **options)


def versions_are_whole(somewhere: Somewhere) -> bool:
    """Whether each fact has the versions that it counts, and no vector or version is without its fact."""
    found = contents(somewhere)
    ids = {each["_id"]: each["versions"] for each in found.get(FACTS, [])}
    numbers: dict[str, list[int]] = {name: [] for name in ids}
    for each in found.get(VERSIONS, []):
        numbers.setdefault(each["fact_id"], []).append(each["number"])
    vectors = {each["id"] for name in (VECTORS, SIGNATURES) for each in found.get(name, [])}
    counted = {name: list(range(1, ids.get(name, 0) + 1)) for name in numbers}
    return {name: sorted(each) for name, each in numbers.items()} == counted and vectors <= ids.keys()

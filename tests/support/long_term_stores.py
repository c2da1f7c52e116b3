"""Services of long-term memory for tests, on each kind of store in both modes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from firefly_memory import EntryStore
from firefly_memory.longterm import MemoryService
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.backends import Place
from tests.support.knowledge_stores import IN_EACH, IN_ONE_SERVER, STORES, Make

COMMON = "long_term_of_tests"
"""The schema or database that the tests share. Each test has a space of its own in it."""


@pytest.fixture
async def make(kind: str, mode: Mode, place: Place, new_sqlite_file: Path) -> AsyncIterator[Make]:
    """Makes a ``MemoryService`` of this test's own space, all of whose methods are to be awaited."""
    async with STORES[kind](place, new_sqlite_file, COMMON) as store:
        yield made_in(store, mode)


def made_in(store: EntryStore, mode: Mode) -> Make:
    space = uuid4().hex
    return lambda **options: Memory(MemoryService(store, **{"space": space, "embedder": None, **options}), mode)


@pytest.fixture
def service(make: Make) -> Memory:
    """The service of this test's own space, without an embedder."""
    return make()


_DATABASES = {"memory": 0, "sqlite": 1, "asyncpg": 2, "psycopg": 2, "mongodb": 3}
_DRIVERS = {Mode.BLOCKING: "psycopg", Mode.SUSPENDING: "asyncpg"}


def in_turns(items: Sequence[pytest.Item]) -> None:
    """The quick part runs each test once on each database. The modes and PostgreSQL's drivers take turns, and the
    rest is thorough."""
    looks: dict[tuple[str, ...], dict[int, list[tuple[pytest.Item, str, Mode | None]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for item in items:
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        kind = next((each for each in given if isinstance(each, str) and each in _DATABASES), None)
        if kind is not None and item.get_closest_marker("thorough") is None:
            mode = next((each for each in given if isinstance(each, Mode)), None)
            name, _, parameters = item.nodeid.rstrip("]").partition("[")
            others = [each for each in parameters.split("-") if each not in (kind, str(mode))]
            looks[name, *others][_DATABASES[kind]].append((item, kind, mode))
    for number, of_test in enumerate(looks.values()):
        for database, there in of_test.items():
            turn = list(Mode)[(number + database) % 2]
            best = sorted(there, key=lambda look: (look[2] is turn, look[1] == _DRIVERS[turn]), reverse=True)
            for item, _, _ in best[1:]:
                item.add_marker(pytest.mark.thorough)


__all__ = ["COMMON", "IN_EACH", "IN_ONE_SERVER", "STORES", "Make", "in_turns", "made_in", "make", "service"]

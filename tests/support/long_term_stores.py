"""Services of long-term memory for tests, on each kind of store in both modes."""

from __future__ import annotations

from collections.abc import AsyncIterator
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


__all__ = ["COMMON", "IN_EACH", "IN_ONE_SERVER", "STORES", "Make", "made_in", "make", "service"]

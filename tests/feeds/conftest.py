"""Message stores on every backend, and those of users."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from firefly_memory.feeds.message_stores import StoredMessages
from firefly_memory.testing.rules.feed_stores import message_store as message_store_on
from tests.support.backends import Place
from tests.support.knowledge_stores import STORES
from tests.support.users_message_stores import AsyncMessageStore, InMemoryMessageStore

IN_COMMON = "feeds_of_tests"
"""The schema or database that these tests share. Each test has a location of its own in it."""

USERS: dict[str, Callable[[], Any]] = {"a user's": InMemoryMessageStore, "a user's, async": AsyncMessageStore}


@pytest.fixture(params=[*STORES])
async def message_store(
    request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path
) -> AsyncIterator[StoredMessages]:
    """A message store of the library, on each kind of store."""
    async with _opened(request.param, place, new_sqlite_file) as store:
        yield store


@pytest.fixture(params=[*STORES, *USERS])
async def any_store(request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path) -> AsyncIterator[Any]:
    """A message store of each kind, and of users."""
    if request.param in USERS:
        yield USERS[request.param]()
    else:
        async with _opened(request.param, place, new_sqlite_file) as store:
            yield store


@asynccontextmanager
async def _opened(kind: str, place: Place, new_sqlite_file: Path) -> AsyncIterator[StoredMessages]:
    async with STORES[kind](place, new_sqlite_file, IN_COMMON) as store:
        yield message_store_on(store)


@pytest.fixture
def location() -> str:
    """A location that no other test uses."""
    return f"job {uuid4().hex}"

"""Facts in somebody's transaction, in a forked process, and after many more calls than the rules make.

The rules of long-term memory are in ``firefly_memory.testing.rules``. They run on every backend, on engines and clients
of the user, in both modes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from firefly_memory import ConfigurationError, EntryStore, SQLiteStore
from firefly_memory.longterm import MemoryService
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from firefly_memory.testing.rules.long_term_histories import play
from tests.support.backends import Place
from tests.support.bound_stores import DRIVERS, KINDS, opened, opened_async
from tests.support.forked_child import in_child
from tests.support.long_term_stores import COMMON, IN_EACH, STORES, Make


@KINDS
def test_a_row_and_facts_commit_or_roll_back_together(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        service = MemoryService(store, space=uuid4().hex, embedder=None)
        for commits in (False, True):
            with engine.connect() as connection:
                connection.execute(text("INSERT INTO orders VALUES (1)"))
                bound = MemoryService(store.bind(connection), space=service.space, embedder=None)
                made = bound.set_fact("boat", "old")
                assert bound.set_fact("boat", "new").id == made.id
                assert bound.get_fact("boat") == "new"
                assert [hit.fact.value for hit in bound.search_facts("boat", mode="text")] == ["new"]
                assert [each.value for each in bound.history(made.id)] == ["old"]
                assert list(service.list_facts()) == [], "nobody else sees it yet"
                if commits:
                    connection.commit()
            assert [each.times_confirmed for each in service.list_facts()] == [2] * commits
            assert len(service.search_facts("new")) == int(commits)
        assert service.delete_fact(made.id)


@KINDS
async def test_every_method_works_in_the_callers_transaction(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        space = uuid4().hex
        with engine.connect() as connection:
            bound = MemoryService(store.bind(connection), space=space, embedder=None)
            await play(Memory(bound, Mode.BLOCKING), seed=4, calls=60)
            assert bound.list_users()
        assert list(MemoryService(store, space=space, embedder=None).list_users()) == []


@DRIVERS
async def test_every_method_works_in_the_callers_asynchronous_transaction(driver: str, place: Place) -> None:
    async with opened_async(driver, place) as (store, engine):
        space = uuid4().hex
        async with engine.connect() as connection:
            bound = MemoryService(store.bind(connection), space=space, embedder=None)
            await play(Memory(bound, Mode.SUSPENDING), seed=4, calls=60)
            assert await bound.async_list_users()
        assert list(await MemoryService(store, space=space, embedder=None).async_list_users()) == []


def test_a_first_fact_that_is_rolled_back_decides_no_language(place: Place) -> None:
    with opened("sqlite", place) as (store, engine), engine.connect() as connection:
        bound = MemoryService(store.bind(connection), embedder=None, language="german")
        bound.set_fact("k", "Die Häuser")
        connection.rollback()
        MemoryService(store, embedder=None).set_fact("k", "houses")
        with pytest.raises(ConfigurationError, match="english"):
            bound.set_fact("k", "Die Häuser")


@pytest.mark.thorough
@pytest.mark.no_cover
@IN_EACH
@pytest.mark.parametrize("seed", range(6))
async def test_many_calls_in_random_order_leave_what_they_leave_in_dicts(make: Make, seed: int) -> None:
    await play(make(), seed, calls=200)


@pytest.fixture
def forking(kind: str, place: Place, new_sqlite_file: Path) -> Iterator[EntryStore]:
    store = STORES[kind](place, new_sqlite_file, COMMON)
    yield store
    store.close_sync()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", STORES)
def test_a_forked_child_reads_and_writes(kind: str, forking: EntryStore) -> None:
    service = MemoryService(forking, space=uuid4().hex, embedder=None)
    service.set_fact("k", "of the parent")

    def child() -> None:
        assert service.get_fact("k") == "of the parent"
        service.set_fact("blocking", 1)
        asyncio.run(service.async_set_fact("suspending", 2))
        assert len(service.list_facts()) == 3

    assert in_child(child) == 0
    assert service.get_fact("k") == "of the parent"
    assert len(service.list_facts()) == (1 if kind == "memory" else 3)


def test_a_file_of_an_application_keeps_facts_for_the_next_process(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        made = MemoryService(store, embedder=None).set_fact("timezone", "Australia/Adelaide")
    with SQLiteStore(tmp_path / "memory.db") as store:
        assert MemoryService(store, embedder=None).read_fact(made.id) == made


@pytest.mark.parametrize(
    ("ids", "scope"),
    [
        ({}, "global"),
        ({"agent_id": "tutor"}, "agent"),
        ({"agent_id": "tutor", "user_id": "chat:ann"}, "user"),
        ({"agent_id": "tutor", "user_id": "chat:ann", "session_id": "chat-7"}, "session"),
    ],
)
async def test_a_fact_without_a_scope_is_that_of_the_most_specific_id(ids: dict[str, Any], scope: str) -> None:
    service = MemoryService(embedder=None)
    fact = await service.async_set_fact("k", 1, **ids)
    assert (fact.scope, fact.user_id) == (scope, ids.get("user_id"))
    assert service.get_fact("k") == (1 if scope == "global" else None)
    assert service.set_fact("k", 2, scope="global", **ids).scope == "global"

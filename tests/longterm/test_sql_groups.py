"""Facts that callers of one event loop read and write at the same moment: together on SQLite, each with its own
answer."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import CorruptDataError, ErasedError, SQLiteStore
from firefly_memory.databases.sql.session import DriverSession
from firefly_memory.erasure import erase
from firefly_memory.longterm import MemoryService

CALLERS = 32


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    """With a fact, so that the language is known and writes may go together."""
    async with SQLiteStore(tmp_path / "memory.db") as store:
        service = MemoryService(store, embedder=None)
        for name in ("Ann", "Bob", "Cleo"):
            await service.async_get_or_create_user("chat", name)
        await service.async_set_fact("first", 1)
        yield service


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The transactions of several statements that were ended."""
    real, ended = DriverSession._command, list[str]()

    def noted(session: DriverSession, sql: str) -> None:
        real(session, sql)
        ended.extend([sql] if sql == "COMMIT" else [])

    monkeypatch.setattr(DriverSession, "_command", noted)
    return ended


async def test_callers_store_facts_in_a_few_transactions_and_each_gets_its_own_fact(
    service: MemoryService, commits: list[str]
) -> None:
    facts = await asyncio.gather(*[service.async_set_fact(f"k{number}", number) for number in range(CALLERS)])
    assert [(each.key, each.value) for each in facts] == [(f"k{number}", number) for number in range(CALLERS)]
    assert len(commits) <= 4, commits
    assert {each.key: each.value for each in await service.async_list_facts()} == {
        "first": 1,
        **{each.key: each.value for each in facts},
    }


async def test_writes_to_one_key_are_made_in_their_order(service: MemoryService) -> None:
    written = await asyncio.gather(*[service.async_set_fact("k", number) for number in range(8)])
    assert [each.times_confirmed for each in written] == list(range(1, 9))
    assert [each.value for each in await service.async_history(written[0].id)] == list(range(7))


async def test_callers_count_their_reads_together_and_no_read_is_lost(
    service: MemoryService, commits: list[str]
) -> None:
    others = [service.async_get_fact("nothing", default="none") for _ in range(4)]
    found = await asyncio.gather(*[service.async_get_fact("first") for _ in range(CALLERS)], *others)
    assert found == [1] * CALLERS + ["none"] * 4
    assert len(commits) <= 4, commits
    fact = await service.async_find_fact("first", "global")
    assert fact is not None
    assert fact.access_count == CALLERS


async def test_a_refused_write_fails_for_its_own_caller_only(service: MemoryService, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as other:
        erase(other, "chat:Ann")
    calls = [service.async_set_fact(f"k{number}", number) for number in range(6)]
    refused = service.async_set_fact("k", 1, user_id="chat:Ann")
    results = await asyncio.gather(*calls[:3], refused, *calls[3:], return_exceptions=True)
    assert isinstance(results.pop(3), ErasedError)
    assert [getattr(each, "value", each) for each in results] == list(range(6))


async def test_a_fact_of_a_merged_person_goes_to_the_other_person_among_others(service: MemoryService) -> None:
    await service.async_merge_users("chat:Bob", "chat:Cleo")
    names = ["Ann", "Bob", "Cleo", "Ann", "Bob"]
    calls = [service.async_set_fact(f"k{number}", 1, user_id=f"chat:{name}") for number, name in enumerate(names)]
    facts = await asyncio.gather(*calls)
    assert [each.user_id for each in facts] == ["chat:Ann", "chat:Cleo", "chat:Cleo", "chat:Ann", "chat:Cleo"]


async def test_a_damaged_fact_is_an_error_of_its_own_caller_only(service: MemoryService, tmp_path: Path) -> None:
    await service.async_set_fact("damaged", 1)
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("UPDATE memory_facts SET confidence = 7 WHERE key = 'damaged'")
    connection.close()
    for call in (service.async_get_fact, lambda key: service.async_set_fact(key, 1)):
        keys = ["first", "first", "damaged", "first"]
        results: list[Any] = await asyncio.gather(*[call(key) for key in keys], return_exceptions=True)
        assert [isinstance(each, CorruptDataError) for each in results] == [key == "damaged" for key in keys], results
    counted = await service.async_find_fact("first", "global")
    assert counted is not None
    assert counted.access_count == 3, "what was counted with the damaged fact was undone, and counted once"


async def test_a_cancelled_caller_takes_nobody_with_it(service: MemoryService) -> None:
    tasks = [asyncio.create_task(service.async_set_fact(f"k{number}", number)) for number in range(8)]
    await asyncio.sleep(0)
    tasks[5].cancel()
    results: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results.pop(5), asyncio.CancelledError)
    assert [each.value for each in results] == [0, 1, 2, 3, 4, 6, 7]
    there = {each.key for each in await service.async_list_facts()}
    assert there - {"k5"} == {"first", *(each.key for each in results)}

"""Group commit of turns on SQL: each turn has the same result as if it were appended alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from firefly_memory import ConversationMemory, EntryStore, MemoryEntry, PostgreSQLStore, SQLiteStore
from firefly_memory.concurrency import group_commit
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.sql import operations as conversation_operations
from firefly_memory.erasure import async_erase
from firefly_memory.errors import ErasedError, OutcomeUnknownError
from tests.support.backends import Place
from tests.support.turns import a_turn, is_gap_free, new_id

Open = Callable[[Place], EntryStore]


def on(driver: str) -> Open:
    return lambda place: PostgreSQLStore(place.postgresql().replace("postgresql://", f"postgresql+{driver}://"))


POSTGRESQL = [pytest.param(on("asyncpg"), id="asyncpg"), pytest.param(on("psycopg"), id="psycopg")]
EVERYWHERE = pytest.mark.parametrize(
    "open_store", [pytest.param(lambda place: SQLiteStore(place.directory / "memory.db"), id="sqlite"), *POSTGRESQL]
)


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many turns there were in each group."""
    monkeypatch.setattr(group_commit, "_OVERDUE", 30.0)  # or a busy machine has some go ahead
    sizes: list[int] = []
    for name in ("append_turn", "append_group"):
        counted = getattr(conversation_operations, name)

        def counting(session: Any, *arguments: Any, work: Any = counted.work) -> Any:
            sizes.append(1 if len(arguments) > 1 else len(arguments[0]))
            return work(session, *arguments)

        monkeypatch.setattr(counted, "work", counting)
    return sizes


@EVERYWHERE
async def test_simultaneous_turns_are_appended_in_one_group(open_store: Open, place: Place, groups: list[int]) -> None:
    names = [new_id() for _ in range(3)]
    async with open_store(place) as store:
        memory = ConversationMemory(store=store)
        await memory.async_add_turn(names[0], "there before", "yes")
        turns = await asyncio.gather(
            *[memory.async_add_turn(names[n % 3], f"prompt {n}", "ä\0" * n, metadata={"n": n}) for n in range(40)]
        )
        assert sum(groups) == 41
        assert max(groups) >= 30
        for number, name in enumerate(names):
            stored = await memory.async_get_turns(name)
            assert is_gap_free(stored)
            given = sorted((turn for n, turn in enumerate(turns) if n % 3 == number), key=lambda turn: turn.turn_id)
            assert stored[1 if number == 0 else 0 :] == given, "every caller got its own turn"
            assert [turn.metadata["n"] for turn in given] == list(range(number, 40, 3)), "in the order they came"
            # The window is found by the running sums.
            newest = stored[-4:]
            window = await memory.async_get_window(name, sum(turn.token_estimate for turn in newest))
            assert window.turns == tuple(turn.turn_id for turn in newest)
            total = sum(turn.token_estimate for turn in stored)
            assert await memory.async_get_total_tokens(name) == total
            await memory.async_clear(name)


@EVERYWHERE
async def test_a_large_turn_is_appended_alone(
    open_store: Open, place: Place, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "LARGEST_GROUP_SIZE", 1_000)
    name = new_id()
    async with open_store(place) as store:
        memory = ConversationMemory(store=store)
        prompts = ["small"] * 5 + ["large" * 400] + ["small"] * 5
        await asyncio.gather(*[memory.async_add_turn(name, prompt, "") for prompt in prompts])
        assert [turn.user_prompt for turn in await memory.async_get_turns(name)] == prompts
        assert groups == [1, 4, 1, 5]
        await memory.async_clear(name)


@EVERYWHERE
async def test_turns_of_a_failed_group_are_not_appended_twice(
    open_store: Open, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the connection is lost after the commit: the answer is an error, and the turns are there."""
    name, lost = new_id(), []
    real = conversation_operations.append_group.work

    def answer_lost(session: Any, appends: Any) -> Any:
        lost.append(len(real(session, appends)))
        raise OutcomeUnknownError("append_turn", "the answer was lost", retryable=False)

    monkeypatch.setattr(conversation_operations.append_group, "work", answer_lost)
    async with open_store(place) as store:
        memory = ConversationMemory(store=store)
        turns = await asyncio.gather(*[memory.async_add_turn(name, f"prompt {n}", "") for n in range(20)])
        assert sum(lost) > 0
        stored = await memory.async_get_turns(name)
        assert is_gap_free(stored)
        assert sorted(turns, key=lambda turn: turn.turn_id) == stored
        await memory.async_clear(name)


@pytest.mark.parametrize("open_store", POSTGRESQL)
async def test_a_locked_conversation_delays_no_other(open_store: Open, place: Place) -> None:
    locked, others = new_id(), [new_id() for _ in range(10)]
    async with open_store(place) as store:
        memory = ConversationMemory(store=store)
        for name in (locked, *others):
            await memory.async_add_turn(name, "first", "")
        with psycopg.connect(place.postgresql()) as holder:
            holder.execute(
                "SELECT 1 FROM firefly_memory.memory_conversations WHERE conversation_id = %s FOR UPDATE", (locked,)
            )
            waiting = [asyncio.create_task(memory.async_add_turn(locked, f"{n}", "")) for n in range(3)]
            async with asyncio.timeout(60):
                await asyncio.gather(*[memory.async_add_turn(name, "second", "") for name in others])
            assert not any(task.done() for task in waiting)
        await asyncio.gather(*waiting)
        for name, turns in ((locked, 4), *((other, 2) for other in others)):
            stored = await memory.async_get_turns(name)
            assert is_gap_free(stored)
            assert len(stored) == turns
            await memory.async_clear(name)


@pytest.mark.parametrize("open_store", POSTGRESQL)
async def test_a_connection_lost_during_a_group_neither_loses_nor_doubles_a_turn(
    open_store: Open, place: Place
) -> None:
    name = new_id()
    async with open_store(place) as store:
        memory = ConversationMemory(store=store)
        log = store.suspending.log(CONVERSATION_LOG)
        await memory.async_add_turn(name, "first", "")
        drafts = [a_turn(f"{n}")._replace(metadata="{}") for n in range(20)]
        with psycopg.connect(place.postgresql()) as holder:
            holder.execute(
                "SELECT 1 FROM firefly_memory.memory_conversations WHERE conversation_id = %s FOR UPDATE", (name,)
            )
            tasks = [asyncio.create_task(log.append(name, draft, None)) for draft in drafts]
            blocked = 0
            async with asyncio.timeout(60):
                while not blocked:
                    blocked = holder.execute(_CUT).rowcount
                    await asyncio.sleep(0)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        stored = await log.turns(name, -1, None)
        assert is_gap_free(stored)
        there = [turn.append_id for turn in stored[1:]]
        assert len(there) == len(set(there))
        assert {d.append_id for d, r in zip(drafts, results, strict=True) if not isinstance(r, Exception)} <= set(there)
        await memory.async_clear(name)


_CUT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND wait_event_type = 'Lock' AND query LIKE '%memory_turns%'"""


async def test_turns_beside_a_turn_that_is_refused_are_stored_once(place: Place) -> None:
    """Also if SQLite begins the group again, because another writer of the process is in the way."""
    path = place.directory / "memory.db"
    for number in range(12):
        async with SQLiteStore(path) as eraser, SQLiteStore(path) as store:
            memory, mine = ConversationMemory(store=store), f"mine {number}"
            await memory.async_add_turn(mine, "prompt", "answer")
            erased = await memory.async_new_conversation(owner=f"ann {number}")
            await async_erase(eraser, f"ann {number}")

            async def is_stored(name: str, memory: ConversationMemory = memory) -> bool:
                try:
                    await memory.async_add_turn(name, "prompt", "answer")
                except ErasedError:
                    return False
                return True

            turns = [is_stored(name) for name in (erased, mine) * 4]
            others = [store.async_save("others", MemoryEntry(content=place)) for place in range(20)]
            stored = (await asyncio.gather(*turns, *others))[:8]
            assert list(stored) == [False, True] * 4
            assert len(await memory.async_get_turns(mine)) == 5

"""What prune deletes, and what it leaves, on every kind of store and in both modes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    ConversationMemory,
    EntryStore,
    InvalidEntryError,
    MemoryEntry,
    WorkingMemory,
)
from firefly_memory.clock import now
from firefly_memory.conversations import retention as pruning_of_conversations
from firefly_memory.retention import Pruned, async_prune, prune
from firefly_memory.testing import Mode
from firefly_memory.testing.clock import StoppedClock, stopped

Prune = Callable[..., Awaitable[Pruned]]


@pytest.fixture(params=Mode)
def prune_it(request: pytest.FixtureRequest, store: EntryStore) -> Prune:
    async def call(**options: Any) -> Pruned:
        if request.param is Mode.BLOCKING:
            return prune(store, **options)
        return await async_prune(store, **options)

    return call


@pytest.fixture
def clock() -> Iterator[StoppedClock]:
    with stopped() as clock:
        yield clock


async def talk(store: EntryStore, clock: StoppedClock) -> None:
    """A conversation each day: of Ann on even days, of nobody on odd ones; the last is six days younger than the
    first. Then a turn in the first one."""
    memory = ConversationMemory(store=store)
    for day in range(7):
        await memory.async_add_turn(f"day {day}", "question", "answer", owner=None if day % 2 else "ann")
        clock.advance(days=1)
    await memory.async_add_turn("day 0", "question", "answer")
    await memory.async_new_conversation("empty")


async def left(store: EntryStore) -> list[str]:
    return sorted(await ConversationMemory(store=store).async_conversation_ids())


async def test_conversations_go_whose_newest_turn_is_older(
    store: EntryStore, prune_it: Prune, clock: StoppedClock
) -> None:
    await talk(store, clock)
    pruned = await prune_it(older_than="3d")
    assert pruned == Pruned({"conversations": 3, "turns": 3, "working-facts": 0}, is_dry_run=False)
    assert await left(store) == ["day 0", "day 4", "day 5", "day 6", "empty"]
    assert (await prune_it(older_than=timedelta(days=3))).rows == {}
    clock.advance(days=3, microseconds=1)
    assert (await prune_it(older_than=3 * 24 * 3600)).rows["conversations"] == 5
    assert await left(store) == []


async def test_the_newest_of_each_owner_stay(store: EntryStore, prune_it: Prune, clock: StoppedClock) -> None:
    await talk(store, clock)
    assert (await prune_it(keep_last=2)).rows["conversations"] == 4
    assert await left(store) == ["day 0", "day 5", "day 6", "empty"]


async def test_the_newest_stay_up_to_a_sum_of_tokens(store: EntryStore, prune_it: Prune, clock: StoppedClock) -> None:
    await talk(store, clock)
    of_a_turn = (await ConversationMemory(store=store).async_get_turns("day 1"))[0].token_estimate
    assert (await prune_it(max_tokens=3 * of_a_turn)).rows["conversations"] == 2
    assert await left(store) == ["day 0", "day 1", "day 3", "day 5", "day 6", "empty"]
    assert (await prune_it(max_tokens=of_a_turn)).rows["conversations"] == 4
    assert await left(store) == ["day 5", "empty"]


async def test_each_bound_holds_for_itself(store: EntryStore, prune_it: Prune, clock: StoppedClock) -> None:
    await talk(store, clock)
    await prune_it(older_than="3d", keep_last=2)
    assert await left(store) == ["day 0", "day 5", "day 6", "empty"]
    await prune_it(older_than="12h", keep_last=2)
    assert await left(store) == ["day 0", "empty"]


@pytest.mark.parametrize("bounds", [{"older_than": "12h"}, {"keep_last": 1}, {"max_tokens": 1}])
async def test_with_an_owner_nothing_of_others_goes(
    store: EntryStore, prune_it: Prune, clock: StoppedClock, bounds: Any
) -> None:
    await talk(store, clock)
    await ConversationMemory(store=store).async_add_turn("of bob", "question", "answer", owner="bob")
    clock.advance(days=1)
    before = await left(store)
    assert (await prune_it(owner="nobody", **bounds)).rows == {}
    await prune_it(owner="ann", **bounds)
    gone = set(before) - set(await left(store))
    assert gone >= {"day 2", "day 4", "day 6"}
    assert gone <= {"day 0", "day 2", "day 4", "day 6"}


async def test_a_conversation_goes_with_its_facts_and_entries_stay(
    store: EntryStore, prune_it: Prune, clock: StoppedClock
) -> None:
    await talk(store, clock)
    facts = {name: WorkingMemory(store=store, conversation_id=name) for name in ("day 1", "day 6")}
    for each in facts.values():
        await each.async_set("colour", "red")
    await WorkingMemory(store=store, scope_id="ann").async_set("colour", "blue")
    await store.async_save("notes", MemoryEntry(content="old"))
    clock.advance(days=1)
    pruned = await prune_it(older_than="3d")
    assert pruned.rows == {"conversations": 4, "turns": 4, "working-facts": 1}
    assert await facts["day 1"].async_to_dict() == {}
    assert await facts["day 6"].async_to_dict() == {"colour": "red"}
    assert await WorkingMemory(store=store, scope_id="ann").async_to_dict() == {"colour": "blue"}
    assert [entry.content for entry in await store.async_load("notes")] == ["old"]
    await store.async_clear("notes")
    await WorkingMemory(store=store, scope_id="ann").async_clear()


async def test_a_dry_run_counts_the_same_and_changes_nothing(
    store: EntryStore, prune_it: Prune, clock: StoppedClock
) -> None:
    await talk(store, clock)
    before = await left(store)
    counted = await prune_it(keep_last=1, dry_run=True)
    assert counted.is_dry_run
    assert await left(store) == before
    pruned = await prune_it(keep_last=1)
    assert (pruned.rows, pruned.is_dry_run) == (counted.rows, False)


async def test_pages_and_progress_lead_to_the_same_end(
    store: EntryStore, prune_it: Prune, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_of_conversations, "PAGE", 2)
    await talk(store, clock)
    told: list[int] = []
    pruned = await prune_it(keep_last=1, progress=lambda rows: told.append(sum(rows.values())))
    assert await left(store) == ["day 0", "empty"]
    assert told == sorted(told)
    assert len(told) >= 3
    assert told[-1] == sum(pruned.rows.values())


async def test_what_is_appended_to_while_prune_runs_stays(
    store: EntryStore, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody appends between the look at a page and its deletion."""
    await talk(store, clock)
    memory = ConversationMemory(store=store)
    delete = pruning_of_conversations.ConversationPruner.delete

    async def append_and_delete(pruner: Any, doomed: Any) -> Any:
        await memory.async_add_turn("day 3", "not lost", "answer")
        return await delete(pruner, doomed)

    clock.advance(days=2)
    with monkeypatch.context() as patch:
        patch.setattr(pruning_of_conversations.ConversationPruner, "delete", append_and_delete)
        await async_prune(store, older_than="1d")
    assert await left(store) == ["day 3"]
    assert [turn.user_prompt for turn in await memory.async_get_turns("day 3")] == ["question", "not lost"]


async def test_writers_at_the_same_time_lose_no_turn(store: EntryStore) -> None:
    memory, ids = ConversationMemory(store=store), [f"c {number}" for number in range(30)]
    with stopped(now() - timedelta(days=2)):
        for each in ids:
            await memory.async_add_turn(each, "old", "answer")
    said = [each for number, each in enumerate(ids) if number % 3]

    async def append() -> None:
        for each in said:
            await memory.async_add_turn(each, "new", "answer")

    await asyncio.gather(append(), async_prune(store, older_than="1d"))
    assert set(await left(store)) == set(said)
    for each in said:
        assert [turn.user_prompt for turn in await memory.async_get_turns(each)] in (["old", "new"], ["new"])


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"owner": "ann"},
        {"older_than": ""},
        {"older_than": "90"},
        {"older_than": "90 d"},
        {"older_than": "90D"},
        {"older_than": "-1d"},
        {"older_than": "0d"},
        {"older_than": "1.5d"},
        {"older_than": "\u0669d"},
        {"older_than": "999999999d"},
        {"older_than": 0},
        {"older_than": -1.0},
        {"older_than": float("nan")},
        {"older_than": float("inf")},
        {"older_than": True},
        {"older_than": timedelta(0)},
        {"older_than": timedelta.max},
        {"keep_last": 0},
        {"keep_last": True},
        {"keep_last": "3"},
        {"max_tokens": 0},
        {"max_tokens": 1.5},
    ],
    ids=str,
)
async def test_without_a_right_bound_nothing_is_deleted(store: EntryStore, wrong: Any) -> None:
    await ConversationMemory(store=store).async_add_turn("c", "question", "answer")
    for call in (lambda: prune(store, **wrong), lambda: asyncio.run(async_prune(store, **wrong))):
        with pytest.raises(ConfigurationError):
            await asyncio.to_thread(call)
    assert await left(store) == ["c"]


async def test_an_owner_without_a_name_is_refused(prune_it: Prune) -> None:
    with pytest.raises(InvalidEntryError):
        await prune_it(keep_last=1, owner="")

"""A conversation is deleted as it was seen, or not at all: what was appended since is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from uuid import uuid4

import pytest

from firefly_memory import ConversationMemory, EntryStore, WorkingMemory
from firefly_memory.conversations.log import CONVERSATION_LOG, ConversationLog, Head
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.testing import Mode
from firefly_memory.testing.clock import StoppedClock, stopped

OLD, NEW = "said before", "said meanwhile"


@pytest.fixture(params=Mode)
def log(request: pytest.FixtureRequest, store: EntryStore) -> ConversationLog:
    return (store.blocking if request.param is Mode.BLOCKING else store.suspending).log(CONVERSATION_LOG)


@pytest.fixture(params=[False, True], ids=["the clock goes on", "the clock stands still"])
def clock(request: pytest.FixtureRequest) -> Iterator[StoppedClock | None]:
    """An append at the very instant of the newest turn is noticed as well."""
    standing: AbstractContextManager[StoppedClock | None] = stopped() if request.param else nullcontext()
    with standing as moment:
        yield moment


async def seen(log: ConversationLog, conversation_id: str) -> Head:
    (head,) = [each for each in await log.page(1000, None, None, "updated") if each.conversation_id == conversation_id]
    return head


async def prompts(memory: ConversationMemory, conversation_id: str) -> list[str]:
    return [turn.user_prompt for turn in await memory.async_get_turns(conversation_id)]


async def test_a_conversation_that_nobody_touched_goes_with_its_facts(store: EntryStore, log: ConversationLog) -> None:
    memory, facts = ConversationMemory(store=store), WorkingMemory(store=store, conversation_id="c")
    await memory.async_add_turn("c", OLD, "answer", owner="ann")
    await memory.async_add_turn("other", OLD, "answer")
    await facts.async_set("k", 1)
    assert await log.delete("c", stored_facts_of("c"), await seen(log, "c"))
    assert [each.conversation_id for each in await memory.async_list_conversations()] == ["other"]
    assert await prompts(memory, "c") == []
    assert await facts.async_to_dict() == {}


async def test_an_empty_conversation_goes_as_well(store: EntryStore, log: ConversationLog) -> None:
    memory = ConversationMemory(store=store)
    await memory.async_new_conversation("c")
    assert await log.delete("c", None, await seen(log, "c"))
    assert await memory.async_conversation_ids() == []


async def test_a_conversation_with_a_later_turn_keeps_turns_and_facts(
    store: EntryStore, log: ConversationLog, clock: StoppedClock | None
) -> None:
    memory, facts = ConversationMemory(store=store), WorkingMemory(store=store, conversation_id="c")
    for begun in (True, False):
        if begun:
            await memory.async_add_turn("c", OLD, "answer")
            await facts.async_set("k", 1)
        before = await seen(log, "c")
        await memory.async_add_turn("c", NEW, "answer")
        assert not await log.delete("c", stored_facts_of("c"), before)
    assert await prompts(memory, "c") == [OLD, NEW, NEW]
    assert await facts.async_to_dict() == {"k": 1}
    assert await log.delete("c", stored_facts_of("c"), await seen(log, "c"))


async def test_a_conversation_that_was_made_again_stays(store: EntryStore, log: ConversationLog) -> None:
    memory = ConversationMemory(store=store)
    await memory.async_add_turn("c", OLD, "answer")
    before = await seen(log, "c")
    await memory.async_clear("c")
    assert not await log.delete("c", None, before)
    await memory.async_add_turn("c", NEW, "answer")
    assert not await log.delete("c", None, before)
    assert await prompts(memory, "c") == [NEW]


async def test_no_turn_is_lost_that_is_appended_at_the_same_moment(
    store: EntryStore, clock: StoppedClock | None
) -> None:
    memory, log = ConversationMemory(store=store), store.suspending.log(CONVERSATION_LOG)
    for number in range(20):
        name = f"c {number} {uuid4().hex}"
        await memory.async_add_turn(name, OLD, "answer")
        before = await seen(log, name)

        async def append(name: str = name, number: int = number) -> None:
            for _ in range(number % 4):
                await asyncio.sleep(0)
            await memory.async_add_turn(name, NEW, "answer")

        is_deleted, _ = await asyncio.gather(log.delete(name, None, before), append())
        assert await prompts(memory, name) == ([NEW] if is_deleted else [OLD, NEW])
        assert name in await memory.async_conversation_ids()
    assert not await log.delete("unknown", None, before)

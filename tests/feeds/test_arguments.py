"""Arguments of message stores, on every kind of store."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from firefly_memory import ConfigurationError, ConflictError, InMemoryStore, InvalidEntryError, SQLiteStore
from firefly_memory.feeds import InMemoryMessageStore, MessageStoreMemory, SQLMessageStore, StoredMessages, subscription
from firefly_memory.feeds.items import Messages
from firefly_memory.feeds.log import FEED_LOG


def test_bounds_of_clear_are_checked_where_nothing_is_to_be_deleted(
    message_store: StoredMessages, location: str
) -> None:
    for keep_last in (-1, "x", True, 1.5):
        with pytest.raises(InvalidEntryError, match="keep_last"):
            message_store.clear(location, keep_last=keep_last)  # type: ignore[arg-type]
    for older_than in ("x", timedelta(0), timedelta(days=-1)):
        with pytest.raises(ConfigurationError, match="older_than"):
            message_store.clear(location, older_than=older_than)
    message_store.append(location, {})
    assert message_store.clear(location, older_than=timedelta.max) == 0


def test_a_number_beyond_all_numbers_has_nothing_after_it(message_store: StoredMessages, location: str) -> None:
    message_store.append(location, {})
    for after in (2**63 - 1, 2**63, 10**30):
        assert message_store.get_items(location, after=after) == []


async def test_a_subscription_after_a_number_that_nobody_has_seen_is_refused(
    message_store: StoredMessages, location: str
) -> None:
    await message_store.async_append(location, {})
    with pytest.raises(ConflictError, match="subscribe again with after=0"):
        await anext(message_store.subscribe(location, after=2**70))


async def test_a_subscription_notices_a_feed_that_begins_again(
    message_store: StoredMessages, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the new feed is longer than what was seen of the old one, before the subscriber looks again."""
    log, found_nothing, look = message_store.store.suspending.log(FEED_LOG), asyncio.Event(), subscription._same_feed

    async def same_feed(*args: Any) -> Any:
        found_nothing.set()
        return await look(*args)

    monkeypatch.setattr(subscription, "_same_feed", same_feed)
    await message_store.async_append_many(location, [{"old": number} for number in range(3)])
    async with aclosing(message_store.subscribe(location, after=0, every=60)) as items:
        assert [(await anext(items)).number for _ in range(3)] == [1, 2, 3]
        waiting = asyncio.ensure_future(anext(items))
        await found_nothing.wait()
        await log.delete(location)
        await message_store.async_append_many(location, [{"new": number} for number in range(5)])
        with pytest.raises(ConflictError, match="subscribe again with after=0"):
            await waiting


def test_keys_that_are_no_texts_are_refused(message_store: StoredMessages, location: str) -> None:
    wrong: Any
    for wrong in ({"$ne": 1}, 5, None, ["a"]):
        with pytest.raises(InvalidEntryError, match="agent_key"):
            message_store.get_agent_messages(location, wrong)
    for wrong in (None, 5, "worker_1"):
        with pytest.raises(InvalidEntryError, match="agent_keys: must be several keys"):
            message_store.get_team_messages(location, wrong)


def test_notify_is_true_or_false() -> None:
    with SQLiteStore(":memory:") as store, pytest.raises(ConfigurationError, match="notify"):
        SQLMessageStore(store, notify="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, [], InMemoryStore(), {"a": 1}])
def test_a_memory_needs_a_message_store(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"message_store must be a message store.*SQLMessageStore\(store\)"):
        MessageStoreMemory(wrong, "job", "one")


@pytest.mark.parametrize(
    ("guess", "right"),
    [("store", "message_store"), ("namespace", "location"), ("job_id", "location"), ("agent_name", "agent_key")],
)
def test_guesses_are_answered(guess: str, right: str) -> None:
    given: dict[str, Any] = {"message_store": InMemoryMessageStore(), "location": "job", "agent_key": "one"}
    given[guess] = given.pop(right)
    with pytest.raises(TypeError, match=f"did you mean '{right}'"):
        MessageStoreMemory(**given)


async def test_a_users_method_without_a_limit_is_asked_for_all() -> None:
    class WithoutLimits:
        def get_conversation_messages(self, location: str) -> Messages:
            return []

        def get_agent_messages(self, location: str, agent_key: str) -> Messages:
            return [{"content": number} for number in range(100)]

        def get_global_messages(self, location: str) -> Messages:
            return []

    store: Any = WithoutLimits()
    history = await MessageStoreMemory(store, "job", "one", max_tokens=1_000_000).get_history()
    assert [each["content"] for each in history] == [*range(100)]


async def test_a_memory_with_an_owner_reads_nothing_of_others(message_store: StoredMessages, location: str) -> None:
    mine = MessageStoreMemory(message_store, location, "one", owner="ann")
    assert await mine.get_history() == []
    await mine.add({"type": "user_message", "content": "a secret"})
    assert len(await mine.get_history()) == 1
    for owner in ("bob", "Ann", "ann "):
        with pytest.raises(ConflictError, match="another owner"):
            await MessageStoreMemory(message_store, location, "one", owner=owner).get_history()
    assert len(await MessageStoreMemory(message_store, location, "one").get_history()) == 1


async def test_a_memory_with_an_owner_does_not_read_what_belongs_to_nobody(
    message_store: StoredMessages, location: str
) -> None:
    """Somebody else put it there: the memory could not add to it either."""
    await message_store.async_append(location, {"type": "user_message", "content": "planted"})
    with pytest.raises(ConflictError, match="another owner"):
        await MessageStoreMemory(message_store, location, "one", owner="ann").get_history()


async def test_messages_are_appended_in_their_order_also_without_being_one_whole(
    message_store: StoredMessages, location: str
) -> None:
    messages = [{"n": number} for number in range(5)]
    assert await message_store.async_append_many(location, messages, whole=False) == [1, 2, 3, 4, 5]
    assert message_store.append_many(location, messages, whole=False) == [6, 7, 8, 9, 10]
    assert [each.message["n"] for each in message_store.get_items(location)] == [*range(5), *range(5)]
    with pytest.raises(ConflictError):
        message_store.append_many(location, messages, owner="eve", whole=False)
    with pytest.raises(InvalidEntryError, match=r"messages\[1\]"):
        message_store.append_many(location, [{}, {"n": float("nan")}], whole=False)
    assert len(message_store.get_items(location)) == 10

"""A long conversation of pydantic-ai is deleted from MongoDB in steps, and nobody sees it half deleted."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from bson import Decimal128, ObjectId
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationRecord
from pymongo import AsyncMongoClient, MongoClient, monitoring

from firefly_memory import MongoDBStore, OutcomeUnknownError
from firefly_memory.agent_history.mongodb import deletion as deletion_module
from firefly_memory.agent_history.mongodb.deletion import MOST_AT_ONCE, HistoryDeletion
from firefly_memory.agents import MongoConversationStore
from tests.support.agent_histories import Stored, kept, messages, opened, somewhere, texts
from tests.support.agent_history_worker import start
from tests.support.backends import Place

LONG = 600


@pytest.fixture
def where(place: Place) -> Iterator[str]:
    with somewhere("mongodb", place) as found:
        yield found


class Deletes(monitoring.CommandListener):
    """How many entries each transaction deletes."""

    def __init__(self) -> None:
        self.of_transaction: dict[int, int] = {}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name == "delete":
            number = event.command["txnNumber"]
            ids = event.command["deletes"][0]["q"]["_id"]["$in"]
            self.of_transaction[number] = self.of_transaction.get(number, 0) + len(ids)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


async def test_a_long_conversation_is_deleted_in_bounded_transactions(where: str) -> None:
    url, _, name = where.partition("#")
    deletes, count = Deletes(), 3 * MOST_AT_ONCE
    client: AsyncMongoClient[Any]
    async with (
        AsyncMongoClient(url, event_listeners=[deletes]) as client,
        MongoDBStore(client=client, database=name) as store,
    ):
        conversations = MongoConversationStore(store)
        await conversations.save(Conversation(conversation_id="long", messages=messages(count)))
        await conversations.delete("long")
        assert await kept(conversations) == {}
    assert sum(deletes.of_transaction.values()) == count
    assert max(deletes.of_transaction.values()) <= MOST_AT_ONCE


async def _broken_off(where: str, conversations: Stored) -> list[str]:
    """The ids of a conversation whose deletion was killed half-way, with a fork of its first ten messages."""
    line = await conversations.save(Conversation(conversation_id="long", messages=messages(LONG)))
    await conversations.fork("long", at=10, new_conversation_id="fork")
    worker = start("mongodb", where, "delete_until_killed", "long", 3)
    await asyncio.to_thread(worker.communicate, "go\n")
    assert worker.returncode == -signal.SIGKILL
    return [entry.id for entry in line]


async def test_a_killed_deletion_leaves_no_partial_conversation(where: str) -> None:
    async with opened("mongodb", where) as conversations:
        ids = await _broken_off(where, conversations)
        left = await kept(conversations)
        assert 10 < len(left) < LONG
        assert await conversations.load("long") is None
        assert [each.conversation_id for each in await conversations.list_conversations()] == ["fork"]
        with pytest.raises(KeyError):
            await conversations.read_history(ids[-1], limit=LONG - len(left) + 1)
        for end in (len(left), 11):
            assert [entry.id for entry in await conversations.read_history(ids[end - 1])] == ids[:end]
        assert texts(await conversations.load("fork")) == [str(number) for number in range(10)]


@pytest.mark.parametrize("how", ["another deletion", "cleanup_expired"])
async def test_the_next_deletion_or_cleanup_removes_what_a_killed_deletion_left(how: str, where: str) -> None:
    async with opened("mongodb", where) as conversations:
        ids = await _broken_off(where, conversations)
        if how == "cleanup_expired":
            assert await conversations.store.cleanup_expired() == 0
        else:
            await conversations.save(Conversation(conversation_id="short", messages=messages(1)))
            await conversations.delete("short")
        assert set(await kept(conversations)) == set(ids[:10])
        assert texts(await conversations.load("fork")) == [str(number) for number in range(10)]


async def test_a_fork_keeps_messages_that_a_killed_deletion_left(where: str) -> None:
    async with opened("mongodb", where) as conversations:
        ids = await _broken_off(where, conversations)
        late = ConversationRecord(conversation_id="late", head_id=ids[99])
        await conversations.write_record(late, expected_revision=None)
        gone = ConversationRecord(conversation_id="gone", head_id=ids[-1])
        with pytest.raises(ConversationConflict):
            await conversations.write_record(gone, expected_revision=None)
        await conversations.store.cleanup_expired()
        assert set(await kept(conversations)) == set(ids[:100])
        assert texts(await conversations.load("late")) == [str(number) for number in range(100)]


async def test_a_reader_sees_a_conversation_whole_or_not_at_all(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_module, "MOST_AT_ONCE", 4)
    monkeypatch.setattr(deletion_module, "_FIRST_AT_ONCE", 4)
    monkeypatch.setattr(deletion_module, "_SLOW", math.inf)
    async with opened("mongodb", where) as one, opened("mongodb", where) as other:
        line = await one.save(Conversation(conversation_id="a", messages=messages(20)))
        real, readable = HistoryDeletion._batch, []

        async def read_after(deletion: HistoryDeletion, *args: Any, **kwargs: Any) -> Any:
            batch = await real(deletion, *args, **kwargs)
            histories = 0
            for count, entry in enumerate(line, 1):
                with suppress(KeyError):
                    assert len(await other.read_history(entry.id)) == count
                    histories += 1
            readable.append(histories)
            return batch

        monkeypatch.setattr(HistoryDeletion, "_batch", read_after)
        await one.delete("a")
        assert readable == [16, 12, 8, 4, 0, 0], "after each step, and after the look for what others have left"


async def test_a_conversation_of_many_branches_is_deleted_whole(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_module, "MOST_AT_ONCE", 4)
    monkeypatch.setattr(deletion_module, "_FIRST_AT_ONCE", 2)
    async with opened("mongodb", where) as conversations:
        line = await conversations.save(Conversation(conversation_id="a", messages=messages(30)))
        branches = [entry.id for entry in line[::2]]
        tangled = ConversationRecord(conversation_id="b", head_id=line[20].id, branches=branches)
        await conversations.write_record(tangled, expected_revision=None)
        await asyncio.gather(conversations.delete("a"), conversations.delete("b"))
        assert await kept(conversations) == {}


async def test_a_damaged_entry_does_not_stop_a_deletion(where: str) -> None:
    url, _, name = where.partition("#")
    async with opened("mongodb", where) as conversations:
        await conversations.save(Conversation(conversation_id="a", messages=messages(5)))
        with MongoClient[dict[str, Any]](url) as client:
            damaged = [{"_id": "no chain", "holders": 0}, {"_id": "odd", "holders": 0, "chain": 1, "place": "x"}]
            client[name].memory_agent_history_entries.insert_many(damaged)
        await conversations.delete("a")
        assert await kept(conversations) == {}


UNCOUNTABLE: dict[str, Any] = {"decimal": Decimal128("0"), "array": [0], "document": {"a": 0}, "negative": -(2**63)}
"""Numbers of holders that no deletion can count with."""

UNHELD: dict[str, dict[str, Any]] = {
    "parent is a number": {"parent_id": 5},
    "parent is an array": {"parent_id": [1]},
    "parent is a document": {"parent_id": {"a": 1}},
    "place is a bool": {"chain": ObjectId(), "place": True},
    "place is the lowest number": {"chain": ObjectId(), "place": -(2**63)},
    "place is an array": {"chain": ObjectId(), "place": [1]},
    **{f"after {name}": {"parent_id": name} for name in UNCOUNTABLE},
}
"""Entries that nobody holds, each damaged in another field."""


async def _damaged(where: str) -> set[Any]:
    """Make damaged entries; the ids of those that stay."""
    url, _, name = where.partition("#")
    with MongoClient[dict[str, Any]](url) as client:
        entries = client[name].memory_agent_history_entries
        entries.insert_one({"_id": 5, "holders": 0, "parent_id": None})
        entries.insert_many([{"_id": each, "holders": holders} for each, holders in UNCOUNTABLE.items()])
        entries.insert_many([{"_id": each, "holders": 0, **fields} for each, fields in UNHELD.items()])
    return {5, *UNCOUNTABLE}


def _ids(where: str) -> set[Any]:
    url, _, name = where.partition("#")
    with MongoClient[dict[str, Any]](url) as client:
        return set(client[name].memory_agent_history_entries.distinct("_id"))


@pytest.mark.parametrize("at_once", [1, 50])
async def test_cleanup_ends_and_leaves_the_damaged_entries_that_it_cannot_count(
    at_once: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, real = 0, HistoryDeletion.go_on

    async def counted(deletion: HistoryDeletion) -> bool:
        nonlocal batches
        batches += 1
        assert batches <= len(UNHELD) + 1, "each batch but the last deletes something"
        return await real(deletion)

    monkeypatch.setattr(deletion_module, "_FIRST_AT_ONCE", at_once)
    monkeypatch.setattr(HistoryDeletion, "go_on", counted)
    async with opened("mongodb", where) as conversations:
        await conversations.save(Conversation(conversation_id="a", messages=messages(2)))
        held = _ids(where)
        stay = await _damaged(where)
        await conversations.store.cleanup_expired()
        assert _ids(where) == stay | held


async def test_a_deletion_ends_among_damaged_entries_of_others(where: str) -> None:
    async with opened("mongodb", where) as conversations:
        await conversations.save(Conversation(conversation_id="a", messages=messages(5)))
        stay = await _damaged(where)
        await conversations.delete("a")
        assert await conversations.load("a") is None
        assert _ids(where) == stay


async def test_a_deletion_succeeds_although_tidying_up_after_others_fails(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(_: HistoryDeletion) -> bool:
        raise TypeError("whatever a damaged entry comes to")

    monkeypatch.setattr(HistoryDeletion, "go_on", fails)
    async with opened("mongodb", where) as conversations:
        await conversations.save(Conversation(conversation_id="a", messages=messages(5)))
        await conversations.delete("a")
        assert await kept(conversations) == {}
    assert "cleanup_expired() goes on with them (TypeError)" in caplog.text


async def test_a_deletion_that_fails_half_way_raises_outcome_unknown(where: str) -> None:
    url, _, name = where.partition("#")
    with MongoClient[dict[str, Any]](url) as client, client.start_session() as session:
        async with MongoDBStore(url, database=name) as store:
            store.database.timeout = 0.2  # for transactions that are in somebody's way
            conversations = MongoConversationStore(store)
            line = await conversations.save(Conversation(conversation_id="a", messages=messages(5)))
            session.start_transaction()
            this = {"_id": line[2].id}
            client[name].memory_agent_history_entries.update_one(this, {"$set": {"of": "another"}}, session=session)
            with pytest.raises(OutcomeUnknownError):
                await conversations.delete("a")
            assert await conversations.load("a") is None
            session.abort_transaction()
            assert len(await kept(conversations)) == 5
            await store.cleanup_expired()
            assert await kept(conversations) == {}

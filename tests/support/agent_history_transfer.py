"""Conversations of pydantic-ai to be carried from one store to another, and whether they have been."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage

from tests.support.agent_histories import Stored, kept, message, messages, opened, somewhere
from tests.support.backends import Place
from tests.support.pydantic_ai_messages import EVERYTHING

ODD = "b\x00\ud800\x10 \U0001f600"


async def filled(conversations: Stored) -> Stored:
    """Forks of forks and of branches, listed before and after what they were made of, and every odd value."""
    waiting = DeferredToolRequests(approvals=[ToolCallPart("pay", {"to": "Zürich\x00"}, tool_call_id="1")])
    usage = RunUsage(requests=2, input_tokens=2**40, details={"reasoning": 5})
    long = Conversation(
        conversation_id="long", messages=messages(23), usage=usage, deferred_tool_requests=waiting, new_message_index=0
    )
    await conversations.save(long, scope="user\x00")
    for name, at in (("a fork", 9), ("z fork", 15), ("the same", None)):
        await conversations.fork("long", at=at, new_conversation_id=name, scope="user\x00")
    await grow(conversations, "a fork", 3)
    await branch(conversations, "long", 4, 16)
    await branch(conversations, "long", 7, 1)
    await branch(conversations, "long", 2, 0)
    await conversations.fork("long", new_conversation_id="at the start", scope="user\x00")
    await grow(conversations, "at the start", 9)
    await branch(conversations, "a fork", 5, 2)
    await conversations.save(Conversation(conversation_id=ODD, messages=list(EVERYTHING)))
    await conversations.save(Conversation(conversation_id="empty", messages=[]))
    root = ConversationEntry(id=f"{ODD} 1", parent_id=None, message=message("root"))
    leaf = ConversationEntry(id=f"{ODD} 2", parent_id=root.id, message=message("leaf"))
    raw = ConversationRecord(
        conversation_id="raw", head_id=root.id, branches=[leaf.id, "unknown"], revision="\ud800", scope=""
    )
    await conversations.write_record(raw, new_entries=[root, leaf], expected_revision=None)
    return conversations


async def grow(conversations: Stored, name: str, count: int) -> None:
    conversation = await conversations.load(name)
    assert conversation is not None
    conversation.messages.extend(messages(count, 100))
    await conversations.save(conversation)


async def branch(conversations: Stored, name: str, at: int, count: int) -> None:
    record = await conversations.read_record(name)
    assert record is not None
    await conversations.branch(name, at=at, expected_revision=record.revision)
    if count:
        await grow(conversations, name, count)


async def assert_equal(one: Stored, other: Stored) -> None:
    records = {record.conversation_id: record for record in await one.read_records()}
    assert records == {record.conversation_id: record for record in await other.read_records()}
    for name, record in records.items():
        assert await other.load(name) == await one.load(name)
        for end in {record.head_id, *record.branches} - {"unknown"}:
            assert await other.read_history(end) == await one.read_history(end)
    assert await kept(other) == await kept(one)


async def assert_deletions_leave_nothing(conversations: Stored) -> None:
    for record in sorted(await conversations.read_records(), key=lambda record: record.conversation_id):
        await conversations.delete(record.conversation_id)
        await kept(conversations)
    assert await kept(conversations) == {}


@asynccontextmanager
async def both(kinds: tuple[str, str], place: Place) -> AsyncIterator[tuple[Stored, Stored]]:
    with somewhere(kinds[0], place) as one, somewhere(kinds[1], place) as other:
        async with opened(kinds[0], one) as source, opened(kinds[1], other) as target:
            yield source, target


class Stop:
    """Breaks off when so many items have been taken."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, *progress: object) -> None:
        self._left -= progress[0] != "looking"
        if not self._left:
            raise InterruptedError

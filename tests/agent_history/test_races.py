"""Concurrent writers of pydantic-ai's conversations, in one process and in several, and killed processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationRecord
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import PostgreSQLStore
from firefly_memory.agent_history.mongodb import deletion
from firefly_memory.agents import SQLConversationStore
from tests.support.agent_histories import SHARED, Stored, kept, messages, opened, somewhere, texts
from tests.support.agent_history_worker import start
from tests.support.backends import Place
from tests.support.databases import execute
from tests.support.mongodb_transactions import short_transactions
from tests.support.store_worker import killed_after, together

pytestmark = pytest.mark.thorough

WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%memory_agent_history_entries%'"
)
STRICT = ["postgresql-psycopg-repeatable read", "postgresql-psycopg-serializable"]


@pytest.fixture(params=SHARED)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def where(kind: str, place: Place) -> Iterator[str]:
    with somewhere(kind, place) as found:
        yield found


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few messages are many for one step of a deletion in MongoDB, so that others meet it half-way."""
    monkeypatch.setattr(deletion, "MOST_AT_ONCE", 3)
    monkeypatch.setattr(deletion, "_FIRST_AT_ONCE", 1)


@asynccontextmanager
async def two(kind: str, where: str) -> AsyncIterator[tuple[Stored, Stored]]:
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(opened(kind, where)),
            await stack.enter_async_context(opened(kind, where)),
        )


@pytest.mark.parametrize("kind", [*SHARED, *STRICT])
async def test_of_two_writers_of_one_revision_one_gets_a_conflict(kind: str, where: str) -> None:
    async with two(kind, where) as (one, other):
        for number in range(10):
            first, second = (Conversation(conversation_id="a", messages=messages(2, n)) for n in (0, 10))
            if number:
                first, second = await one.load("a"), await other.load("a")  # type: ignore[assignment]
                first.messages += messages(2, 100 * number)
                second.messages += messages(2, 100 * number + 50)
            ended = await asyncio.gather(one.save(first), other.save(second), return_exceptions=True)
            assert [type(each) for each in ended if isinstance(each, Exception)] == [ConversationConflict]
            winner = second if isinstance(ended[0], ConversationConflict) else first
            assert await one.load("a") == winner
            assert len(await kept(one)) == 2 * (number + 1), "of the other one nothing is left"


@pytest.mark.parametrize("kind", [*SHARED, *STRICT])
async def test_a_fork_during_a_deletion_is_whole_or_refused(kind: str, where: str) -> None:
    async with two(kind, where) as (one, other):
        forks = 0
        for number in range(30):
            at = 1 + number % 6
            source = Conversation(conversation_id="a", messages=messages(6))
            line = await one.save(source)
            fork = ConversationRecord(conversation_id="b", head_id=line[at - 1].id, forked_from="a")
            calls = [
                one.delete_record("a", expected_revision=str(source.revision)),
                other.write_record(fork, expected_revision=None),
            ]
            ended = await asyncio.gather(*calls[:: 1 if number % 2 else -1], return_exceptions=True)
            refused = [each for each in ended if each is not None]
            assert await one.read_record("a") is None
            if refused:
                assert [str(each) for each in refused] == [str(ConversationConflict("b"))]
                assert await one.read_record("b") is None
            else:
                forks += 1
                assert texts(await other.load("b")) == [str(each) for each in range(at)]
                assert len(await kept(one)) == at
                await other.delete("b")
            assert await kept(one) == {}
        assert forks, "some were in time"


@pytest.mark.parametrize("first", ["fork", "delete"])
@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
async def test_on_postgresql_the_second_writer_waits_for_the_first(level: str, first: str, place: Place) -> None:
    with somewhere("postgresql-asyncpg", place) as where:
        url, _, name = where.partition("#")
        engine = create_async_engine(place.with_driver("asyncpg"), isolation_level=level)
        async with PostgreSQLStore(engine=engine, schema_name=name) as store:
            conversations = SQLConversationStore(store)
            source = Conversation(conversation_id="a", messages=messages(6))
            line = await conversations.save(source)
            record = ConversationRecord(conversation_id="b", head_id=line[2].id)

            def call(which: str, through: SQLConversationStore) -> Any:
                if which == "delete":
                    return through.delete_record("a", expected_revision=str(source.revision))
                return through.write_record(record, expected_revision=None)

            async with engine.connect() as connection:
                await call(first, SQLConversationStore(store.bind(connection)))
                second = asyncio.create_task(call("delete" if first == "fork" else "fork", conversations))
                while not await asyncio.to_thread(execute, url, WAITING):
                    assert not second.done()
                await connection.commit()
            if first == "fork":
                await second
                assert texts(await conversations.load("b")) == ["0", "1", "2"]
            else:
                with pytest.raises(ConversationConflict, match="'b'"):
                    await second
            assert len(await kept(conversations)) == (3 if first == "fork" else 0)
        await engine.dispose()


@pytest.mark.parametrize("kind", [*SHARED, *STRICT])
async def test_deletions_with_several_shared_messages_do_not_deadlock(kind: str, where: str) -> None:
    async with two(kind, where) as (one, other):
        for _ in range(5):
            conversation = Conversation(conversation_id="a", messages=messages(6))
            line = await one.save(conversation)
            await one.branch("a", at=3, expected_revision=conversation.revision)
            crossed = await one.read_record("a")
            assert crossed is not None
            for name, head, branch in (("b", line[5], line[2]), ("c", line[2], line[5]), ("d", line[4], line[1])):
                record = ConversationRecord(conversation_id=name, head_id=head.id, branches=[branch.id])
                await other.write_record(record, expected_revision=None)
            await asyncio.gather(*[store.delete(name) for store, name in zip([one, other] * 2, "abcd", strict=True)])
            assert await kept(one) == {}


def test_processes_that_append_to_one_conversation_lose_nothing(kind: str, where: str) -> None:
    together([start(kind, where, "append", name, 6) for name in ("p", "q")])

    async def look() -> None:
        async with opened(kind, where) as conversations:
            found = texts(await conversations.load("shared"))
            for name in ("p", "q"):
                assert [text for text in found if text.startswith(name)] == [f"{name} {number}" for number in range(6)]
            assert len(await kept(conversations)) == 12

    asyncio.run(look())


def test_processes_that_fork_and_delete_leave_whole_conversations_only(kind: str, where: str) -> None:
    together([start(kind, where, work, name, 25) for work, name in (("save_and_delete", ""), ("fork", "f"))])

    async def look() -> None:
        async with opened(kind, where) as conversations:
            assert await conversations.list_conversations() == []
            assert await kept(conversations) == {}

    asyncio.run(look())


def test_kill_9_leaves_the_record_and_its_entries(kind: str, where: str) -> None:
    with short_transactions(where.partition("#")[0]) if kind.startswith("mongodb") else nullcontext():
        worker = start(kind, where, "save_until_killed", "")
        asyncio.run(_look_after_a_kill(kind, where, killed_after(12, worker)))


async def _look_after_a_kill(kind: str, where: str, acknowledged: list[str]) -> None:
    async with opened(kind, where) as conversations:
        found = texts(await conversations.load("growing"))
        assert found == [str(number) for number in range(len(found))]
        assert int(acknowledged[-1]) <= len(found) <= int(acknowledged[-1]) + 3
        assert len(await kept(conversations)) == len(found)
        await conversations.delete("growing")
        assert await kept(conversations) == {}

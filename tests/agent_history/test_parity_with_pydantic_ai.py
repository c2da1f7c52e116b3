"""Our conversation stores and pydantic-ai's in-memory store get the same calls, and must give the same results."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Sequence
from contextlib import ExitStack, suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage

from tests.support.agent_histories import Stored, kept, message, messages, opened, somewhere
from tests.support.backends import Place

IDS = ["a", "A", "b\x00\ud800\x10", "c" * 400]
SCOPES = st.sampled_from([None, "", "user:1", "user:\x002"])
PICK = st.integers(0, 1_000_000)


class Both(ConversationStore):
    """Asks both, and compares what they answer."""

    def __init__(self, ours: Stored) -> None:
        self.theirs = InMemoryConversationStore()
        self.ours = ours
        self.seen: list[str] = ["unknown"]

    async def _both(self, name: str, *args: Any, **kwargs: Any) -> Any:
        theirs = await _outcome(getattr(self.theirs, name)(*args, **kwargs))
        ours = await _outcome(getattr(self.ours, name)(*args, **kwargs))
        assert type(theirs) is type(ours), (name, theirs, ours)
        if isinstance(theirs, Exception):
            assert str(theirs) == str(ours)
            raise theirs
        assert theirs == ours, name
        return ours

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        found: ConversationRecord | None = await self._both("read_record", conversation_id)
        return found

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        found: Sequence[ConversationRecord] = await self._both("read_records", scope=scope, limit=limit)
        return found

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        self.seen += [entry.id for entry in new_entries]
        await self._both("write_record", record, new_entries=new_entries, expected_revision=expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        await self._both("delete_record", conversation_id, expected_revision=expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        found: ConversationEntry = await self._both("read_entry", entry_id)
        return found

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        found: list[ConversationEntry] = await self._both("read_history", head_id, limit=limit)
        return found


async def _outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except (ConversationConflict, KeyError) as error:
        return error


def machine(runner: asyncio.Runner, ours: Stored) -> type[RuleBasedStateMachine]:
    class Play(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.both = Both(ours)
            self.loaded: list[Conversation] = []  # some of them stale
            self.written = 0

        def run(self, call: Awaitable[Any]) -> Any:
            async def forgiven() -> Any:
                with suppress(UserError, KeyError):
                    return await call

            return runner.run(forgiven())

        def teardown(self) -> None:
            for conversation_id in [*IDS, "fork"]:
                runner.run(self.both.delete(conversation_id))
            assert runner.run(kept(ours)) == {}

        def new(self, count: int) -> list[ModelMessage]:
            self.written += count
            return messages(count, self.written)

        def some_entry(self, pick: int) -> str:
            return self.both.seen[-1 - pick % min(len(self.both.seen), 12)]

        def one(self, pick: int) -> Conversation | None:
            return self.loaded[-1 - pick % min(len(self.loaded), 4)] if self.loaded else None

        @rule(conversation_id=st.sampled_from(IDS), count=st.integers(0, 5), scope=SCOPES)
        def save_a_new_one(self, conversation_id: str, count: int, scope: str | None) -> None:
            waiting = DeferredToolRequests(metadata={"call": {"n": self.written}}) if count % 2 else None
            usage = RunUsage(requests=count, input_tokens=10, details={"cached": count})
            conversation = Conversation(
                conversation_id=conversation_id,
                messages=self.new(count),
                usage=usage,
                deferred_tool_requests=waiting,
            )
            self.run(self.both.save(conversation, scope=scope))
            self.loaded.append(conversation)

        @rule(conversation_id=st.sampled_from([*IDS, "fork"]), limit=st.none() | st.integers(0, 4), scope=SCOPES)
        def load(self, conversation_id: str, limit: int | None, scope: str | None) -> None:
            found = self.run(self.both.load(conversation_id, limit=limit, scope=scope))
            if found is not None:
                self.loaded.append(found)
            self.run(self.both.load_entries(conversation_id, limit=limit))

        @rule(pick=PICK, count=st.integers(0, 3), scope=SCOPES)
        def extend(self, pick: int, count: int, scope: str | None) -> None:
            conversation = self.one(pick)
            if conversation is not None:
                conversation.messages.extend(self.new(count))
                self.run(self.both.save(conversation, scope=scope if pick % 3 == 0 else None))

        @rule(pick=PICK, at=st.integers(0, 6), window=st.booleans())
        def rewrite(self, pick: int, at: int, window: bool) -> None:
            conversation = self.one(pick)
            if conversation is not None:
                conversation.messages[at : at + 2] = self.new(1)
                if not window:
                    conversation.new_message_index = None
                self.run(self.both.save(conversation))

        @rule(pick=PICK)
        def copy(self, pick: int) -> None:
            """As if serialized: nobody knows any more which messages are stored."""
            conversation = self.one(pick)
            if conversation is not None:
                self.loaded.append(dataclasses.replace(conversation, messages=deepcopy(conversation.messages)))

        @rule(conversation_id=st.sampled_from([*IDS, "fork"]), at=st.none() | st.integers(0, 5), pick=PICK)
        def branch(self, conversation_id: str, at: int | None, pick: int) -> None:
            record = runner.run(self.both.read_record(conversation_id))
            where: dict[str, Any] = {"at": at} if at is not None else {"from_entry": self.some_entry(pick)}
            revision = None if record is None else record.revision
            found = self.run(self.both.branch(conversation_id, expected_revision=revision, **where))
            if found is not None:
                self.loaded.append(found)

        @rule(conversation_id=st.sampled_from(IDS), to=st.sampled_from([*IDS, "fork"]), at=st.none() | PICK, pick=PICK)
        def fork(self, conversation_id: str, to: str, at: int | None, pick: int) -> None:
            where: dict[str, Any] = {"from_entry": self.some_entry(pick)} if pick % 2 else {"at": at and at % 6}
            self.run(self.both.fork(conversation_id, new_conversation_id=to, **where))

        @rule(conversation_id=st.sampled_from([*IDS, "fork"]), scope=SCOPES)
        def delete(self, conversation_id: str, scope: str | None) -> None:
            self.run(self.both.delete(conversation_id, scope=scope))

        @rule(scope=SCOPES, limit=st.none() | st.integers(0, 3))
        def list_them(self, scope: str | None, limit: int | None) -> None:
            self.run(self.both.list_conversations(scope=scope, limit=limit))

        @rule(pick=PICK, limit=st.none() | st.integers(0, 3))
        def read_entries(self, pick: int, limit: int | None) -> None:
            self.run(self.both.read_entry(self.some_entry(pick)))
            self.run(self.both.read_history(self.some_entry(pick), limit=limit))

        @rule(conversation_id=st.sampled_from(IDS), picks=st.lists(PICK, max_size=3), stray=st.booleans())
        def write_whatever(self, conversation_id: str, picks: list[int], stray: bool) -> None:
            """What ``save`` does not do: a head of anybody's, branches forgotten, entries that lead nowhere."""
            record = runner.run(self.both.read_record(conversation_id))
            heads = [self.some_entry(pick) for pick in picks]
            branches = [] if record is None or picks else record.branches
            head_id = heads[0] if heads else None
            new = ConversationRecord(conversation_id=conversation_id, head_id=head_id, branches=branches)
            first = ConversationEntry(parent_id=None, message=message("stray"))
            strays = [first, ConversationEntry(parent_id=first.id, message=message("stray!"))] if stray else []
            revision = None if record is None else record.revision
            self.run(self.both.write_record(new, new_entries=strays, expected_revision=revision))

        @invariant()
        def the_same_entries_are_kept(self) -> None:
            assert set(runner.run(kept(ours))) == set(self.both.theirs._entries)

    return Play


@pytest.mark.parametrize("kind", ["sqlite", "postgresql-asyncpg", "postgresql-psycopg", "mongodb"])
def test_every_order_of_calls_gives_the_results_of_pydantic_ai(kind: str, place: Place) -> None:
    with asyncio.Runner() as runner, ExitStack() as stack:
        where = stack.enter_context(somewhere(kind, place))
        opening = opened(kind, where)
        ours = runner.run(opening.__aenter__())
        try:
            run_state_machine_as_test(
                machine(runner, ours),
                settings=settings(
                    max_examples=12,
                    stateful_step_count=30,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(opening.__aexit__(None, None, None))

"""Conversations in SQL: the hooks, each of which runs one operation through the executor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from firefly_memory.conversations.log import Appended, Head, StoredTurn
from firefly_memory.conversations.sql import operations
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor


class SQLConversationLog:
    """A :class:`~firefly_memory.conversations.log.ConversationLog` over an executor."""

    def __init__(self, executor: Executor, dialect: type[SQLDialect]) -> None:
        self.form = dialect.form
        self.read_instant = dialect.read_instant
        self._run = executor.run

    async def create(self, conversation_id: str, now: datetime) -> bool:
        return await self._run(operations.create_conversation, conversation_id, now)

    async def append(self, conversation_id: str, draft: StoredTurn, expected: int | None) -> Appended | None:
        return await self._run(operations.append_turn, conversation_id, draft, expected)

    async def head(self, conversation_id: str) -> Head | None:
        return await self._run(operations.conversation_head, conversation_id)

    async def window(self, conversation_id: str, budget: int) -> tuple[Head, Sequence[StoredTurn]] | None:
        return await self._run(operations.conversation_window, conversation_id, budget)

    async def turns(self, conversation_id: str, after: int, limit: int | None) -> Sequence[StoredTurn]:
        return await self._run(operations.turns_after, conversation_id, after, limit)

    async def find(self, conversation_id: str, idempotency_key: str) -> StoredTurn | None:
        return await self._run(operations.find_turn, conversation_id, idempotency_key)

    async def claim(self, conversation_id: str, claim: str, evicted: int, now: datetime, until: datetime) -> bool:
        return await self._run(operations.claim_summary, conversation_id, claim, evicted, now, until)

    async def evict(self, conversation_id: str, claim: str, summary: str, turns: int, tokens: int) -> bool:
        return await self._run(operations.evict_turns, conversation_id, claim, summary, turns, tokens)

    async def release(self, conversation_id: str, claim: str) -> None:
        await self._run(operations.release_claim, conversation_id, claim)

    async def fork(self, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
        return await self._run(operations.fork_conversation, conversation_id, fork_id, turns, now)

    async def delete(self, conversation_id: str, facts: str | None = None) -> None:
        await self._run(operations.delete_conversation, conversation_id, facts)

    async def delete_all(self, namespace: str | None) -> None:
        await self._run(operations.delete_all_conversations, namespace)

    async def page(self, limit: int, after: tuple[datetime, str] | None) -> Sequence[Head]:
        return await self._run(operations.conversation_page, limit, after)

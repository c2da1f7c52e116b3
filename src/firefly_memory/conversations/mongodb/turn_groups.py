"""The appends of one event loop to one conversation, one after the other, those that wait at once."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from firefly_memory.concurrency.group_commit import LARGEST_GROUP
from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.conversations.log import Appended, StoredTurn
from firefly_memory.conversations.mongodb.log import Connected, MongoConversationLog
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import MongoDatabase
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.errors import DatabaseStoreError, OutcomeUnknownError, outcome_unknown

_OVERDUE = 1.0
"""Seconds after which an append no longer waits for those before it: these hang, perhaps."""


@dataclass(slots=True, eq=False)
class _Waiting:
    draft: StoredTurn
    expected: int | None
    appended: asyncio.Future[Appended | None]


_Queue = deque[_Waiting]
_Queues = dict[str, _Queue]


class GroupingMongoConversationLog(MongoConversationLog):
    """Every append gets its own result after it is durable, as if each had been alone."""

    def __init__(self, database: MongoDatabase, connected: Connected, in_transaction: InTransaction) -> None:
        super().__init__(database, connected, in_transaction)
        self._queues: PerLoop[_Queues] = PerLoop(_Queues, _nothing)  # of those that somebody appends to
        self._tasks: set[asyncio.Task[None]] = set()

    async def append(self, conversation_id: str, draft: StoredTurn, expected: int | None) -> Appended | None:
        queues = self._queues.get()
        queue = queues.get(conversation_id)
        if queue is not None:
            return await self._wait(queue, conversation_id, draft, expected)
        queue = queues[conversation_id] = deque()  # alone: no task to pay for
        try:
            return await super().append(conversation_id, draft, expected)
        finally:
            if queue:
                task = asyncio.get_running_loop().create_task(self._drain(queues, conversation_id))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                del queues[conversation_id]

    async def _wait(
        self, queue: _Queue, conversation_id: str, draft: StoredTurn, expected: int | None
    ) -> Appended | None:
        waiting = _Waiting(draft, expected, asyncio.get_running_loop().create_future())
        queue.append(waiting)
        try:
            await asyncio.wait([waiting.appended], timeout=_OVERDUE)
            if waiting not in queue:
                return await waiting.appended
        finally:
            waiting.appended.cancel()  # if nobody waits any more
        return await super().append(conversation_id, draft, expected)

    async def _drain(self, queues: _Queues, conversation_id: str) -> None:
        queue = queues[conversation_id]
        try:
            while group := _next_group(queue):
                await self._append_group(conversation_id, group)
        finally:
            del queues[conversation_id]

    async def _append_group(
        self, conversation_id: str, group: list[_Waiting], loss: OutcomeUnknownError | None = None
    ) -> None:
        """``loss`` is that of an earlier attempt whose answer was lost."""
        try:
            drafts = [waiting.draft for waiting in group]
            results = await self.append_all(conversation_id, drafts, group[0].expected)
        except Exception as exc:  # noqa: BLE001 - handed to the caller it belongs to
            if len(group) > 1:  # what was appended already is recognised
                lost = exc if isinstance(exc, OutcomeUnknownError) else None
                await asyncio.gather(*[self._append_group(conversation_id, [waiting], lost) for waiting in group])
            elif not group[0].appended.done():
                group[0].appended.set_exception(_in_doubt(exc, loss))
            return
        for waiting, result in zip(group, results, strict=True):
            if not waiting.appended.done():
                waiting.appended.set_result(result)


def _in_doubt(error: Exception, loss: OutcomeUnknownError | None) -> Exception:
    """``error``; after a ``loss`` it says that the turn may be there all the same."""
    if loss is None or isinstance(error, OutcomeUnknownError) or not isinstance(error, DatabaseStoreError):
        return error
    unknown = outcome_unknown(error, retryable=False)
    unknown.__cause__ = loss
    return unknown


def _next_group(queue: _Queue) -> list[_Waiting]:
    """Those who waited longest; one that expects a number of turns alone, for it may be refused."""
    group: list[_Waiting] = []
    while queue and len(group) < LARGEST_GROUP:
        if queue[0].expected is not None and group:
            break
        waiting = queue.popleft()
        if not waiting.appended.done():
            group.append(waiting)
            if waiting.expected is not None:
                break
    return group


async def _nothing(_: object) -> None:
    """Queues have nothing to close."""


def conversation_log(access: MongoAccess) -> MongoConversationLog:
    """For event loops with groups; blocking callers have nobody to append with."""
    kind = GroupingMongoConversationLog if access.in_event_loop else MongoConversationLog
    return kind(access.database, access.connected, access.in_transaction)

"""Group commit: writes that arrive while one is under way are made durable together by the next.

Every caller still gets its own result after its own data is durable. A group that fails as a whole is taken apart and
each write tried on its own, so that one bad record does not fail its neighbours.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from firefly_memory.errors import DatabaseStoreError, OutcomeUnknownError, outcome_unknown

LARGEST_GROUP = 128
LARGEST_GROUP_SIZE = 4_000_000
"""Of the sizes together, unless a single one is larger."""

_OVERDUE = 0.02
"""Seconds after which a waiting write stops waiting for the ones before it: these hang, on a locked row perhaps."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Writes(ABC, Generic[Item, Result]):
    """One kind of write."""

    retryable: bool
    """Whether a caller who does not know the outcome may make the same call again without harm."""

    @abstractmethod
    def key(self, item: Item) -> str:
        """No two with the same key go together: their order would be lost."""

    @abstractmethod
    def size(self, item: Item) -> int:
        """About how many characters it has."""

    @abstractmethod
    async def one(self, item: Item) -> Result: ...

    @abstractmethod
    async def again(self, item: Item) -> Result:
        """:meth:`one` after an attempt that was cancelled: it may have been written."""

    @abstractmethod
    async def settle(self, item: Item) -> Result:
        """:meth:`one` after an attempt whose answer was lost: it may have been written, and changed by others since."""

    @abstractmethod
    async def several(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        """What each has come to, in order."""


@dataclass(slots=True)
class _Waiting(Generic[Item, Result]):
    item: Item
    key: str
    size: int
    done: asyncio.Future[Result]
    begun: bool = False
    """Whether it is on its way to the database, or has been there."""
    cancelled: bool = False
    """Whether an attempt was cancelled, which may have written it."""
    loss: OutcomeUnknownError | None = None
    """Of an attempt whose answer was lost."""
    given_up: bool = False


class GroupCommit(Generic[Item, Result]):
    """For the writes of one kind to one store in one event loop."""

    def __init__(self, writes: Writes[Item, Result]) -> None:
        self._writes = writes
        self._queue: list[_Waiting[Item, Result]] = []
        self._lane: object | None = None  # whoever writes now, and will see to the queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None

    async def write(self, item: Item) -> Result:
        if self._lane is not None:
            return await self._wait(item)
        lane = self._lane = object()  # alone: nobody to wait for, and no task to pay for
        try:
            return await self._writes.one(item)
        finally:
            if self._lane is lane:
                self._lane = None
                if self._queue:
                    self._open_lane()

    async def _wait(self, item: Item) -> Result:
        loop = asyncio.get_running_loop()
        key, size = self._writes.key(item), self._writes.size(item)
        waiting: _Waiting[Item, Result] = _Waiting(item, key, size, loop.create_future())
        self._queue.append(waiting)
        if self._alarm is None:
            self._alarm = loop.call_later(_OVERDUE, self._overdue)
        try:
            return await asyncio.shield(waiting.done)
        except asyncio.CancelledError:
            await self._give_up(waiting)
            raise

    async def _give_up(self, waiting: _Waiting[Item, Result]) -> None:
        """Nobody goes on while a write that was given up may still be made: it would undo what is written next."""
        waiting.given_up = True
        if not waiting.begun:
            waiting.done.cancel()
        while not waiting.done.done():
            with suppress(asyncio.CancelledError):  # it is on its way already
                await asyncio.wait((waiting.done,))
        if not waiting.done.cancelled():
            waiting.done.exception()  # looked at, or the loop complains

    def _overdue(self) -> None:
        self._alarm = None
        if self._queue:
            self._open_lane()  # the one before ends after what it is doing

    def _open_lane(self) -> None:
        lane = self._lane = object()
        task = asyncio.get_running_loop().create_task(self._drain(lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self, lane: object) -> None:
        group: list[_Waiting[Item, Result]] = []
        try:
            while self._lane is lane:
                group = self._next_group()
                if not group:
                    self._lane = None
                    break
                await self._commit(group)
        except asyncio.CancelledError:
            # Not yet: callers who are cancelled at the same moment have to be heard first.
            asyncio.get_running_loop().call_soon(self._hand_over, lane, group)
            raise

    def _hand_over(self, lane: object, group: list[_Waiting[Item, Result]]) -> None:
        """Let another task write what this one was cancelled with. Callers who were cancelled too want nothing more."""
        for waiting in group:
            waiting.cancelled = True
            if waiting.given_up:
                waiting.done.cancel()
        self._queue = [waiting for waiting in (*group, *self._queue) if not waiting.done.done()]
        if self._lane is lane:
            self._lane = None
        if self._queue and self._lane is None:
            self._open_lane()

    def _next_group(self) -> list[_Waiting[Item, Result]]:
        """Those who waited longest; one that has been tried before alone."""
        group: dict[str, _Waiting[Item, Result]] = {}
        later: list[_Waiting[Item, Result]] = []
        room, alone = LARGEST_GROUP_SIZE, False
        for waiting in self._queue:
            if waiting.done.cancelled():
                continue
            room -= waiting.size
            full = len(group) == LARGEST_GROUP or room < 0 or alone
            if group and (full or waiting.cancelled or waiting.key in group):
                later.append(waiting)
            else:
                group[waiting.key] = waiting
                waiting.begun, alone = True, waiting.cancelled
        self._queue = later
        return list(group.values())

    async def _commit(self, group: list[_Waiting[Item, Result]]) -> None:
        if len(group) == 1:
            await self._commit_one(group[0])
            return
        try:
            results = await self._writes.several([waiting.item for waiting in group])
            outcomes = list(zip(group, results, strict=True))
        except Exception as exc:  # noqa: BLE001 - each caller gets its own error from its own try
            for waiting in group:
                waiting.loss = exc if isinstance(exc, OutcomeUnknownError) else None
            await asyncio.gather(*[self._commit_one(waiting) for waiting in group])
            return
        for waiting, result in outcomes:
            if waiting.done.done():
                continue
            if isinstance(result, Exception):
                waiting.done.set_exception(result)
            else:
                waiting.done.set_result(result)

    async def _commit_one(self, waiting: _Waiting[Item, Result]) -> None:
        try:
            result = await self._write(waiting)
        except Exception as exc:  # noqa: BLE001 - handed to the caller it belongs to
            if not waiting.done.done():
                waiting.done.set_exception(exc)
        else:
            if not waiting.done.done():
                waiting.done.set_result(result)

    async def _write(self, waiting: _Waiting[Item, Result]) -> Result:
        if waiting.loss is None and not waiting.cancelled:
            return await self._writes.one(waiting.item)
        go_on = self._writes.again if waiting.loss is None else self._writes.settle
        try:
            return await go_on(waiting.item)
        except OutcomeUnknownError as error:
            raise error from waiting.loss or error.__cause__
        except DatabaseStoreError as error:  # the earlier attempt may have been done all the same
            raise outcome_unknown(error, retryable=self._writes.retryable) from waiting.loss or error

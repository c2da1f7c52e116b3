"""Group commit: saves that arrive while one is under way are made durable together by the next.

Every caller still gets its own result after its own data is durable. A group that fails as a whole is taken apart and
each save tried on its own, so that one bad record does not fail its neighbours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from firefly_memory.stores.records import Record

LARGEST_GROUP = 128

_OVERDUE = 0.02
"""Seconds after which a waiting save stops waiting for the ones before it: these hang, on a locked row perhaps."""

SaveOne = Callable[[Record, datetime], Awaitable[None]]
SaveGroup = Callable[[list[Record], datetime], Awaitable[list[Record]]]


@dataclass(slots=True)
class _Waiting:
    record: Record
    now: datetime
    saved: asyncio.Future[None]
    begun: bool = False
    """Whether it is on its way to the database, or has been there."""
    given_up: bool = False


class GroupCommit:
    """For the saves of one store in one event loop. ``refusal`` makes the error for a record that was refused."""

    def __init__(self, save_one: SaveOne, save_group: SaveGroup, refusal: Callable[[Record], Exception]) -> None:
        self._save_one = save_one
        self._save_group = save_group
        self._refusal = refusal
        self._queue: list[_Waiting] = []
        self._lane: object | None = None  # whoever saves now, and will see to the queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None

    async def save(self, record: Record, now: datetime) -> None:
        if self._lane is not None:
            await self._wait(record, now)
            return
        lane = self._lane = object()  # alone: nobody to wait for, and no task to pay for
        try:
            await self._save_one(record, now)
        finally:
            if self._lane is lane:
                self._lane = None
                if self._queue:
                    self._open_lane()

    async def _wait(self, record: Record, now: datetime) -> None:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(record, now, loop.create_future())
        self._queue.append(waiting)
        if self._alarm is None:
            self._alarm = loop.call_later(_OVERDUE, self._overdue)
        try:
            await asyncio.shield(waiting.saved)
        except asyncio.CancelledError:
            await self._give_up(waiting)
            raise

    async def _give_up(self, waiting: _Waiting) -> None:
        """Nobody goes on while a save that was given up may still be written: it would undo what is saved next."""
        waiting.given_up = True
        if not waiting.begun:
            waiting.saved.cancel()
        while not waiting.saved.done():
            with suppress(asyncio.CancelledError):  # it is on its way already
                await asyncio.wait((waiting.saved,))
        if not waiting.saved.cancelled():
            waiting.saved.exception()  # looked at, or the loop complains

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
        group: list[_Waiting] = []
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

    def _hand_over(self, lane: object, group: list[_Waiting]) -> None:
        """Let another task save what this one was cancelled with. Callers who were cancelled too want nothing more."""
        for waiting in group:
            if waiting.given_up:
                waiting.saved.cancel()
        self._queue = [waiting for waiting in (*group, *self._queue) if not waiting.saved.done()]
        if self._lane is lane:
            self._lane = None
        if self._queue and self._lane is None:
            self._open_lane()

    def _next_group(self) -> list[_Waiting]:
        """The longest waiting saves, no two of the same entry: their order would be lost."""
        group: dict[str, _Waiting] = {}
        later: list[_Waiting] = []
        for waiting in self._queue:
            if waiting.saved.cancelled():
                continue
            full = len(group) == LARGEST_GROUP
            if full or waiting.record.entry_id in group:
                later.append(waiting)
            else:
                group[waiting.record.entry_id] = waiting
                waiting.begun = True
        self._queue = later
        return list(group.values())

    async def _commit(self, group: list[_Waiting]) -> None:
        if len(group) == 1:
            await self._commit_one(group[0])
            return
        try:
            now = max(waiting.now for waiting in group)
            refused = await self._save_group([waiting.record for waiting in group], now)
        except Exception:  # noqa: BLE001 - each caller gets its own error from its own try
            await asyncio.gather(*[self._commit_one(waiting) for waiting in group])
            return
        ids = {record.entry_id for record in refused}
        for waiting in group:
            if waiting.saved.done():
                continue
            if waiting.record.entry_id in ids:
                waiting.saved.set_exception(self._refusal(waiting.record))
            else:
                waiting.saved.set_result(None)

    async def _commit_one(self, waiting: _Waiting) -> None:
        try:
            await self._save_one(waiting.record, waiting.now)
        except Exception as exc:  # noqa: BLE001 - handed to the caller it belongs to
            if not waiting.saved.done():
                waiting.saved.set_exception(exc)
        else:
            if not waiting.saved.done():
                waiting.saved.set_result(None)

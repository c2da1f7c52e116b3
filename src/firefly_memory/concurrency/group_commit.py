"""Group commit: writes that arrive while one is under way are made durable together by the next.

Every caller still gets its own result after its own data is durable. A group that fails as a whole is taken apart and
each write tried on its own, so that one bad record does not fail its neighbours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.errors import DatabaseStoreError, OutcomeUnknownError, outcome_unknown

LARGEST_GROUP = 128
LARGEST_GROUP_SIZE = 4_000_000
"""Of the sizes together, unless a single one is larger."""

_OVERDUE = 0.02
"""Seconds after which a waiting write stops waiting for the ones before it: these hang, on a locked row perhaps."""

Run = Callable[..., Coroutine[Any, Any, Any]]
"""Called with a way to write and its arguments."""


def _called(way: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> Coroutine[Any, Any, Any]:
    return way(*args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How writes of one kind, which different callers make at the same moment, go to the database together.

    Each of these takes the arguments of the write, but for ``several``.
    """

    key: Callable[..., str]
    """No two with the same key go together: their order would be lost."""
    size: Callable[..., int]
    """About how many characters it writes."""
    several: Any
    """The way to do all of them, given the arguments of each. It returns a result, or an error, for each."""
    after_cancellation: Any
    """The way to write after an attempt that was cancelled: it may have been done."""
    after_lost_reply: Any
    """The way to write after an attempt whose answer was lost: it may have been done, and changed by others since."""
    may_join: Callable[..., bool] | None = None
    """Whether a write may go together with others; ``None``: always."""
    target: Callable[..., Hashable] | None = None
    """What is written to, where only writes to the same target can go together; ``None``: all can."""
    overdue: float | None = None
    """Seconds after which a waiting write stops waiting for the ones before it; ``None``: a moment."""


class GroupedWrite:
    """A kind of write, for the callers of event loops: those of one loop go together where they may."""

    def __init__(self, write: Any, grouping: Grouping, *, retryable: bool, run: Run = _called) -> None:
        """``run`` is given ``write`` or one of the ways of ``grouping``; without it these are coroutine functions.
        ``retryable`` says whether a caller who does not know the outcome may make the same call again without harm."""
        self._run = run
        self._write = write
        self._grouping = grouping
        self._retryable = retryable
        # A group lives as long as somebody writes with it.
        self._groups: PerLoop[WeakValueDictionary[Hashable, GroupCommit]] = PerLoop(WeakValueDictionary)

    async def __call__(self, *args: Any) -> Any:
        may_join = self._grouping.may_join
        if may_join is not None and not may_join(*args):
            return await self._run(self._write, *args)
        group = self._group(*args)
        if group.is_writing:
            return await group.wait(args)
        writer = group.begin()  # alone: nobody to wait for, and no task to pay for
        try:
            return await self._run(self._write, *args)
        finally:
            group.end(writer)

    def _group(self, *args: Any) -> GroupCommit:
        grouping, groups = self._grouping, self._groups.get()
        target = None if grouping.target is None else grouping.target(*args)
        group = groups.get(target)
        if group is None:
            group = groups[target] = GroupCommit(self._run, self._write, grouping, retryable=self._retryable)
        return group


@dataclass(slots=True)
class _Waiting:
    args: tuple[Any, ...]
    key: str
    size: int
    done: asyncio.Future[Any]
    begun: bool = False
    """Whether it is on its way to the database, or has been there."""
    cancelled: bool = False
    """Whether an attempt was cancelled, which may have written it."""
    loss: OutcomeUnknownError | None = None
    """Of an attempt whose answer was lost."""
    given_up: bool = False


class GroupCommit:
    """The writes of one kind, to one target, in one event loop."""

    def __init__(self, run: Run, write: Any, grouping: Grouping, *, retryable: bool) -> None:
        self._run = run
        self._single = write
        self._grouping = grouping
        self._retryable = retryable
        self._queue: list[_Waiting] = []
        self._writer: object | None = None  # whoever writes now, and will see to the queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def is_writing(self) -> bool:
        return self._writer is not None

    def begin(self) -> object:
        """Somebody writes alone; those who come meanwhile wait."""
        self._writer = writer = object()
        return writer

    def end(self, writer: object) -> None:
        if self._writer is writer:
            self._writer = None
            if self._queue:
                self._start_writer()

    async def wait(self, args: tuple[Any, ...]) -> Any:
        """Write together with others who wait, after those who write now."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(args, self._grouping.key(*args), self._grouping.size(*args), loop.create_future())
        self._queue.append(waiting)
        if self._alarm is None:
            overdue = self._grouping.overdue
            self._alarm = loop.call_later(_OVERDUE if overdue is None else overdue, self._overdue)
        try:
            return await asyncio.shield(waiting.done)
        except asyncio.CancelledError:
            await self._give_up(waiting)
            raise

    async def _give_up(self, waiting: _Waiting) -> None:
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
            self._start_writer()  # the one before ends after what it is doing

    def _start_writer(self) -> None:
        writer = self._writer = object()
        task = asyncio.get_running_loop().create_task(self._drain(writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self, writer: object) -> None:
        group: list[_Waiting] = []
        try:
            while self._writer is writer:
                group = self._next_group()
                if not group:
                    self._writer = None
                    break
                await self._commit(group)
        except asyncio.CancelledError:
            # Not yet: callers who are cancelled at the same moment have to be heard first.
            asyncio.get_running_loop().call_soon(self._hand_over, writer, group)
            raise

    def _hand_over(self, writer: object, group: list[_Waiting]) -> None:
        """Let another task write what this one was cancelled with. Callers who were cancelled too want nothing more."""
        for waiting in group:
            waiting.cancelled = True
            if waiting.given_up:
                waiting.done.cancel()
        self._queue = [waiting for waiting in (*group, *self._queue) if not waiting.done.done()]
        if self._writer is writer:
            self._writer = None
        if self._queue and self._writer is None:
            self._start_writer()

    def _next_group(self) -> list[_Waiting]:
        """Those who waited longest; one that has been tried before alone."""
        group: dict[str, _Waiting] = {}
        later: list[_Waiting] = []
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

    async def _commit(self, group: list[_Waiting]) -> None:
        if len(group) == 1:
            await self._commit_one(group[0])
            return
        try:
            results = await self._run(self._grouping.several, [waiting.args for waiting in group])
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

    async def _commit_one(self, waiting: _Waiting) -> None:
        try:
            result = await self._write(waiting)
        except Exception as exc:  # noqa: BLE001 - handed to the caller it belongs to
            if not waiting.done.done():
                waiting.done.set_exception(exc)
        else:
            if not waiting.done.done():
                waiting.done.set_result(result)

    async def _write(self, waiting: _Waiting) -> Any:
        if waiting.loss is None and not waiting.cancelled:
            return await self._run(self._single, *waiting.args)
        grouping = self._grouping
        go_on = grouping.after_cancellation if waiting.loss is None else grouping.after_lost_reply
        try:
            return await self._run(go_on, *waiting.args)
        except OutcomeUnknownError as error:
            raise error from waiting.loss or error.__cause__
        except DatabaseStoreError as error:  # the earlier attempt may have been done all the same
            raise outcome_unknown(error, retryable=self._retryable) from waiting.loss or error

"""The colours: where the work of a database, which is all plain functions, is done for whom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from sqlalchemy.util import greenlet_spawn

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.conversations.log import Appended, Draft
from firefly_memory.conversations.sql import operations as conversation_operations
from firefly_memory.databases.sql.groups import Groups
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.entries.record import Record
from firefly_memory.entries.sql import operations
from firefly_memory.errors import NotSupportedError

P = ParamSpec("P")
T = TypeVar("T")


class Runner(Protocol):
    """Runs operations on one database in one colour."""

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def save(self, record: Record, now: datetime) -> None:
        """``operations.save``, which a runner may put together with other callers' saves."""

    async def append(self, draft: Draft) -> Appended | None:
        """``append_turn`` without a condition, likewise."""

    async def initialize(self, migrate: bool | None) -> None: ...

    async def close(self) -> None: ...


class Works(Protocol):
    """A database as plain functions."""

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    def initialize(self, migrate: bool | None) -> None: ...

    def close(self) -> None: ...


class Through(Protocol):
    """Where a call is made."""

    async def __call__(self, call: Callable[[], T]) -> T: ...


async def here(call: Callable[[], T]) -> T:
    """At once, without suspending."""
    return call()


async def in_greenlet(call: Callable[[], T]) -> T:
    """In a greenlet, from which SQLAlchemy awaits asynchronous drivers."""
    return await greenlet_spawn(call)


async def in_thread(call: Callable[[], T]) -> T:
    return await in_worker_thread(call)


def refused(what: str) -> Through:
    """Nowhere: ``what`` has no such colour."""

    async def refuse(call: Callable[[], T]) -> T:  # noqa: ARG001
        raise NotSupportedError(what)

    return refuse


class CallRunner:
    """One call for each operation."""

    def __init__(self, works: Works, through: Through) -> None:
        self._works = works
        self._through = through

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._through(partial(self._works.run, operation, *args, **kwargs))

    async def save(self, record: Record, now: datetime) -> None:
        await self.run(operations.save, record, now)

    async def append(self, draft: Draft) -> Appended | None:
        return await self.run(conversation_operations.append_turn, *draft, None)

    async def initialize(self, migrate: bool | None) -> None:
        await self._through(partial(self._works.initialize, migrate))

    async def close(self) -> None:
        await self._through(self._works.close)


class GroupingRunner(CallRunner):
    """The same, with the writes of one event loop put together."""

    def __init__(self, works: Works, through: Through) -> None:
        super().__init__(works, through)
        self._groups = PerLoop(lambda: Groups(self), _nothing)

    async def save(self, record: Record, now: datetime) -> None:
        await self._groups.get().saves.write((record, now))

    async def append(self, draft: Draft) -> Appended | None:
        return await self._groups.get().appends.write(draft)


async def _nothing(_: object) -> None:
    """A group has nothing to close."""

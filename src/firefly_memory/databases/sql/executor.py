"""Executors: where the operations of a database, which are plain functions, are run for whom."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from firefly_memory.concurrency.group_commit import GroupedWrite
from firefly_memory.databases.notifications import Notifications
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.errors import NotSupportedError

P = ParamSpec("P")
T = TypeVar("T")

Method = Callable[P, Coroutine[Any, Any, T]]
"""An operation as callers have it."""


class Executor(Protocol):
    """Runs operations on one database, for blocking callers or for those of an event loop."""

    @property
    def notifications(self) -> Notifications | None:
        """Of the database, where it tells those of an event loop what others have written."""

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    def method(self, operation: Operation[P, T]) -> Method[P, T]:
        """A coroutine function that runs ``operation``: together with others, where its grouping allows."""

    async def initialize(self, migrate: bool | None) -> None: ...

    async def close(self) -> None: ...


class Runs(Protocol):
    """What runs operations at once."""

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class Works(Protocol):
    """A database as plain functions."""

    def ready(self, operation: str) -> Runs:
        """What runs the operation of that name, on a database that is open and has today's schema."""

    def initialize(self, migrate: bool | None) -> None: ...

    def close(self) -> None: ...


class Through(Protocol):
    """Where a call is made: in a thread, or in a greenlet, from which SQLAlchemy awaits asynchronous drivers."""

    async def __call__(self, call: Callable[[], T], /) -> T: ...


def refused(what: str) -> Through:
    """Nowhere: ``what`` says why there is no such mode."""

    async def refuse(call: Callable[[], T], /) -> T:  # noqa: ARG001
        raise NotSupportedError(what)

    return refuse


class CallExecutor:
    """One call for each operation."""

    notifications: Notifications | None = None

    def __init__(self, works: Works, through: Through) -> None:
        self._works = works
        self._through = through

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._through(partial(self._run, operation, *args, **kwargs))

    def _run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._works.ready(operation.name).run(operation, *args, **kwargs)

    def method(self, operation: Operation[P, T]) -> Method[P, T]:
        return partial(self.run, operation)

    async def initialize(self, migrate: bool | None) -> None:
        await self._through(partial(self._works.initialize, migrate))

    async def close(self) -> None:
        await self._through(self._works.close)
        if self.notifications is not None:
            await self.notifications.close()


class BlockingExecutor:
    """Each call at once, without suspending."""

    notifications: Notifications | None = None

    def __init__(self, works: Works) -> None:
        self._works = works

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._works.ready(operation.name).run(operation, *args, **kwargs)

    def method(self, operation: Operation[P, T]) -> Method[P, T]:
        return partial(self.run, operation)

    async def initialize(self, migrate: bool | None) -> None:
        self._works.initialize(migrate)

    async def close(self) -> None:
        self._works.close()


class GroupingExecutor(CallExecutor):
    """One call for each operation, or for several that may go together."""

    def method(self, operation: Operation[P, T]) -> Method[P, T]:
        return grouped(self, operation)


def grouped(executor: Executor, operation: Operation[P, T]) -> Method[P, T]:
    """A method whose calls from one event loop go together where they may."""
    if operation.grouping is None:
        return partial(executor.run, operation)
    write = GroupedWrite(operation, operation.grouping, retryable=operation.retryable, run=executor.run)
    return cast("Method[P, T]", write)

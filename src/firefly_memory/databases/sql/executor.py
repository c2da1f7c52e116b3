"""Executors: where the operations of a database, which are plain functions, are run for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from sqlalchemy.util import greenlet_spawn

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.group_commit import GroupCommit, Writes
from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.databases.sql.operation import Grouping, Operation
from firefly_memory.errors import NotSupportedError

P = ParamSpec("P")
T = TypeVar("T")


class Executor(Protocol):
    """Runs operations on one database, for blocking callers or for those of an event loop."""

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

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


async def _here(call: Callable[[], T]) -> T:
    """At once, without suspending."""
    return call()


async def in_greenlet(call: Callable[[], T]) -> T:
    """In a greenlet, from which SQLAlchemy awaits asynchronous drivers."""
    return await greenlet_spawn(call)


async def in_thread(call: Callable[[], T]) -> T:
    return await in_worker_thread(call)


def refused(what: str) -> Through:
    """Nowhere: ``what`` says why there is no such mode."""

    async def refuse(call: Callable[[], T]) -> T:  # noqa: ARG001
        raise NotSupportedError(what)

    return refuse


class CallExecutor:
    """One call for each operation."""

    def __init__(self, works: Works, through: Through) -> None:
        self._works = works
        self._through = through

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._through(partial(self._works.run, operation, *args, **kwargs))

    async def initialize(self, migrate: bool | None) -> None:
        await self._through(partial(self._works.initialize, migrate))

    async def close(self) -> None:
        await self._through(self._works.close)


class BlockingExecutor(CallExecutor):
    """Each call at once, without suspending."""

    def __init__(self, works: Works) -> None:
        super().__init__(works, _here)

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._works.run(operation, *args, **kwargs)


class GroupingExecutor(CallExecutor):
    """The same; writes of one event loop that may go together do."""

    def __init__(self, works: Works, through: Through) -> None:
        super().__init__(works, through)
        self._groups = PerLoop(lambda: Groups(super(GroupingExecutor, self).run), _nothing)

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if operation.grouping is not None:
            group = self._groups.get().of(operation, args)
            if group is not None:
                return await group.write(args)  # type: ignore[no-any-return]
        return await super().run(operation, *args, **kwargs)


class Groups:
    """The writes of one event loop that go to the database together, each operation by itself."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self._groups: dict[Operation[..., Any], GroupCommit[Any, Any]] = {}

    def of(self, operation: Operation[..., Any], args: tuple[Any, ...]) -> GroupCommit[Any, Any] | None:
        """The group that a write joins; ``None`` if it goes alone."""
        grouping = operation.grouping
        if grouping is None or (grouping.may_join is not None and not grouping.may_join(*args)):
            return None
        group = self._groups.get(operation)
        if group is None:
            group = self._groups[operation] = GroupCommit(_GroupedWrites(self._run, operation, grouping))
        return group


class _GroupedWrites(Writes[tuple[Any, ...], Any]):
    """The writes of one operation, each given by its arguments."""

    def __init__(self, run: Callable[..., Any], operation: Operation[..., Any], grouping: Grouping) -> None:
        self.retryable = operation.retryable
        self._run = run
        self._operation = operation
        self._grouping = grouping

    def key(self, item: tuple[Any, ...]) -> str:
        return self._grouping.key(*item)

    def size(self, item: tuple[Any, ...]) -> int:
        return self._grouping.size(*item)

    async def one(self, item: tuple[Any, ...]) -> Any:
        return await self._run(self._operation, *item)

    async def again(self, item: tuple[Any, ...]) -> Any:
        return await self._run(self._grouping.after_cancellation, *item)

    async def settle(self, item: tuple[Any, ...]) -> Any:
        return await self._run(self._grouping.after_lost_reply, *item)

    async def several(self, items: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        return await self._run(self._grouping.several, items)  # type: ignore[no-any-return]


async def _nothing(_: object) -> None:
    """A group has nothing to close."""

"""The asynchronous mode of a store that can only block: each call runs in a worker thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, ParamSpec, TypeVar, cast

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.facets import LogOf
from firefly_memory.protocols import StoreView

P = ParamSpec("P")
T = TypeVar("T")
L = TypeVar("L")


def threaded(view: StoreView) -> StoreView:
    """A suspending view over a blocking one."""
    return cast("StoreView", _ThreadedView(view))


class _Threaded:
    """A blocking object whose coroutine methods run in a worker thread each, and whose other attributes are its own."""

    def __init__(self, blocking: Any) -> None:
        self._blocking = blocking

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._blocking, name)
        return partial(_in_thread, found) if iscoroutinefunction(found) else found


class _ThreadedView(_Threaded):
    def log(self, of: LogOf[L]) -> L:
        return cast("L", _Threaded(self._blocking.log(of)))


async def _in_thread(method: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
    def call() -> T:  # makes the coroutine where it runs, so that a cancelled call leaves none behind
        return run_without_loop(method(*args, **kwargs))

    return await in_worker_thread(call)

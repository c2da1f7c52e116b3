"""psycopg connections that do not wait for ever, of either mode.

psycopg waits until the server answers. A caller who goes away meanwhile must leave nothing behind: a statement that
went on would write later, over what was saved since, and each retry would add another one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from inspect import iscoroutinefunction
from time import monotonic
from types import ModuleType
from typing import Any

from firefly_memory.concurrency.sync_bridge import result_of, run_without_loop

_GRACE = 2.0
"""Seconds for the server to end a statement that it was asked to end."""

_NOTHING_READY = 0  # psycopg's Ready.NONE

Steps = Generator[Any, Any, Any]
"""How psycopg talks to the server: it yields what it waits for, and is sent what has become ready."""


class _OverdueError(Exception):
    """Between the functions of this file."""


def with_client_timeout(psycopg: ModuleType, connection_class: Any, seconds: float) -> Any:
    """``connection_class``, whose statements end after so many ``seconds``, on the server as well."""

    class ServerSilentError(psycopg.OperationalError, TimeoutError):  # type: ignore[name-defined, misc]
        """The server does not even answer a request to end the statement."""

    async def called_off(connection: Any, wait: Callable[[Steps], Any], steps: Steps) -> Any:
        if psycopg.capabilities.has_cancel_safe():  # otherwise it would be unsafe, and might take for ever
            with suppress(psycopg.Error):
                await result_of(connection.cancel_safe(timeout=_GRACE))
        try:
            return await result_of(wait(_until(_GRACE, steps, _NOTHING_READY)))  # mostly an error: it was cancelled
        except _OverdueError:
            connection.pgconn.finish()
            raise ServerSilentError("the server does not answer") from None

    if iscoroutinefunction(connection_class.wait):

        class PatientAsyncConnection(connection_class):  # type: ignore[misc]
            async def wait(self, steps: Steps, *args: Any, **kwargs: Any) -> Any:
                try:
                    return await super().wait(_until(seconds, steps), *args, **kwargs)
                except _OverdueError:
                    return await called_off(self, super().wait, steps)

        return PatientAsyncConnection

    class PatientConnection(connection_class):  # type: ignore[misc]
        def wait(self, steps: Steps, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().wait(_until(seconds, steps), *args, **kwargs)
            except _OverdueError:
                return run_without_loop(called_off(self, super().wait, steps))

    return PatientConnection


def _until(seconds: float, steps: Steps, ready: Any = None) -> Steps:
    """``steps``, or an :class:`_OverdueError` between two of them, after which they can be continued."""
    deadline = monotonic() + seconds
    try:
        while True:
            ready = yield steps.send(ready)
            if not ready and monotonic() >= deadline:
                raise _OverdueError
    except StopIteration as end:
        return end.value

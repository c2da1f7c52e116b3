"""An engine with what runs on it: borrow a connection, run one operation, give it back in good order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import monotonic, sleep
from typing import Any, ParamSpec, TypeVar, cast

from sqlalchemy import Engine
from sqlalchemy.pool import PoolProxiedConnection, QueuePool
from sqlalchemy.util import await_only

from firefly_memory.concurrency.growing_pauses import growing_pauses
from firefly_memory.databases.sql.errors import (
    DatabaseName,
    Doubt,
    driver_error,
    is_an_answer,
    is_full,
    is_lost,
    translated,
    was_undone,
)
from firefly_memory.databases.sql.operation import REPEAT, Operation, UndecidedError
from firefly_memory.databases.sql.session import DriverSession
from firefly_memory.databases.sql.statements import Statements
from firefly_memory.errors import OutcomeUnknownError

P = ParamSpec("P")
T = TypeVar("T")

_LAST_USED = "firefly_memory.last_used"

_NOT_THERE = "what was written is not there now"

_QUIET = 30.0
"""Seconds of rest after which a connection is tried out: something on the way may have dropped it without a word."""


class Pool:
    """Runs operations on connections of one engine. For an asynchronous engine, inside ``greenlet_spawn``."""

    def __init__(
        self,
        engine: Engine,
        statements: Statements,
        db_name: DatabaseName,
        gate: AbstractContextManager[None] | None = None,
        is_quiet: Callable[[Any], bool] | None = None,
        timeout: float = 0.0,
        attempts: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """``is_quiet`` says of a driver's connection, without asking the server, that nothing has come from it since it
        was used; ``None`` where connections cannot be lost. A full server is asked again for ``timeout`` seconds.
        ``attempts`` is put around each attempt of an operation, given its name, and may have it begin again."""
        self.engine = engine
        self.statements = statements
        self._db_name = db_name
        self._gate = gate
        self._is_quiet = is_quiet
        self._timeout = timeout
        self._attempts = attempts
        self._disposed = False

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``operation``. If its connection is lost, it runs again on another one, in the way that the operation
        itself says (:mod:`~firefly_memory.databases.sql.operation`): once, and again for each connection that is lost
        although it had worked before."""
        work: Callable[..., T] = operation.work
        doubt = Doubt(operation.retryable)
        loss: Exception | None = None
        attempts = self._attempts(operation.name)
        while True:
            with attempts, translated(operation.name, self._db_name, doubt):
                connection = self._borrow(operation)
                is_new = _LAST_USED not in connection.info
                session = DriverSession(self.statements, connection, self._gate, self._timeout)
                try:
                    return work(session, *args, **kwargs)
                except UndecidedError:
                    if loss is None:
                        raise OutcomeUnknownError(operation.name, _NOT_THERE, retryable=operation.retryable) from None
                    raise loss from None
                except BaseException as exc:
                    if self._is_quiet is None or is_an_answer(exc):
                        raise
                    lost = self._is_lost(exc, connection)
                    session.is_usable = False
                    doubt.exists |= session.may_have_written and not was_undone(exc)
                    find_out = operation.after_lost_reply if doubt.exists else operation.work
                    if not isinstance(exc, Exception) or not lost or find_out is None or (is_new and loss is not None):
                        raise
                    work, loss = find_out, exc
                finally:
                    if not session.is_usable:
                        connection.invalidate()
                    self._give_back(connection)

    def has_connections(self) -> bool:
        """Whether a connection is open, at rest or at work."""
        pool = cast("QueuePool", self.engine.pool)
        return pool.checkedin() + pool.checkedout() > 0

    def dispose(self) -> None:
        """Close the connections: those at rest now, those at work when they are given back."""
        self._disposed = True
        self.engine.dispose()

    def warm_up(self, connections: int) -> None:
        """Open some connections now instead of when they are needed. One warm-up at a time: it holds what it has
        opened, and so it takes no connection that it would have to wait for."""
        pool = cast("QueuePool", self.engine.pool)
        with translated("initialize", self._db_name):
            opened: list[PoolProxiedConnection] = []
            try:
                while len(opened) < connections and pool.checkedout() < pool.size():
                    # Processes that hold one connection must not wait for each other's next.
                    opened.append(self.engine.raw_connection() if opened else self._connection())
            except Exception as exc:
                if not opened or not is_full(driver_error(exc)):
                    raise
            finally:
                for connection in opened:
                    self._give_back(connection)

    def _borrow(self, operation: Operation[Any, Any]) -> PoolProxiedConnection:
        """A connection; where it matters whether it is lost before anything is sent, one that does not look lost."""
        while True:
            connection = self._connection()
            last_used = connection.info.get(_LAST_USED)
            if self._is_quiet is None or last_used is None or operation.on_lost_reply is REPEAT:
                return connection
            try:
                if monotonic() - last_used > _QUIET or not self._is_quiet(connection.dbapi_connection):
                    self._try_out(connection)
            except BaseException as exc:
                is_lost = self._is_lost(exc, connection)
                connection.invalidate()
                self._give_back(connection)
                if not is_lost:
                    raise
            else:
                return connection

    def _connection(self) -> PoolProxiedConnection:
        """One that is free. If the server has no room for a new one, one may be given back meanwhile."""
        deadline = monotonic() + self._timeout
        pauses = growing_pauses()
        while True:
            try:
                return self.engine.raw_connection()
            except Exception as exc:
                seconds = next(pauses)
                if not is_full(driver_error(exc)) or monotonic() + seconds > deadline:
                    raise
            if self.engine.dialect.is_async:
                await_only(asyncio.sleep(seconds))
            else:
                sleep(seconds)

    def _give_back(self, connection: PoolProxiedConnection) -> None:
        if connection.is_valid:
            connection.info[_LAST_USED] = monotonic()
            if self._disposed:
                connection.invalidate()  # nobody would close it later
        connection.close()

    def _try_out(self, connection: PoolProxiedConnection) -> None:
        assert connection.dbapi_connection is not None
        self.engine.dialect.do_ping(connection.dbapi_connection)

    def _is_lost(self, exc: BaseException, connection: PoolProxiedConnection) -> bool:
        if not isinstance(exc, Exception):
            return False
        if isinstance(driver_error(exc), TimeoutError):
            return False  # it was closed because the server did not answer, and would not answer the next one
        return is_lost(exc) or self.engine.dialect.is_disconnect(exc, connection.dbapi_connection, None)  # type: ignore[arg-type]

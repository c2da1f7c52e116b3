"""An engine with what runs on it: borrow a connection, run one operation, give it back in good order."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlalchemy.pool import PoolProxiedConnection

from firefly_memory.errors import FireflyMemoryError
from firefly_memory.stores.sql.errors import Place, driver_error, translated
from firefly_memory.stores.sql.session import DriverSession, Session
from firefly_memory.stores.sql.statements import Statements

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=Statements)

Operation = Callable[Concatenate[Session[Any], P], T]

_USED = "firefly_memory.used"


class Pool(Generic[S]):
    """Runs operations on connections of one engine. For an asynchronous engine, inside ``greenlet_spawn``."""

    def __init__(
        self, engine: Engine, statements: S, place: Place, gate: AbstractContextManager[None] | None = None
    ) -> None:
        self.engine = engine
        self.statements = statements
        self._place = place
        self._gate = gate
        self._disposed = False

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``operation``, which must be safe to run twice: a connection that died while it lay in the pool, say
        because the server restarted, is only noticed by trying, and the operation is tried again on a fresh one."""
        with translated(operation.__name__, self._place):
            while True:
                connection = self.engine.raw_connection()
                rested = _USED in connection.info
                connection.info[_USED] = True
                try:
                    return operation(DriverSession(self.statements, connection, self._gate), *args, **kwargs)
                except BaseException as exc:
                    if self._gate is not None or _leaves_connection_usable(exc):
                        raise
                    lost = isinstance(exc, Exception) and self._is_lost(exc, connection)
                    connection.invalidate(exc)
                    if not (rested and lost):
                        raise
                finally:
                    if self._disposed:
                        connection.invalidate()  # nobody would close it later
                    connection.close()

    def dispose(self) -> None:
        """Close the connections: those at rest now, those at work when they are given back."""
        self._disposed = True
        self.engine.dispose()

    def warm_up(self, connections: int) -> None:
        """Open some connections now instead of when they are needed."""
        with translated("initialize", self._place):
            opened = []
            try:
                for _ in range(connections):
                    opened.append(self.engine.raw_connection())  # noqa: PERF401 - each must be given back
            finally:
                for connection in opened:
                    connection.close()

    def _is_lost(self, exc: Exception, connection: PoolProxiedConnection) -> bool:
        sqlstate = getattr(driver_error(exc), "sqlstate", None) or ""
        if sqlstate[:2] == "08" or sqlstate[:3] == "57P":
            return True
        return self.engine.dialect.is_disconnect(exc, connection.dbapi_connection, None)  # type: ignore[arg-type]


def _leaves_connection_usable(exc: BaseException) -> bool:
    """Whether the database itself answered; after anything else, a cancelled task say, nobody knows."""
    if isinstance(exc, (FireflyMemoryError, sqlite3.Error)):
        return True
    sqlstate = getattr(driver_error(exc), "sqlstate", None) if isinstance(exc, Exception) else None
    return isinstance(sqlstate, str) and sqlstate[:2] != "08" and sqlstate[:3] != "57P"

"""An engine with what runs on it: borrow a connection, run one operation, give it back in good order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from sqlalchemy import Engine
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from firefly_memory.stores.sql.errors import Place, driver_error, is_an_answer, is_lost, translated
from firefly_memory.stores.sql.session import DriverSession, Session
from firefly_memory.stores.sql.statements import Statements

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=Statements)

Operation = Callable[Concatenate[Session[Any], P], T]

_USED = "firefly_memory.used"

_AGAIN: dict[Any, Any] = {}
_NEVER_REPEATED: set[Any] = set()


def repeated_as(again: Operation[P, T]) -> Callable[[Operation[P, T]], Operation[P, T]]:
    """For an operation that must not be done twice: ``again`` finds out whether it was done, and does it if not."""

    def register(operation: Operation[P, T]) -> Operation[P, T]:
        _AGAIN[operation] = again
        again.__name__ = operation.__name__  # errors have it
        return operation

    return register


def never_repeated(operation: Operation[P, T]) -> Operation[P, T]:
    """For an operation whose answer would be another one the second time, such as how many rows were deleted: the
    connection is tried out first, which costs a round trip, and what is lost after that is the caller's to know."""
    _NEVER_REPEATED.add(operation)
    return operation


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
        """Run ``operation``. A connection that died while it lay in the pool, say because the server restarted, is only
        noticed by trying, and the operation is tried again on a fresh one. So it must be safe to run twice, or say
        what to do instead (:func:`repeated_as`, :func:`never_repeated`)."""
        with translated(operation.__name__, self._place):
            while True:
                connection = self.engine.raw_connection()
                again = self._gate is None and _USED in connection.info
                connection.info[_USED] = True
                try:
                    if again and operation in _NEVER_REPEATED:
                        self._try_out(connection)
                        again = False
                    return operation(DriverSession(self.statements, connection, self._gate), *args, **kwargs)
                except BaseException as exc:
                    if self._gate is not None or is_an_answer(exc):
                        raise
                    lost = isinstance(exc, Exception) and self._is_lost(exc, connection)
                    connection.invalidate(exc)
                    if not (again and lost):
                        raise
                    operation = _AGAIN.get(operation, operation)
                finally:
                    self._give_back(connection)

    def dispose(self) -> None:
        """Close the connections: those at rest now, those at work when they are given back."""
        self._disposed = True
        self.engine.dispose()

    def warm_up(self, connections: int) -> None:
        """Open some connections now instead of when they are needed. One warm-up at a time: it holds what it has
        opened, and so it takes no connection that it would have to wait for."""
        pool = cast("QueuePool", self.engine.pool)
        with translated("initialize", self._place):
            opened: list[PoolProxiedConnection] = []
            try:
                while len(opened) < connections and pool.checkedout() < pool.size():
                    opened.append(self.engine.raw_connection())
            finally:
                for connection in opened:
                    self._give_back(connection)

    def _give_back(self, connection: PoolProxiedConnection) -> None:
        if self._disposed:
            connection.invalidate()  # nobody would close it later
        connection.close()

    def _try_out(self, connection: PoolProxiedConnection) -> None:
        assert connection.dbapi_connection is not None
        self.engine.dialect.do_ping(connection.dbapi_connection)

    def _is_lost(self, exc: Exception, connection: PoolProxiedConnection) -> bool:
        if isinstance(driver_error(exc), TimeoutError):
            return False  # it was closed because the server did not answer, and would not answer the next one
        return is_lost(exc) or self.engine.dialect.is_disconnect(exc, connection.dbapi_connection, None)  # type: ignore[arg-type]

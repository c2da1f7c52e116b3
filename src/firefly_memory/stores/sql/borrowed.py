"""Databases that are the caller's: an engine, or one connection with its transaction. Never closed by us."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Dialect, Engine

from firefly_memory.errors import ConfigurationError, StoreClosedError
from firefly_memory.options import seconds
from firefly_memory.stores.sql.errors import Place, translated
from firefly_memory.stores.sql.migrate import checked_schema_name, ensure_schema
from firefly_memory.stores.sql.pool import Operation
from firefly_memory.stores.sql.runners import CallRunner, Runner, here, in_greenlet, in_thread, refused
from firefly_memory.stores.sql.session import BoundSession
from firefly_memory.stores.sql.statements import Statements

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

P = ParamSpec("P")
T = TypeVar("T")


_ASYNC_ENGINE = (
    "blocking methods cannot use an AsyncEngine; await the asynchronous ones, or give the store an Engine or a URL"
)
_ASYNC_CONNECTION = "blocking methods cannot use an AsyncConnection; await the asynchronous ones, or bind a Connection"


class BorrowedDatabase:
    """An engine of the caller's, with the caller's pool, events and isolation. An operation is one transaction."""

    def __init__(
        self,
        engine: Engine | AsyncEngine,
        statements: type[Statements],
        schema_name: str | None,
        *,
        timeout: float,
        migrate: bool,
    ) -> None:
        if not isinstance(engine, Engine) and not hasattr(engine, "sync_engine"):
            raise ConfigurationError(f"engine must be a SQLAlchemy Engine or AsyncEngine, not {type(engine).__name__}")
        self.engine: Engine = engine if isinstance(engine, Engine) else engine.sync_engine
        _check_dialect("engine", self.engine.dialect, statements)
        name = self.engine.url.render_as_string(hide_password=True)
        self.place = Place(name, None if schema_name is None else checked_schema_name(schema_name))
        self.timeout = seconds("timeout", timeout)
        self._migrate = migrate
        self._schema_is_current = False
        self._closed = False
        self._statements = statements(self.engine.dialect, self.place.schema_name)
        self.blocking: Runner
        self.suspending: Runner
        if isinstance(engine, Engine):
            self.blocking = CallRunner(self, here)
            self.suspending = CallRunner(self, in_thread)
        else:
            self.blocking = CallRunner(self, refused(_ASYNC_ENGINE))
            self.suspending = CallRunner(self, in_greenlet)

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._prepare(operation.__name__, None)
        with translated(operation.__name__, self.place), self.engine.begin() as connection:
            return operation(BoundSession(self._statements, connection), *args, **kwargs)

    def initialize(self, migrate: bool | None) -> None:
        self._prepare("initialize", migrate)

    def close(self) -> None:
        self._closed = True

    def _prepare(self, operation: str, migrate: bool | None) -> None:
        if self._closed:
            raise StoreClosedError(operation)
        if not self._schema_is_current:
            wanted = self._migrate if migrate is None else migrate
            ensure_schema(self.engine, self.place, migrate=wanted, timeout=self.timeout)
            self._schema_is_current = True


class BoundDatabase:
    """One connection of the caller's: everything happens in its transaction, and lasts if the caller commits."""

    def __init__(
        self, connection: Connection | AsyncConnection, statements: type[Statements], schema_name: str | None
    ) -> None:
        if not isinstance(connection, Connection) and not hasattr(connection, "sync_connection"):
            raise ConfigurationError(
                f"bind() needs an open Connection or AsyncConnection of SQLAlchemy, not {type(connection).__name__}"
            )
        self._connection = connection if isinstance(connection, Connection) else connection.sync_connection
        if self._connection is None:
            raise ConfigurationError("the connection has not been opened; use it as `async with engine.begin() as …`")
        dialect = self._connection.dialect
        _check_dialect("connection", dialect, statements)
        self._place = Place("the bound connection", schema_name)
        self._statements = _compiled(statements, dialect, schema_name)
        self.blocking: Runner = CallRunner(self, here)
        self.suspending: Runner = self.blocking
        if not isinstance(connection, Connection):
            self.blocking = CallRunner(self, refused(_ASYNC_CONNECTION))
            self.suspending = CallRunner(self, in_greenlet)

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        assert self._connection is not None
        with translated(operation.__name__, self._place):
            return operation(BoundSession(self._statements, self._connection), *args, **kwargs)

    def initialize(self, migrate: bool | None) -> None:
        """Nothing: the schema is not this transaction's business."""

    def close(self) -> None:
        """Nothing: the connection is the caller's."""


_bound_statements: WeakKeyDictionary[Dialect, dict[str | None, Statements]] = WeakKeyDictionary()


def _compiled(statements: type[Statements], dialect: Dialect, schema_name: str | None) -> Statements:
    """Kept, for compiling takes longer than running, and connections are bound all the time."""
    of_dialect = _bound_statements.setdefault(dialect, {})
    if schema_name not in of_dialect:
        of_dialect[schema_name] = statements(dialect, schema_name)
    return of_dialect[schema_name]


def _check_dialect(what: str, dialect: Dialect, statements: type[Statements]) -> None:
    if dialect.name != statements.dialect_name:
        raise ConfigurationError(f"the {what} is for {dialect.name}, this store is for {statements.dialect_name}")

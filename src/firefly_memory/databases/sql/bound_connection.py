"""One connection of the caller's, with its transaction. Never closed by us."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Dialect
from sqlalchemy.util import greenlet_spawn

from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.errors import DatabaseName, translated
from firefly_memory.databases.sql.executor import BlockingExecutor, CallExecutor, Executor, refused
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.databases.sql.session import BoundSession
from firefly_memory.databases.sql.statements import Statements, statements_of
from firefly_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

P = ParamSpec("P")
T = TypeVar("T")

_ASYNC_CONNECTION = "blocking methods cannot use an AsyncConnection; await the asynchronous ones, or bind a Connection"

_AUTOCOMMIT = (
    "the connection commits each statement by itself, so nothing can join its transaction; "
    "bind one whose isolation_level is not AUTOCOMMIT"
)


class _Owner(Protocol):
    """What a bound store depends on."""

    def check_open(self, operation: str) -> None: ...


class BoundDatabase:
    """One connection of the caller's: everything happens in its transaction, and lasts if the caller commits."""

    def __init__(
        self,
        connection: Connection | AsyncConnection,
        kind: type[SQLDialect],
        schema_name: str | None,
        owner: _Owner,
    ) -> None:
        self.check_open: Callable[[str], None] = owner.check_open
        self.check_open("bind")
        if not isinstance(connection, Connection) and not hasattr(connection, "sync_connection"):
            raise ConfigurationError(
                f"bind() needs an open Connection or AsyncConnection of SQLAlchemy, not {type(connection).__name__}"
            )
        self._connection = connection if isinstance(connection, Connection) else connection.sync_connection
        if self._connection is None:
            raise ConfigurationError("the connection has not been opened; use it as `async with engine.begin() as …`")
        dialect = self._connection.dialect
        check_dialect("connection", dialect, kind)
        if not self._connection.closed and is_autocommit(self._connection):
            raise ConfigurationError(_AUTOCOMMIT)
        self._db_name = DatabaseName("the bound connection", schema_name)
        self._statements = _compiled(kind, dialect, schema_name)
        self.blocking: Executor = BlockingExecutor(self)
        self.suspending: Executor = self.blocking
        if not isinstance(connection, Connection):
            self.blocking = CallExecutor(self, refused(_ASYNC_CONNECTION))
            self.suspending = CallExecutor(self, greenlet_spawn)

    def ready(self, operation: str) -> BoundDatabase:
        self.check_open(operation)
        return self

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        assert self._connection is not None
        with translated(operation.name, self._db_name):
            return operation(BoundSession(self._statements, self._connection, None), *args, **kwargs)

    def initialize(self, migrate: bool | None) -> None:
        """Nothing more: the schema is not this transaction's business."""
        self.check_open("initialize")

    def close(self) -> None:
        """Nothing: the connection is the caller's."""


def is_autocommit(connection: Connection) -> bool:
    dialect = connection.dialect
    if dialect.name == "sqlite":  # the driver is in that mode too where an application begins by itself
        return connection._is_autocommit_isolation()  # noqa: SLF001 - nothing public tells
    assert connection.connection.dbapi_connection is not None
    return dialect.detect_autocommit_setting(connection.connection.dbapi_connection)


_bound_statements: WeakKeyDictionary[Dialect, dict[str | None, Statements]] = WeakKeyDictionary()


def _compiled(kind: type[SQLDialect], dialect: Dialect, schema_name: str | None) -> Statements:
    """Kept, for compiling takes longer than running, and connections are bound all the time."""
    of_dialect = _bound_statements.setdefault(dialect, {})
    if schema_name not in of_dialect:
        of_dialect[schema_name] = statements_of(kind, dialect, schema_name)
    return of_dialect[schema_name]


def check_dialect(what: str, dialect: Dialect, kind: type[SQLDialect]) -> None:
    if dialect.name != kind.name:
        raise ConfigurationError(f"the {what} is for {dialect.name}, this store is for {kind.name}")

"""How an operation runs a statement: on the driver's connection, or on a SQLAlchemy connection that is the caller's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.pool import PoolProxiedConnection

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import OfFacet, Statements

Values = Mapping[str, Any]


class Session(ABC):
    """One connection, for the length of one operation. The mode of the connection makes no difference here."""

    def __init__(self, statements: Statements, timeout: float | None) -> None:
        self.statements: OfFacet = statements.of
        self.dialect: SQLDialect = statements.dialect
        self.kept: dict[str, Any] = statements.kept
        """What facets have read of the database and keep: it may have changed since."""
        self.timeout = timeout
        """Seconds that an operation may wait for the transactions of others; ``None`` if it must not, since it is part
        of a transaction of the caller's, for which others may be waiting."""
        self.may_have_written = False
        """Whether the database may have done a write that was sent: of a transaction, once its end was sent."""

    @abstractmethod
    def execute(self, statement: Statement, values: Values) -> int:
        """Run a statement, and return how many rows it touched."""

    @abstractmethod
    def execute_many(self, statement: Statement, rows: Iterable[Values]) -> int:
        """Run a statement for each row of parameters, and return how many rows they touched together."""

    @abstractmethod
    def fetch(self, statement: Statement, values: Values) -> Sequence[Sequence[Any]]:
        """Run a statement, and return its rows."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Around a write of one statement."""

    @abstractmethod
    def attempt(self) -> AbstractContextManager[None]:
        """Around a write of one statement that a constraint may refuse without ending what surrounds it."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Around a write of several statements: all of them or none."""


class DriverSession(Session):
    """On a pooled connection of ours, in autocommit mode, without SQLAlchemy's layers between.

    A statement that is atomic by itself then costs one round trip. ``gate`` lets one writer of this process in at a
    time, where the database would only make them collide.
    """

    def __init__(
        self,
        statements: Statements,
        connection: PoolProxiedConnection,
        gate: AbstractContextManager[None] | None,
        timeout: float,
    ) -> None:
        super().__init__(statements, timeout)
        self.is_usable = True
        """Whether the connection may be used again: not if a transaction could not be ended."""
        self._connection = connection
        self._gate: AbstractContextManager[None] = nullcontext() if gate is None else gate

    def execute(self, statement: Statement, values: Values) -> int:
        with self._cursor() as cursor:
            cursor.execute(statement.sql, statement.parameters(values))
            return cursor.rowcount

    def execute_many(self, statement: Statement, rows: Iterable[Values]) -> int:
        with self._cursor() as cursor:
            cursor.executemany(statement.sql, [statement.parameters(values) for values in rows])
            return cursor.rowcount

    def fetch(self, statement: Statement, values: Values) -> Sequence[Sequence[Any]]:
        with self._cursor() as cursor:
            cursor.execute(statement.sql, statement.parameters(values))
            return cursor.fetchall()

    def writing(self) -> AbstractContextManager[None]:
        self.may_have_written = True  # a gate that stays shut is no lost answer
        return self._gate

    attempt = writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._gate:
            self._command(self.dialect.begin)
            try:
                yield
                self.may_have_written = True
                self._command("COMMIT")
            except BaseException:
                try:
                    self._command("ROLLBACK")
                except Exception:  # noqa: BLE001 - the first error is the one to report
                    self.is_usable = False
                raise

    def _command(self, sql: str) -> None:
        with self._cursor() as cursor:
            cursor.execute(sql)

    def _cursor(self) -> closing[DBAPICursor]:
        return closing(self._connection.cursor())


class BoundSession(Session):
    """On a SQLAlchemy connection, inside its transaction, visible to its events and log."""

    def __init__(self, statements: Statements, connection: Connection, timeout: float | None) -> None:
        super().__init__(statements, timeout)
        self._connection = connection

    def execute(self, statement: Statement, values: Values) -> int:
        return self._connection.exec_driver_sql(statement.sql, statement.parameters(values)).rowcount

    def execute_many(self, statement: Statement, rows: Iterable[Values]) -> int:
        parameters = [statement.parameters(values) for values in rows]
        if not parameters:  # SQLAlchemy would run the statement once, without any
            return 0
        return self._connection.exec_driver_sql(statement.sql, parameters).rowcount

    def fetch(self, statement: Statement, values: Values) -> Sequence[Sequence[Any]]:
        return self._connection.exec_driver_sql(statement.sql, statement.parameters(values)).all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        self._begin()
        yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._begin()
        with self._connection.begin_nested():
            yield

    attempt = transaction

    def _begin(self) -> None:
        self.may_have_written = True
        self._begin_transaction()

    def _begin_transaction(self) -> None:
        """Python's SQLite driver begins late: not for statements it does not know, nor for a savepoint, which would
        then commit when it is released."""
        connection = self._connection
        if connection.dialect.name == "sqlite":
            driver_connection = connection.connection.driver_connection
            if not getattr(driver_connection, "in_transaction", True):
                connection.exec_driver_sql("BEGIN IMMEDIATE")

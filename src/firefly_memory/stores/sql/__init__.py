"""The stores on SQL databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Connection

from firefly_memory.databases.sql.bound_connection import BoundDatabase
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.entries.sql.hooks import SQLBackend
from firefly_memory.entries.store_operations import RecordView
from firefly_memory.protocols import Capability
from firefly_memory.reprs import even_half_built
from firefly_memory.stores.base import EntryStore

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


class _Database(Protocol):
    @property
    def blocking(self) -> Executor: ...

    @property
    def suspending(self) -> Executor: ...

    def check_open(self, operation: str) -> None: ...


class SQLStore(EntryStore):
    """Entries in the table ``memory_entries`` of a SQL database."""

    _dialect: type[SQLDialect]
    _schema_name: str | None
    _capabilities: frozenset[Capability] = frozenset(Capability)

    def __init__(self, database: _Database) -> None:
        self.database = database
        super().__init__(RecordView(self._backend(database.blocking)), RecordView(self._backend(database.suspending)))

    def _backend(self, executor: Executor) -> SQLBackend:
        return SQLBackend(executor, self._dialect, self._capabilities)

    def bind(self, connection: Connection | AsyncConnection) -> BoundStore:
        """This store inside the transaction of ``connection``: what it does commits or rolls back with the rest.

        An ``AsyncConnection`` has the asynchronous methods only. Nothing is committed, closed or migrated here. When
        this store is closed, what was bound is as well.
        """
        bound = BoundDatabase(connection, self._dialect, self._schema_name, self.database)
        return BoundStore(self, bound)


class BoundStore(SQLStore):
    """What :meth:`SQLStore.bind` returns."""

    in_transaction = True

    def __init__(self, store: SQLStore, database: BoundDatabase) -> None:
        self._dialect = store._dialect  # noqa: SLF001 - a sibling
        self._schema_name = store._schema_name  # noqa: SLF001
        self._capabilities = store._capabilities  # noqa: SLF001
        self._store = store
        super().__init__(database)

    @even_half_built
    def __repr__(self) -> str:
        return f"<{self._store!r} bound to a connection>"

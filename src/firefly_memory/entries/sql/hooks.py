"""The hooks of a store, in SQL: each is an operation, run by the executor."""

from __future__ import annotations

from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.entries.sql import operations
from firefly_memory.facets import FacetLogs
from firefly_memory.protocols import Capability


class SQLBackend:
    """A :class:`~firefly_memory.entries.hooks.Backend` over an executor."""

    def __init__(self, executor: Executor, dialect: type[SQLDialect], capabilities: frozenset[Capability]) -> None:
        self.form = dialect.form
        self.read_instant = dialect.read_instant
        self.capabilities = capabilities
        self.log = FacetLogs("sql", lambda log: log(executor, dialect))
        self.initialize = executor.initialize
        self.close = executor.close
        self.save = executor.method(operations.save)
        self.save_if = executor.method(operations.save_if)
        self.save_many = executor.method(operations.save_many)
        self.scan = executor.method(operations.load)
        self.scan_several = executor.method(operations.load_several)
        self.newest = executor.method(operations.load_by_key)
        self.delete = executor.method(operations.delete)
        self.delete_many = executor.method(operations.delete_many)
        self.clear = executor.method(operations.clear)
        self.count = executor.method(operations.count)
        self.namespaces = executor.method(operations.namespaces)
        self.purge = executor.method(operations.cleanup_expired)

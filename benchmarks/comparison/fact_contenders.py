"""Stores of facts: firefly-memory's long-term memory, and LangGraph's stores, none of them with an embedder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from benchmarks.comparison.contender import Place
from benchmarks.long_term_facts import Known, Whose
from benchmarks.long_term_rows import put_facts
from firefly_memory import EntryStore, InMemoryStore, PostgreSQLStore, SQLiteStore
from firefly_memory.longterm import MemoryService


class FactContender(ABC):
    name: ClassVar[str]
    backend: ClassVar[str]
    package: ClassVar[str]
    """The distribution whose version is shown."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.opened = ExitStack()

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def fill(self, some: Sequence[Known]) -> None:
        """Add facts in one call."""

    @abstractmethod
    def put(self, whose: Whose, key: str, value: str) -> None: ...

    @abstractmethod
    def get(self, whose: Whose, key: str) -> str: ...

    @abstractmethod
    def listed(self, whose: Whose, limit: int) -> list[str]:
        """The values of some facts of one person or scope."""

    def close(self) -> None:
        self.opened.close()


class _Ours(FactContender):
    name = "firefly-memory"
    package = "firefly-memory"

    def new_store(self) -> EntryStore:
        raise NotImplementedError

    def open(self) -> None:
        self.store = self.opened.enter_context(self.new_store())
        self.service = MemoryService(self.store, embedder=None)

    def fill(self, some: Sequence[Known]) -> None:
        put_facts(self.store, some)

    def put(self, whose: Whose, key: str, value: str) -> None:
        self.service.set_fact(key, value, scope=whose.scope, **whose.ids._asdict())  # type: ignore[arg-type]

    def get(self, whose: Whose, key: str) -> str:
        fact = self.service.find_fact(key, whose.scope, **whose.ids._asdict())  # type: ignore[arg-type]
        assert fact is not None
        return str(fact.value)

    def listed(self, whose: Whose, limit: int) -> list[str]:
        return [each.value for each in self.service.get_user_facts(whose.id, limit)]


class OursInMemory(_Ours):
    backend = "memory"

    def new_store(self) -> EntryStore:
        return InMemoryStore()


class OursOnSQLite(_Ours):
    backend = "sqlite"

    def new_store(self) -> EntryStore:
        return SQLiteStore(self.place.path)


class OursOnPostgreSQL(_Ours):
    backend = "postgresql"

    def new_store(self) -> EntryStore:
        return PostgreSQLStore(self.place.postgresql_url)


class _LangGraph(FactContender):
    def new_store(self) -> Any:
        raise NotImplementedError

    def open(self) -> None:
        self.store = self.new_store()

    def fill(self, some: Sequence[Known]) -> None:
        from langgraph.store.base import PutOp

        self.store.batch([PutOp(_namespace(each.whose), each.key, {"value": each.value}) for each in some])

    def put(self, whose: Whose, key: str, value: str) -> None:
        self.store.put(_namespace(whose), key, {"value": value})

    def get(self, whose: Whose, key: str) -> str:
        return str(self.store.get(_namespace(whose), key).value["value"])

    def listed(self, whose: Whose, limit: int) -> list[str]:
        return [item.value["value"] for item in self.store.search(_namespace(whose), limit=limit)]


def _namespace(whose: Whose) -> tuple[str, ...]:
    return tuple(part for part in whose if part)


class LangGraphInMemory(_LangGraph):
    name = "LangGraph, `InMemoryStore`"
    backend = "memory"
    package = "langgraph"

    def new_store(self) -> Any:
        from langgraph.store.memory import InMemoryStore as TheirStore

        return TheirStore()


class LangGraphOnSQLite(_LangGraph):
    name = "LangGraph, `SqliteStore`"
    backend = "sqlite"
    package = "langgraph-checkpoint-sqlite"

    def new_store(self) -> Any:
        from langgraph.store.sqlite import SqliteStore

        store = self.opened.enter_context(SqliteStore.from_conn_string(str(self.place.path)))
        store.setup()
        return store


class LangGraphOnPostgreSQL(_LangGraph):
    name = "LangGraph, `PostgresStore`"
    backend = "postgresql"
    package = "langgraph-checkpoint-postgres"

    def new_store(self) -> Any:
        from langgraph.store.postgres import PostgresStore

        store = self.opened.enter_context(PostgresStore.from_conn_string(self.place.postgresql_url))
        store.setup()
        return store


FACT_CONTENDERS: dict[str, type[FactContender]] = {
    each.__name__: each
    for each in (
        OursInMemory,
        LangGraphInMemory,
        OursOnSQLite,
        LangGraphOnSQLite,
        OursOnPostgreSQL,
        LangGraphOnPostgreSQL,
    )
}

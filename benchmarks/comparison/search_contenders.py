"""Stores with a search by meaning: firefly-memory's and LangGraph's, with the same embedder."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from benchmarks.comparison.contender import Place
from firefly_memory import EntryStore, InMemoryStore, PostgreSQLStore, SQLiteStore
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from firefly_memory.search.hits import Mode
from firefly_memory.search.searchable import document_text

TOP_K = 10
EMBEDDER = WordLlamaEmbedder()


class SearchContender(ABC):
    name: ClassVar[str]
    backend: ClassVar[str]
    package: ClassVar[str]
    """The distribution whose version is shown."""
    compares: ClassVar[str]
    """What a search goes by."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.opened = ExitStack()

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def fill(self, collection: str, chunks: Sequence[Chunk]) -> list[str]:
        """Add chunks in one call; their names."""

    @abstractmethod
    def put(self, collection: str, chunk: Chunk) -> str:
        """Add one; its name."""

    @abstractmethod
    def search(self, collection: str, question: str) -> list[str]:
        """The names of the best :data:`TOP_K` chunks."""

    def close(self) -> None:
        self.opened.close()


class _Ours(SearchContender):
    package = "firefly-memory"
    mode: ClassVar[Mode]

    def new_store(self) -> EntryStore:
        raise NotImplementedError

    def open(self) -> None:
        self.knowledge = KnowledgeStore(self.opened.enter_context(self.new_store()), embedder=EMBEDDER)

    def fill(self, collection: str, chunks: Sequence[Chunk]) -> list[str]:
        return self.knowledge.add(collection, chunks)

    def put(self, collection: str, chunk: Chunk) -> str:
        return self.knowledge.add(collection, chunk)[0]

    def search(self, collection: str, question: str) -> list[str]:
        return [hit.id for hit in self.knowledge.search(collection, question, TOP_K, self.mode)]


class _ByMeaning(_Ours):
    name = "firefly-memory, `semantic`"
    compares = "vectors, and neighbours"
    mode = "semantic"


class _Hybrid(_Ours):
    name = "firefly-memory, `hybrid`"
    compares = "words and vectors, and neighbours"
    mode = "hybrid"


class _InMemory(_Ours):
    backend = "memory"

    def new_store(self) -> EntryStore:
        return InMemoryStore()


class _OnSQLite(_Ours):
    backend = "sqlite"

    def new_store(self) -> EntryStore:
        return SQLiteStore(self.place.path)


class _OnPostgreSQL(_Ours):
    backend = "postgresql"

    def new_store(self) -> EntryStore:
        return PostgreSQLStore(self.place.postgresql_url)


class MeaningInMemory(_ByMeaning, _InMemory): ...


class HybridInMemory(_Hybrid, _InMemory): ...


class MeaningOnSQLite(_ByMeaning, _OnSQLite): ...


class HybridOnSQLite(_Hybrid, _OnSQLite): ...


class MeaningOnPostgreSQL(_ByMeaning, _OnPostgreSQL): ...


class HybridOnPostgreSQL(_Hybrid, _OnPostgreSQL): ...


def _embed(texts: list[str]) -> list[list[float]]:
    return [vector.tolist() for vector in EMBEDDER.embed(texts)]  # type: ignore[attr-defined]


class _LangGraph(SearchContender):
    compares = "vectors"

    def new_store(self, index: Any) -> Any:
        raise NotImplementedError

    def open(self) -> None:
        # SqliteStore reads "text_fields", though its documentation says "fields" as the others read.
        fields = {"fields": ["text"], "text_fields": ["text"]}
        self.store = self.new_store({"dims": EMBEDDER.dimensions, "embed": _embed, **fields})
        self.count = 0

    def fill(self, collection: str, chunks: Sequence[Chunk]) -> list[str]:
        from langgraph.store.base import PutOp

        names = self._new_names(len(chunks))
        self.store.batch(
            [
                PutOp((collection,), name, {"text": document_text(chunk.text, chunk.who)})
                for name, chunk in zip(names, chunks, strict=True)
            ]
        )
        return names

    def put(self, collection: str, chunk: Chunk) -> str:
        (name,) = self._new_names(1)
        self.store.put((collection,), name, {"text": document_text(chunk.text, chunk.who)})
        return name

    def search(self, collection: str, question: str) -> list[str]:
        return [item.key for item in self.store.search((collection,), query=question, limit=TOP_K)]

    def _new_names(self, count: int) -> list[str]:
        self.count += count
        return [f"{number:08}" for number in range(self.count - count, self.count)]


class LangGraphInMemory(_LangGraph):
    name = "LangGraph, `InMemoryStore`"
    backend = "memory"
    package = "langgraph"

    def new_store(self, index: Any) -> Any:
        from langgraph.store.memory import InMemoryStore as TheirStore

        return TheirStore(index=index)

    def fill(self, collection: str, chunks: Sequence[Chunk]) -> list[str]:
        # Not batch(): it raises an error if two documents have the same text.
        return [self.put(collection, chunk) for chunk in chunks]


class LangGraphOnSQLite(_LangGraph):
    name = "LangGraph, `SqliteStore`"
    backend = "sqlite"
    package = "langgraph-checkpoint-sqlite"

    def new_store(self, index: Any) -> Any:
        from langgraph.store.sqlite import SqliteStore

        store = self.opened.enter_context(SqliteStore.from_conn_string(str(self.place.path), index=index))
        store.setup()
        return store


class LangGraphOnPostgreSQL(_LangGraph):
    name = "LangGraph, `PostgresStore`"
    backend = "postgresql"
    package = "langgraph-checkpoint-postgres"
    compares = "vectors, by an HNSW index"

    def new_store(self, index: Any) -> Any:
        from langgraph.store.postgres import PostgresStore

        store = self.opened.enter_context(PostgresStore.from_conn_string(self.place.postgresql_url, index=index))
        store.setup()
        return store


SEARCH_CONTENDERS: dict[str, type[SearchContender]] = {
    each.__name__: each
    for each in (
        MeaningInMemory,
        HybridInMemory,
        LangGraphInMemory,
        MeaningOnSQLite,
        HybridOnSQLite,
        LangGraphOnSQLite,
        MeaningOnPostgreSQL,
        HybridOnPostgreSQL,
        LangGraphOnPostgreSQL,
    )
}

LOADS_EXTENSIONS = hasattr(sqlite3.Connection, "enable_load_extension")


def cannot_run(contender: type[SearchContender]) -> str | None:
    """Why a contender cannot be measured here."""
    if contender is LangGraphOnSQLite and not LOADS_EXTENSIONS:
        return "the sqlite3 module of this Python loads no extensions"
    return None

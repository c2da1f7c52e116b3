"""Knowledge in SQL: each call is an operation, run by the executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.knowledge.log import CHUNKS
from firefly_memory.knowledge.sql import operations
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.sql.index import SQLSearchIndex, count_vectors, delete_vectors_of_embedder
from firefly_memory.search.sql.languages import read_language, set_language


class SQLKnowledgeLog:
    """A :class:`~firefly_memory.knowledge.log.KnowledgeLog` over an executor."""

    def __init__(self, executor: Executor, _: type[SQLDialect]) -> None:
        self._run = executor.run
        self.index = SQLSearchIndex(executor, CHUNKS)
        self.add = executor.method(operations.add_chunks)
        self.read = executor.method(operations.read_chunks)
        self.page = executor.method(operations.read_page)
        self.oldest = executor.method(operations.read_oldest)
        self.of_owner = executor.method(operations.read_ids_of_owner)
        self.collections = executor.method(operations.read_collections)
        self.count = executor.method(operations.count_chunks)
        self.delete = executor.method(operations.delete_chunks)
        self.delete_some = executor.method(operations.delete_some_chunks)
        self.without_vector = executor.method(operations.read_without_vector)
        self.add_vectors = executor.method(operations.add_vectors)
        self.rewrite = executor.method(operations.rewrite_chunks)
        self.damage = executor.method(operations.find_damage)
        self.mend = executor.method(operations.mend_index)

    async def language(self) -> IndexLanguage | None:
        return await self._run(read_language, CHUNKS)

    async def vectors_by_embedder(self) -> Mapping[str, int]:
        return await self._run(count_vectors, CHUNKS)

    async def delete_vectors(self, embedder: str, limit: int, after: str) -> Sequence[str]:
        return await self._run(delete_vectors_of_embedder, CHUNKS, embedder, limit, after)

    async def set_language(self, language: IndexLanguage) -> None:
        await self._run(set_language, CHUNKS, language)

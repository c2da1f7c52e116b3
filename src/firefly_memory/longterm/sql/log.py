"""Long-term memory in SQL: each call is an operation, run by the executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ParamSpec, TypeVar

from firefly_memory.databases.sql.collisions import again_after_collision
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor, Method
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.longterm.rows import FACTS, FactRow, FactWrite, PersonMovedError, VersionRow, Written
from firefly_memory.longterm.sql import operations, people_operations, together
from firefly_memory.longterm.sql.merging import merge_users
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.sql.index import SQLSearchIndex, count_vectors, delete_vectors_of_embedder
from firefly_memory.search.sql.languages import read_language, set_language

P = ParamSpec("P")
T = TypeVar("T")


def _written(executor: Executor, operation: Operation[P, T]) -> Method[P, T]:
    """Facts, people and merges lock each other's rows, and several may wait in a circle."""
    return again_after_collision(executor.method(operation))


class SQLFactLog:
    """A :class:`~firefly_memory.longterm.log.FactLog` over an executor."""

    def __init__(self, executor: Executor, dialect: type[SQLDialect]) -> None:
        has_one_writer = dialect.name == "sqlite"
        self._run = executor.run
        self._set = _written(executor, together.set_facts if has_one_writer else operations.set_facts)
        self.index = SQLSearchIndex(executor, FACTS)
        self._restore = _written(executor, operations.restore_fact)
        self.get = _written(executor, together.get_fact if has_one_writer else operations.get_fact)
        self.find = executor.method(operations.find_fact)
        self.as_of = executor.method(operations.read_fact_as_of)
        self.read = executor.method(operations.read_facts)
        self.page = executor.method(operations.read_page)
        self.list = executor.method(operations.list_facts)
        self.of_owner = executor.method(operations.read_ids_of_owner)
        self.count = executor.method(operations.count_facts)
        self.confirm = _written(executor, operations.confirm_fact)
        self.contradict = _written(executor, operations.contradict_fact)
        self.versions = executor.method(operations.read_versions)
        self.delete = _written(executor, operations.delete_facts)
        self.delete_versions = _written(executor, operations.delete_versions)
        self.versions_of_owner = executor.method(operations.read_versions_of_owner)
        self.page_of_versions = executor.method(operations.read_page_of_versions)
        self.count_versions = executor.method(operations.count_versions)
        self.count_versions_of = executor.method(operations.count_versions_of)
        self.without_vector = executor.method(operations.read_without_vector)
        self.add_vectors = _written(executor, operations.add_vectors)
        self.rewrite = _written(executor, operations.rewrite_facts)
        self.damage = executor.method(operations.find_damage)
        self.mend = executor.method(operations.mend_index)

    async def set(self, writes: Sequence[FactWrite], language: IndexLanguage | None) -> Sequence[Written]:
        written = await self._set(writes, language)
        if isinstance(written, PersonMovedError):
            raise written
        return written

    async def restore(self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None) -> bool:
        restored = await self._restore(row, versions, language)
        if isinstance(restored, PersonMovedError):
            raise restored
        return restored

    async def language(self) -> IndexLanguage | None:
        return await self._run(read_language, FACTS)

    async def vectors_by_embedder(self) -> Mapping[str, int]:
        return await self._run(count_vectors, FACTS)

    async def delete_vectors(self, embedder: str, limit: int, after: str) -> Sequence[str]:
        return await self._run(delete_vectors_of_embedder, FACTS, embedder, limit, after)

    async def set_language(self, language: IndexLanguage) -> None:
        await self._run(set_language, FACTS, language)


class SQLPeopleLog:
    """A :class:`~firefly_memory.longterm.log.PeopleLog` over an executor."""

    def __init__(self, executor: Executor) -> None:
        self.meet = _written(executor, people_operations.get_or_create_user)
        self.restore = _written(executor, people_operations.restore_user)
        self.find = executor.method(people_operations.find_user)
        self.root = executor.method(people_operations.find_root)
        self.count_conversation = _written(executor, people_operations.count_conversation)
        self.merge = _written(executor, merge_users)
        self.list = executor.method(people_operations.list_users)
        self.page = executor.method(people_operations.read_page_of_users)
        self.read = executor.method(people_operations.read_users)
        self.same_people = executor.method(people_operations.read_same_people)
        self.count = executor.method(people_operations.count_users)
        self.delete = _written(executor, people_operations.delete_users)


class SQLLongTermLog:
    """A :class:`~firefly_memory.longterm.log.LongTermLog` over an executor."""

    def __init__(self, executor: Executor, dialect: type[SQLDialect]) -> None:
        self.facts = SQLFactLog(executor, dialect)
        self.people = SQLPeopleLog(executor)

"""The rows of a facet as the keeper of an index needs them, in MongoDB: the same for every facet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from pymongo import ASCENDING

from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.errors import Writing, translated, written
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.search.index import Subject, Vector
from firefly_memory.search.index_keeper import Row
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb.index import Keys, MongoSearchIndex
from firefly_memory.search.mongodb.languages import read_language, set_language
from firefly_memory.search.mongodb.mending import index_damage, mend
from firefly_memory.search.mongodb.row_vectors import Damaged, RowVectors
from firefly_memory.search.mongodb.vectors import having_vector, vectors_by_embedder, without_vector

R = TypeVar("R", bound=Row)

BY_ID: Keys = [("_id", ASCENDING)]
EVERY: Document = {"_id": {"$gte": ""}}
"""A filter for all rows: it leaves tombstones out, whose ids are no texts."""

_WALKED = 5_000
"""Ids that are looked up together in the search for rows without vectors."""


class MongoKeptRows(Generic[R]):
    """Most of :class:`~firefly_memory.search.index_keeper.KeptRows`, on clients of one mode."""

    def __init__(
        self, access: MongoAccess, subject: Subject, row_of: Callable[[Mapping[str, Any]], R], damaged: Damaged
    ) -> None:
        self._access = access
        self._subject = subject
        self._row_of = row_of
        self._damaged = damaged
        self.index = MongoSearchIndex(access, subject)

    async def language(self) -> IndexLanguage | None:
        with self._reading("read_language"):
            connection = await self._access.connected("read_language")
            return await read_language(connection, self._subject)

    async def set_language(self, language: IndexLanguage) -> None:
        with self._writing("set_language"):
            await set_language(await self._access.connected("set_language"), self._subject, language)

    async def read(self, ids: Sequence[str]) -> Sequence[R]:
        return await self._rows(f"read_{self._subject.kind}", {"_id": {"$in": list(ids)}}, BY_ID)

    async def page(self, limit: int, after: str) -> Sequence[R]:
        return await self._rows(f"page_of_{self._subject.kind}", {"_id": {"$gt": after}}, BY_ID, limit)

    async def without_vector(self, embedder: str, limit: int, after: str) -> Sequence[R]:
        operation = f"{self._subject.kind}_without_vector"
        rows: list[R] = []
        while len(rows) < limit:
            ids = await self._ids(operation, {"_id": {"$gt": after}}, BY_ID, _WALKED)
            with self._reading(operation):
                connection = await self._access.connected(operation)
                lacking = await without_vector(connection, self._subject, embedder, ids)
            some = lacking[: limit - len(rows)]
            rows += sorted(await self.read(some), key=lambda row: row.id) if some else []
            if len(some) == len(lacking) and len(ids) < _WALKED:
                break
            after = ids[-1] if len(some) == len(lacking) else some[-1]
        return rows

    async def add_vectors(self, vectors: Mapping[str, Vector], written_by: Sequence[str] | None = None) -> int:
        """``written_by`` is for rows that change: of these, only those whose last write is one of these get one."""
        if not vectors:
            return 0
        with self._writing("add_vectors", "vector"):
            return await self._vectors(await self._access.connected("add_vectors")).add(vectors, written_by)

    async def vectors_by_embedder(self) -> Mapping[str, int]:
        with self._reading("count_vectors"):
            return await vectors_by_embedder(await self._access.connected("count_vectors"), self._subject)

    async def delete_vectors(self, embedder: str, limit: int, after: str) -> Sequence[str]:
        with self._writing("delete_vectors"):
            connection = await self._access.connected("delete_vectors")
            ids = await having_vector(connection, self._subject, embedder, limit, after)
            await self._vectors(connection).delete(embedder, ids)
            return ids

    async def damage(self) -> Sequence[str]:
        with self._reading("find_damage"):
            return await index_damage(await self._access.connected("find_damage"), self._subject)

    async def mend(self) -> None:
        with self._writing("mend_index"):
            await mend(await self._access.connected("mend_index"), self._subject)

    async def _rows(
        self, operation: str, wanted: Document, index: Keys, limit: int | None = None, order: Keys | None = None
    ) -> list[R]:
        return [self._row_of(each) for each in await self._found(operation, wanted, None, index, limit, order)]

    async def _ids(self, operation: str, wanted: Document, index: Keys, limit: int) -> list[str]:
        return [each["_id"] for each in await self._found(operation, wanted, {"_id": 1}, index, limit)]

    async def _found(
        self,
        operation: str,
        wanted: Document,
        shape: Document | None,
        index: Keys,
        limit: int | None,
        order: Keys | None = None,
    ) -> list[Document]:
        """The documents by an index, in its order if no other one is given; without a limit, all of them."""
        if limit == 0:  # which is no limit to the server
            return []
        with self._reading(operation):
            connection = await self._access.connected(operation)
            rows = connection[self._subject.table]
            finding = rows.find(wanted, shape, batch_size=IN_ONE_BATCH).sort(order or index).hint(index)
            return await connection.all_of(finding.limit(limit or 0))

    def _vectors(self, connection: Connection) -> RowVectors:
        return RowVectors(connection, self._subject, self._damaged, self._transactions())

    def _transactions(self) -> InTransaction | None:
        """``None`` on a standalone server. Asked after the first connection."""
        return self._access.in_transaction if self._access.database.has_transactions else None

    def _reading(self, operation: str) -> AbstractContextManager[None]:
        return translated(operation, self._access.database.db_name)

    def _writing(self, operation: str, what: str | None = None) -> AbstractContextManager[Writing]:
        return written(operation, self._access.database.db_name, what)

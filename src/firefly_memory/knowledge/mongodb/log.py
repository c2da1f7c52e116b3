"""Knowledge in MongoDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from firefly_memory.cursors import Moment
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.errors import Writing, translated, written
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.knowledge.log import CHUNKS, ChunkRow
from firefly_memory.knowledge.mongodb import documents
from firefly_memory.knowledge.mongodb.documents import BY_ID, EVERY, IN_COLLECTION, OF_OWNER
from firefly_memory.knowledge.mongodb.writing import ChunkWriter
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb.index import Keys, MongoSearchIndex
from firefly_memory.search.mongodb.languages import read_language, set_language
from firefly_memory.search.mongodb.mending import index_damage, mend
from firefly_memory.search.mongodb.vectors import having_vector, vectors_by_embedder, without_vector
from firefly_memory.tombstones.mongodb.gates import gate_of

_WALKED = 5_000
"""Ids that are looked up together in the search for chunks without vectors."""


class MongoKnowledgeLog:
    """A :class:`~firefly_memory.knowledge.log.KnowledgeLog` on clients of one mode."""

    def __init__(self, access: MongoAccess) -> None:
        self._access = access
        self.index = MongoSearchIndex(access, CHUNKS)

    async def language(self) -> IndexLanguage | None:
        with self._reading("read_language"):
            connection = await self._access.connected("read_language")
            return await read_language(connection, CHUNKS)

    async def add(self, rows: Sequence[ChunkRow], vectors: Mapping[str, Vector], language: IndexLanguage | None) -> int:
        if not rows:
            return 0
        with self._writing("add_chunks", "chunk") as writing:
            documents.check_sizes(rows)
            connection = await self._access.connected("add_chunks")
            gate = await gate_of(connection, documents.OF_CHUNKS, "add_chunks", rows[0].identities)
            return await self._writer(connection, writing).add(gate, rows, vectors, language)

    async def read(self, ids: Sequence[str]) -> Sequence[ChunkRow]:
        return await self._rows("read_chunks", {"_id": {"$in": list(ids)}}, BY_ID)

    async def page(self, limit: int, after: str) -> Sequence[ChunkRow]:
        return await self._rows("page_of_chunks", {"_id": {"$gt": after}}, BY_ID, limit)

    async def oldest(self, space: str, collection: str, limit: int, after: Moment | None) -> Sequence[ChunkRow]:
        wanted: Document = {"space": space, "collection": collection}
        if after is not None:
            wanted["added"] = {"$gt": documents.place_in_list(after)}
        return await self._rows("list_chunks", wanted, IN_COLLECTION, limit)

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        return await self._ids("chunks_of_owner", {"owner": owner, "_id": {"$gt": after}}, OF_OWNER, limit)

    async def collections(self, space: str, limit: int, after: str) -> Sequence[str]:
        found: list[str] = []
        with self._reading("collections"):
            connection = await self._access.connected("collections")
            # From one name to the next by index, so that the number of chunks does not matter.
            while len(found) < limit:
                beyond = {"space": space, "collection": {"$gt": found[-1] if found else after}}
                finding = connection[CHUNKS.table].find_one(
                    beyond, {"_id": 0, "collection": 1}, sort=IN_COLLECTION, hint=IN_COLLECTION
                )
                document = await connection.result_of(finding)
                if document is None:
                    break
                found.append(document["collection"])
        return found

    async def count(self, space: str | None, collection: str | None) -> int:
        wanted: Document = EVERY if space is None else {"space": space}
        if space is not None and collection is not None:
            wanted["collection"] = collection
        with self._reading("count_chunks"):
            connection = await self._access.connected("count_chunks")
            index = BY_ID if space is None else IN_COLLECTION
            return int(await connection.result_of(connection[CHUNKS.table].count_documents(wanted, hint=index)))

    async def delete(self, ids: Sequence[str]) -> int:
        with self._writing("delete_chunks") as writing:
            connection = await self._access.connected("delete_chunks")
            return await self._writer(connection, writing).delete(ids)

    async def delete_some(self, space: str, collection: str, source: str | None, limit: int) -> int:
        wanted = {"space": space, "collection": collection}
        if source is not None:
            wanted["source"] = source
        deleted = 0
        while not deleted:  # others may have deleted the same
            ids = await self._ids("delete_chunks", wanted, IN_COLLECTION, limit)
            if not ids:
                break
            deleted = await self.delete(ids)
        return deleted

    async def without_vector(self, embedder: str, limit: int, after: str) -> Sequence[ChunkRow]:
        rows: list[ChunkRow] = []
        while len(rows) < limit:
            ids = await self._ids("chunks_without_vector", {"_id": {"$gt": after}}, BY_ID, _WALKED)
            with self._reading("chunks_without_vector"):
                connection = await self._access.connected("chunks_without_vector")
                lacking = await without_vector(connection, CHUNKS, embedder, ids)
            some = lacking[: limit - len(rows)]
            rows += sorted(await self.read(some), key=lambda row: row.id) if some else []
            if len(some) == len(lacking) and len(ids) < _WALKED:
                break
            after = ids[-1] if len(some) == len(lacking) else some[-1]
        return rows

    async def add_vectors(self, vectors: Mapping[str, Vector]) -> int:
        if not vectors:
            return 0
        with self._writing("add_vectors", "vector") as writing:
            connection = await self._access.connected("add_vectors")
            return await self._writer(connection, writing).add_vectors(vectors)

    async def vectors_by_embedder(self) -> Mapping[str, int]:
        with self._reading("count_vectors"):
            return await vectors_by_embedder(await self._access.connected("count_vectors"), CHUNKS)

    async def delete_vectors(self, embedder: str, limit: int, after: str) -> Sequence[str]:
        with self._writing("delete_vectors") as writing:
            connection = await self._access.connected("delete_vectors")
            ids = await having_vector(connection, CHUNKS, embedder, limit, after)
            await self._writer(connection, writing).delete_vectors(embedder, ids)
            return ids

    async def set_language(self, language: IndexLanguage) -> None:
        with self._writing("set_language"):
            await set_language(await self._access.connected("set_language"), CHUNKS, language)

    async def rewrite(self, rows: Sequence[ChunkRow]) -> int:
        if rows:
            with self._writing("rewrite_chunks", "chunk") as writing:
                documents.check_sizes(rows)
                connection = await self._access.connected("rewrite_chunks")
                await self._writer(connection, writing).rewrite(rows)
        return len(rows)

    async def damage(self) -> Sequence[str]:
        with self._reading("find_damage"):
            return await index_damage(await self._access.connected("find_damage"), CHUNKS)

    async def mend(self) -> None:
        with self._writing("mend_index"):
            await mend(await self._access.connected("mend_index"), CHUNKS)

    async def _rows(self, operation: str, wanted: Document, index: Keys, limit: int | None = None) -> list[ChunkRow]:
        return [documents.row_of(each) for each in await self._found(operation, wanted, None, index, limit)]

    async def _ids(self, operation: str, wanted: Document, index: Keys, limit: int) -> list[str]:
        return [each["_id"] for each in await self._found(operation, wanted, {"_id": 1}, index, limit)]

    async def _found(
        self, operation: str, wanted: Document, shape: Document | None, index: Keys, limit: int | None
    ) -> list[Document]:
        """The documents in the order of an index; without a limit, all of them."""
        if limit == 0:  # which is no limit to the server
            return []
        with self._reading(operation):
            connection = await self._access.connected(operation)
            finding = connection[CHUNKS.table].find(wanted, shape, batch_size=IN_ONE_BATCH).sort(index).hint(index)
            return await connection.all_of(finding.limit(limit or 0))

    def _writer(self, connection: Connection, writing: Writing) -> ChunkWriter:
        in_transaction = self._access.in_transaction if self._access.database.has_transactions else None
        return ChunkWriter(connection, in_transaction, writing)

    def _reading(self, operation: str) -> AbstractContextManager[None]:
        return translated(operation, self._access.database.db_name)

    def _writing(self, operation: str, what: str | None = None) -> AbstractContextManager[Writing]:
        return written(operation, self._access.database.db_name, what)

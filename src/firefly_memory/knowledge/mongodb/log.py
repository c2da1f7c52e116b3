"""Knowledge in MongoDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firefly_memory.cursors import Moment
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import Writing
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.knowledge.log import CHUNKS, ChunkRow, damaged_chunk
from firefly_memory.knowledge.mongodb import documents
from firefly_memory.knowledge.mongodb.documents import IN_COLLECTION, OF_OWNER
from firefly_memory.knowledge.mongodb.writing import ChunkWriter
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb.kept_rows import BY_ID, EVERY, MongoKeptRows
from firefly_memory.tombstones.mongodb.gates import gate_of


class MongoKnowledgeLog(MongoKeptRows[ChunkRow]):
    """A :class:`~firefly_memory.knowledge.log.KnowledgeLog` on clients of one mode."""

    def __init__(self, access: MongoAccess) -> None:
        super().__init__(access, CHUNKS, documents.row_of, damaged_chunk)

    async def add(self, rows: Sequence[ChunkRow], vectors: Mapping[str, Vector], language: IndexLanguage | None) -> int:
        if not rows:
            return 0
        with self._writing("add_chunks", "chunk") as writing:
            documents.check_sizes(rows)
            connection = await self._access.connected("add_chunks")
            gate = await gate_of(connection, documents.OF_CHUNKS, "add_chunks", rows[0].identities)
            return await self._writer(connection, writing).add(gate, rows, vectors, language)

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

    async def rewrite(self, rows: Sequence[ChunkRow]) -> int:
        if rows:
            with self._writing("rewrite_chunks", "chunk") as writing:
                documents.check_sizes(rows)
                connection = await self._access.connected("rewrite_chunks")
                await self._writer(connection, writing).rewrite(rows)
        return len(rows)

    def _writer(self, connection: Connection, writing: Writing) -> ChunkWriter:
        return ChunkWriter(connection, self._transactions(), writing)

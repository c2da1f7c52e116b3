"""How chunks and their vectors are written and deleted.

Where the server has transactions, each call is one. On a standalone server the steps have an order: vectors come before
the chunk, which makes them visible, and are deleted after it. A call that breaks off there leaves vectors that nobody
sees. The same call made again takes them up, and the erasure of their owner deletes them (:func:`delete_left_behind`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, PyMongoError

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import DUPLICATE, Writing
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.errors import ErasedError
from firefly_memory.knowledge.log import CHUNKS, ChunkRow
from firefly_memory.knowledge.mongodb import documents
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb import vectors as stored_vectors
from firefly_memory.search.mongodb.languages import agree_on_language
from firefly_memory.search.mongodb.vectors import Embedded
from firefly_memory.tombstones.log import Identity
from firefly_memory.tombstones.mongodb.gates import Gate


class ChunkWriter:
    """One write on one connection."""

    def __init__(self, connection: Connection, in_transaction: InTransaction | None, writing: Writing) -> None:
        """``in_transaction`` is ``None`` on a standalone server."""
        self._connection = connection
        self._in_transaction = in_transaction
        self._writing = writing

    async def add(
        self, gate: Gate, rows: Sequence[ChunkRow], vectors: Mapping[str, Vector], language: IndexLanguage | None
    ) -> int:
        """Store the chunks that are not there yet, and the vectors that these and others lack; how many chunks."""
        if self._in_transaction is not None:
            return await self._add_in_transaction(self._in_transaction, gate, rows, vectors, language)
        inserting = [documents.inserting(row, vectors.get(row.id)) for row in rows]
        embedded = documents.embedded(rows, vectors)
        await gate.check()
        if language is not None:
            await agree_on_language(self._connection, CHUNKS, language, None)
        return await self._connection.finish(self._add_alone(gate, [row.id for row in rows], inserting, embedded))

    async def _add_in_transaction(
        self,
        in_transaction: InTransaction,
        gate: Gate,
        rows: Sequence[ChunkRow],
        vectors: Mapping[str, Vector],
        language: IndexLanguage | None,
    ) -> int:
        """Inserts take two thirds of the time of updates that insert what is not there, and those of vectors half. So
        the chunks are taken for new ones first. An insert that meets something ends this transaction, and another one
        makes updates. A single chunk is an update at once: it tells whether the chunk is new."""
        in_order = sorted(rows, key=lambda row: row.id)  # which indexes take sooner
        embedded = documents.embedded(in_order, vectors)

        async def add(session: Any, is_new: bool) -> int:
            if language is not None:
                await agree_on_language(self._connection, CHUNKS, language, session)
            make = documents.new if is_new and len(rows) > 1 else documents.inserting
            writes: list[Any] = [make(row, vectors.get(row.id)) for row in in_order]
            chunks = _chunks(await gate.write_in_transaction(writes, session))
            add_vectors = stored_vectors.insert_vectors if is_new and chunks else stored_vectors.add_vectors
            await add_vectors(self._connection, CHUNKS, embedded, session)
            return chunks

        try:
            return await in_transaction(self._connection, partial(add, is_new=True))
        except (BulkWriteError, DuplicateKeyError) as exc:
            if not _is_there(exc):
                raise
        return await in_transaction(self._connection, partial(add, is_new=False))

    async def _add_alone(
        self, gate: Gate, ids: Sequence[str], inserting: Sequence[UpdateOne], embedded: Sequence[Embedded]
    ) -> int:
        await stored_vectors.add_vectors(self._connection, CHUNKS, embedded)
        self._writing.has_begun = True  # many chunks go in several commands
        try:
            return _chunks(await gate.write(inserting))
        except ErasedError:  # whose chunks they are, those that were there before as well
            await self._delete(ids, None)
            raise

    async def rewrite(self, rows: Sequence[ChunkRow]) -> None:
        """Replace what chunks that are there are found by."""
        updates = [documents.rewriting(row) for row in rows]

        async def rewrite(session: Any) -> None:
            writing = self._connection[CHUNKS.table].bulk_write(updates, ordered=False, session=session)
            await self._connection.result_of(writing)

        await (rewrite(None) if self._in_transaction is None else self._in_transaction(self._connection, rewrite))

    async def delete(self, ids: Sequence[str]) -> int:
        """Delete chunks, and then their vectors; how many chunks there were."""
        if self._in_transaction is None:
            return await self._connection.finish(self._delete(ids, None))
        return await self._in_transaction(self._connection, lambda session: self._delete(ids, session))

    async def _delete(self, ids: Sequence[str], session: Any) -> int:
        deleting = self._connection[CHUNKS.table].delete_many({"_id": {"$in": list(ids)}}, session=session)
        deleted = int((await self._connection.result_of(deleting)).deleted_count)
        self._writing.has_begun = session is None
        await stored_vectors.delete_vectors(self._connection, CHUNKS, ids, session)
        return deleted


def _chunks(result: Any) -> int:
    """How many chunks a write has inserted. It may have inserted a fence as well, whose id is no text."""
    return int(result.inserted_count) + sum(isinstance(each, str) for each in result.upserted_ids.values())


def _is_there(exc: PyMongoError) -> bool:
    """Whether an insert has met something with the same key."""
    if isinstance(exc, BulkWriteError):
        return any(each.get("code") == DUPLICATE for each in exc.details.get("writeErrors") or [])
    return isinstance(exc, DuplicateKeyError)


async def delete_left_behind(connection: Connection, identities: Sequence[Identity]) -> None:
    """Delete the vectors that interrupted writes and deletions have left of erased people."""
    for kind, name in identities:
        if kind == "owner":
            await stored_vectors.delete_left_behind(connection, CHUNKS, name)

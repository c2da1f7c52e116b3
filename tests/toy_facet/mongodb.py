"""The notes in MongoDB."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from pymongo import ASCENDING, IndexModel, ReplaceOne

from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.errors import translated, written
from firefly_memory.errors import ErasedError
from firefly_memory.facets import Purged
from firefly_memory.identifiers import original_or_none
from firefly_memory.search.index import Indexed, Vector
from firefly_memory.search.mongodb.documents import indexed_fields, row_indexes, vector_collections
from firefly_memory.search.mongodb.index import MongoSearchIndex
from firefly_memory.search.mongodb.vectors import Embedded, add_vectors, delete_left_behind, delete_vectors
from firefly_memory.tombstones.log import Identity
from firefly_memory.tombstones.mongodb.gates import Gate, gate_of
from tests.toy_facet.log import Note, NoteRow, row_of, subject
from tests.toy_facet.numbered import numbered

T = TypeVar("T")


class MongoToyLog:
    """On a standalone server, which has no transactions, vectors are written before their note and deleted after it: a
    vector without a note is never found."""

    def __init__(self, number: int, access: MongoAccess) -> None:
        self._subject = subject(number)
        self._name = self._subject.table
        self._collection, *_ = _collections(number)
        self._access = access
        self.index = MongoSearchIndex(access, self._subject)

    async def put(self, note: Note, vector: Vector | None = None) -> None:
        with written("put_note", self._access.database.db_name):
            connection = await self._access.connected("put_note")
            gate = await gate_of(connection, self._collection, "put_note", note.identities)
            await self._whole(connection, partial(self._put, gate, row_of(note), vector))

    async def _put(self, gate: Gate, row: NoteRow, vector: Vector | None, session: Any) -> None:
        embedded = [] if vector is None else [Embedded(row.id, row.scope, row.owner, vector)]
        replacement = ReplaceOne({"_id": row.id}, _document(row), upsert=True)
        if session is None:
            await gate.check()
        await delete_vectors(gate.connection, self._subject, [row.id], session)
        await add_vectors(gate.connection, self._subject, embedded, session)
        if session is not None:
            await gate.write_in_transaction([replacement], session)
            return
        try:
            await gate.write([replacement])
        except ErasedError:  # the tombstone came at the same moment, perhaps, and the note is there
            await self._delete(gate.connection, {"_id": row.id, "owner": row.owner}, None)
            raise

    async def get(self, note_id: str, now: datetime) -> Note | None:
        return next(iter(await self.read([note_id], now)), None)

    async def read(self, note_ids: Sequence[str], now: datetime) -> Sequence[Note]:
        with translated("read_notes", self._access.database.db_name):
            connection = await self._access.connected("read_notes")
            found = connection[self._name].find({"_id": {"$in": list(note_ids)}, **_live(now)})
            return [_note(each) for each in await connection.all_of(found)]

    async def page(self, limit: int, after: str, now: datetime) -> Sequence[Note]:
        with translated("list_notes", self._access.database.db_name):
            connection = await self._access.connected("list_notes")
            wanted = {"_id": {"$gt": after}, **_live(now)}
            found = await connection.all_of(connection[self._name].find(wanted).sort("_id").limit(limit))
            return [_note(each) for each in found]

    async def delete(self, note_ids: Sequence[str], now: datetime) -> int:
        return await self._deleted("delete_notes", {"_id": {"$in": list(note_ids)}, **_live(now)})

    async def purge(self, limit: int, now: datetime) -> Purged:
        return Purged(await self._deleted("cleanup_expired", {"expires_at": {"$lte": now}}), more=False)

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        with translated("list_notes", self._access.database.db_name):
            connection = await self._access.connected("list_notes")
            wanted = {"_id": {"$gt": after}, "owner": owner}
            found = connection[self._name].find(wanted, {"_id": 1}).sort("_id").limit(limit)
            return [each["_id"] for each in await connection.all_of(found)]

    async def erase(self, note_ids: Sequence[str]) -> int:
        return await self._deleted("delete_notes", {"_id": {"$in": list(note_ids)}})

    async def _deleted(self, operation: str, wanted: dict[str, Any]) -> int:
        with written(operation, self._access.database.db_name):
            connection = await self._access.connected(operation)
            return await self._whole(connection, partial(self._delete, connection, wanted))

    async def _delete(self, connection: Connection, wanted: dict[str, Any], session: Any) -> int:
        """Delete notes, and then their vectors; how many notes."""
        notes = connection[self._name]
        ids = [each["_id"] for each in await connection.all_of(notes.find(wanted, {"_id": 1}, session=session))]
        deleting = notes.delete_many({**wanted, "_id": {"$in": ids}}, session=session)
        deleted = int((await connection.result_of(deleting)).deleted_count)
        await delete_vectors(connection, self._subject, ids, session)
        return deleted

    async def _whole(self, connection: Connection, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        if self._access.database.has_transactions:
            return await self._access.in_transaction(connection, work)
        return await connection.finish(work(None))


def _document(row: NoteRow) -> dict[str, Any]:
    found_by = Indexed(row.scope, row.searchable, row.words, row.who, row.group_id, row.position)
    return {
        "body": row.body,
        "expires_at": row.expires_at,
        "owner": row.owner,
        **indexed_fields(found_by, row.newest),
    }


def _note(document: dict[str, Any]) -> Note:
    return Note(
        document["_id"],
        document["body"],
        document["expires_at"],
        document["owner"],
        original_or_none(document["group_id"]),
        document["position"],
    )


def _live(now: datetime) -> dict[str, Any]:
    return {"$or": [{"expires_at": None}, {"expires_at": {"$gt": now}}]}


def _collections(number: int) -> tuple[Collection, ...]:
    own = (IndexModel([(field, ASCENDING)]) for field in ("expires_at", "owner"))
    notes = Collection(
        subject(number).table,
        (*row_indexes(subject(number)), *own),
        refused_by="_id",
        forget=f"tests.toy_facet.mongodb:forget_{number}",
    )
    return (notes, *vector_collections(subject(number)))


async def _forget(number: int, connection: Connection, identities: Sequence[Identity]) -> None:
    """Delete the vectors that interrupted writes have left of erased people."""
    for kind, name in identities:
        if kind == "owner":
            await delete_left_behind(connection, subject(number), name)


def __getattr__(name: str) -> Any:
    makers: dict[str, Callable[[int], Any]] = {
        "collections": _collections,
        "log": lambda number: lambda access: MongoToyLog(number, access),
        "forget": lambda number: partial(_forget, number),
    }
    return numbered(name, makers)

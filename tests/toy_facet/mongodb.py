"""The notes in MongoDB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymongo import ASCENDING, IndexModel, UpdateOne

from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.errors import translated, written
from firefly_memory.errors import ErasedError
from firefly_memory.facets import Purged
from firefly_memory.tombstones.mongodb.gates import gate_of
from tests.toy_facet.log import Note
from tests.toy_facet.numbered import numbered


def _name(number: int) -> str:
    return f"toy_{number}_notes"


class MongoToyLog:
    def __init__(self, number: int, access: MongoAccess) -> None:
        self._name = _name(number)
        (self._collection,) = _collections(number)
        self._access = access

    async def put(self, note: Note) -> None:
        with written("put_note", self._access.database.db_name):
            connection = await self._access.connected("put_note")
            words = re.findall(r"\w+", note.body)
            fields = {"body": note.body, "words": words, "expires_at": note.expires_at, "owner": note.owner}
            gate = await gate_of(connection, self._collection, "put_note", note.identities)
            try:
                await gate.write([UpdateOne({"_id": note.note_id}, {"$set": fields}, upsert=True)])
            except ErasedError:  # the tombstone came at the same moment, perhaps, and the note is there
                theirs = {"_id": note.note_id, "owner": note.owner}
                await connection.result_of(connection[self._name].delete_one(theirs))
                raise

    async def get(self, note_id: str, now: datetime) -> Note | None:
        with translated("get_note", self._access.database.db_name):
            connection = await self._access.connected("get_note")
            found = await connection.result_of(connection[self._name].find_one({"_id": note_id, **_live(now)}))
            return None if found is None else _note(found)

    async def page(self, limit: int, after: str, now: datetime) -> Sequence[Note]:
        with translated("list_notes", self._access.database.db_name):
            connection = await self._access.connected("list_notes")
            wanted = {"_id": {"$gt": after}, **_live(now)}
            found = await connection.all_of(connection[self._name].find(wanted).sort("_id").limit(limit))
            return [_note(each) for each in found]

    async def search(self, word: str, now: datetime) -> Sequence[str]:
        with translated("search_notes", self._access.database.db_name):
            connection = await self._access.connected("search_notes")
            wanted = {"words": word, **_live(now)}
            found = await connection.all_of(connection[self._name].find(wanted, {"_id": 1}).sort("_id"))
            return [each["_id"] for each in found]

    async def delete(self, note_ids: Sequence[str], now: datetime) -> int:
        with written("delete_notes", self._access.database.db_name):
            connection = await self._access.connected("delete_notes")
            these = {"_id": {"$in": list(note_ids)}, **_live(now)}
            deleted = await connection.result_of(connection[self._name].delete_many(these))
            return int(deleted.deleted_count)

    async def purge(self, limit: int, now: datetime) -> Purged:
        with written("cleanup_expired", self._access.database.db_name):
            connection = await self._access.connected("cleanup_expired")
            deleted = await connection.result_of(connection[self._name].delete_many({"expires_at": {"$lte": now}}))
            return Purged(deleted.deleted_count, more=False)

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        with translated("list_notes", self._access.database.db_name):
            connection = await self._access.connected("list_notes")
            wanted = {"_id": {"$gt": after}, "owner": owner}
            found = connection[self._name].find(wanted, {"_id": 1}).sort("_id").limit(limit)
            return [each["_id"] for each in await connection.all_of(found)]

    async def erase(self, note_ids: Sequence[str]) -> int:
        with written("delete_notes", self._access.database.db_name):
            connection = await self._access.connected("delete_notes")
            deleting = connection[self._name].delete_many({"_id": {"$in": list(note_ids)}})
            return int((await connection.result_of(deleting)).deleted_count)


def _note(document: dict[str, Any]) -> Note:
    return Note(document["_id"], document["body"], document["expires_at"], document.get("owner"))


def _live(now: datetime) -> dict[str, Any]:
    return {"$or": [{"expires_at": None}, {"expires_at": {"$gt": now}}]}


def _collections(number: int) -> tuple[Collection, ...]:
    indexes = ("words", "expires_at", "owner")
    return (Collection(_name(number), tuple(IndexModel([(field, ASCENDING)]) for field in indexes), refused_by="_id"),)


def __getattr__(name: str) -> Any:
    makers = {
        "collections": _collections,
        "log": lambda number: lambda access: MongoToyLog(number, access),
    }
    return numbered(name, makers)

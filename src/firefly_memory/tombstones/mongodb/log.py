"""The tombstones of a database in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymongo.errors import BulkWriteError

from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.collections import REFUSES, TOMBSTONES, Collection, registered_collections
from firefly_memory.databases.mongodb.errors import DUPLICATE, translated, written
from firefly_memory.databases.mongodb.find_text import documents_with
from firefly_memory.facets import load_name
from firefly_memory.tombstones.log import Identity, owner_identity
from firefly_memory.tombstones.mongodb.gates import found_by, in_database, tombstones_of, write_fences


class MongoTombstoneLog:
    """A :class:`~firefly_memory.tombstones.log.TombstoneLog` on clients of one mode."""

    def __init__(self, access: MongoAccess) -> None:
        self._access = access
        self._added: dict[Identity, None] = {}  # since scrub() was called last

    async def add(self, identities: Sequence[Identity], owner: str, now: datetime) -> None:
        if not identities:
            return
        with written("erase", self._access.database.db_name):
            connection = await self._access.connected("erase")
            (erased,) = await tombstones_of(connection, [owner_identity(owner)])
            ids = await tombstones_of(connection, identities)
            for collection in _collections():
                rest = {REFUSES: "writes", "erased": erased, "created_at": now}
                await _insert(connection, collection, [{**found_by(collection, each), **rest} for each in ids])
                if self._access.database.has_transactions:  # waits for those that have not looked at these
                    await write_fences(connection, collection)
        self._added.update(dict.fromkeys(identities))

    async def are_there(self, identities: Sequence[Identity]) -> bool:
        with translated("erase", self._access.database.db_name):
            connection = await self._access.connected("erase")
            these = {"_id": {"$in": await tombstones_of(connection, identities)}}
            for collection in _collections():
                found = in_database(connection, collection).find_one(these, {"_id": 1})
                if await connection.result_of(found) is not None:
                    return True
            return False

    async def remove(self, owner: str) -> int:
        removed = 0
        with written("readmit", self._access.database.db_name):
            connection = await self._access.connected("readmit")
            (erased,) = await tombstones_of(connection, [owner_identity(owner)])
            for collection in _collections():
                deleting = in_database(connection, collection).delete_many({**TOMBSTONES, "erased": erased})
                removed = max(removed, (await connection.result_of(deleting)).deleted_count)  # the same in each
        return removed

    async def find_text(self, text: str) -> Sequence[tuple[str, int]]:
        with translated("find_text", self._access.database.db_name):
            return await documents_with(await self._access.connected("find_text"), text)

    async def scrub(self) -> None:
        """Delete what interrupted writes have left behind of what was erased. The server gives the room of deleted
        documents to others, in its own time."""
        with written("erase", self._access.database.db_name):
            connection, added = await self._access.connected("erase"), list(self._added)
            for collection in _collections():
                if collection.forget is not None:
                    await load_name(collection.forget)(connection, added)
        for each in added:
            self._added.pop(each, None)


def _collections() -> list[Collection]:
    return [each for each in registered_collections() if each.refused_by is not None]


async def _insert(connection: Connection, collection: Collection, tombstones: list[dict[str, Any]]) -> None:
    try:
        await connection.result_of(in_database(connection, collection).insert_many(tombstones, ordered=False))
    except BulkWriteError as exc:
        refused = exc.details.get("writeErrors", [])
        if exc.details.get("writeConcernErrors") or any(each["code"] != DUPLICATE for each in refused):
            raise

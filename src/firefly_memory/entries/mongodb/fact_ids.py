"""What revision 0004 is elsewhere: facts get the ids of today, and entries leave the namespaces of
conversations; once for each collection of entries.

``memory_version`` notes that it is done. Where there are transactions, any number of processes may be at it at once,
and one that breaks off leaves nothing half-done. A standalone server has none: there a fact may be under both ids for a
moment, and whoever comes next finishes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from pymongo.errors import DuplicateKeyError

from firefly_memory.databases.mongodb.clients import VERSION, Connection
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.entries.fact_ids import PREFIX, id_of_today, id_out_of_the_way
from firefly_memory.entries.scopes import NAMESPACE
from firefly_memory.errors import SchemaMismatchError
from firefly_memory.identifiers import CONVERSATIONS, RENAMED_CONVERSATIONS, original_name, stored_text

REVISION = "0004"

_BATCH = 200


def _begins_with(prefix: str) -> Document:
    """In the order of code points, as the indexes are."""
    return {"$gte": prefix, "$lt": prefix[:-1] + chr(ord(prefix[-1]) + 1)}


_OF_FACTS: Document = {"entry_id": _begins_with(PREFIX)}

_OF_BEFORE: Document = {
    "namespace": _begins_with(NAMESPACE),
    "entry_id": {"$regex": "^[0-9a-f]{64}$"},
    "key": {"$type": "string"},
}

_IN_CONVERSATIONS: Document = {"namespace": _begins_with(CONVERSATIONS)}

_REST: Document = {"$substrCP": ["$namespace", len(CONVERSATIONS), {"$strLenCP": "$namespace"}]}

_ELSEWHERE = [{"$set": {"namespace": {"$concat": [RENAMED_CONVERSATIONS, _REST]}}}]

InTransaction = Callable[[Connection, Callable[[Any], Awaitable[None]]], Awaitable[None]]


async def bring_to_today(connection: Connection, migrate: bool, in_transaction: InTransaction | None) -> None:
    """Give every fact the id of today; ``SchemaMismatchError`` if nobody may ``migrate`` and one has another."""
    this: Document = {"_id": connection.entries.name}
    noted = await connection.result_of(connection[VERSION].find_one(this))
    if noted is not None and noted.get("revision") == REVISION:
        return
    for wanted in (_OF_FACTS, _OF_BEFORE):
        async for batch in _batches(connection, wanted):
            if not migrate:
                raise _is_not_of_today()
            if in_transaction is None:
                await _rename_one_by_one(connection, batch)
            else:
                await in_transaction(connection, _renaming(connection, batch))
    apart = await connection.result_of(connection.entries.find_one(_IN_CONVERSATIONS, projection={"_id": 1}))
    if apart is not None:
        if not migrate:
            raise _is_not_of_today()
        await connection.result_of(connection.entries.update_many(_IN_CONVERSATIONS, _ELSEWHERE))
    if migrate:
        with suppress(DuplicateKeyError):  # another process has noted it at the same moment
            await connection.result_of(
                connection[VERSION].update_one(this, {"$set": {"revision": REVISION}}, upsert=True)
            )


def _is_not_of_today() -> SchemaMismatchError:
    needed = f"{REVISION}, where ids of facts begin with {PREFIX!r} and no namespace of entries with {CONVERSATIONS!r}"
    return SchemaMismatchError("initialize", "0003", needed, "firefly-memory db upgrade", "initialize(migrate=True)")


def _new_id(document: Document) -> str:
    """The same for every process, or two of them would leave an entry twice on a standalone server."""
    namespace, entry_id = document["namespace"], original_name(document["entry_id"])
    of = original_name(namespace) if isinstance(namespace, str) else ""  # damaged; no fact
    return stored_text(id_of_today(of, _key(document), entry_id))


def _key(document: Document) -> str | None:
    key = document.get("key")
    return original_name(key) if isinstance(key, str) else None


async def _batches(connection: Connection, wanted: Document) -> AsyncIterator[list[str]]:
    """The ``_id`` of each document that needs another id."""
    last = ""
    while True:
        page = {**wanted, "_id": {"$gt": last}}
        found = connection.entries.find(page, projection=dict.fromkeys(("namespace", "entry_id", "key"), 1))
        documents = await connection.result_of(found.sort("_id").limit(_BATCH).to_list(None))
        if not documents:
            return
        last = documents[-1]["_id"]
        batch = [document["_id"] for document in documents if _new_id(document) != document["entry_id"]]
        if batch:
            yield batch


def _renaming(connection: Connection, batch: Sequence[str]) -> Callable[[Any], Awaitable[None]]:
    async def rename(session: Any) -> None:
        # Read again: another process may have renamed them, and their facts may have been changed or deleted since.
        renamed = await _renamed(connection, batch, session)
        if renamed:
            old = {"_id": {"$in": [before["_id"] for before, _ in renamed]}}
            await connection.result_of(connection.entries.delete_many(old, session=session))
            new = [after for _, after in renamed if after is not None]
            if new:
                await connection.result_of(connection.entries.insert_many(new, session=session))

    return rename


async def _rename_one_by_one(connection: Connection, batch: Sequence[str]) -> None:
    for _id in batch:
        for before, after in await _renamed(connection, [_id], None):
            if after is not None:
                with suppress(DuplicateKeyError):  # somebody else was faster
                    await connection.result_of(connection.entries.insert_one(after))
            # By its namespace as well: another process may have renamed it, and given its place and id to a fact.
            this = {"_id": before["_id"], "namespace": before["namespace"]}
            await connection.result_of(connection.entries.delete_one(this))


async def _renamed(
    connection: Connection, batch: Sequence[str], session: Any
) -> list[tuple[Document, Document | None]]:
    """The documents as they are, and as they will be; ``None`` for one that is there under both ids."""
    there = connection.entries.find({"_id": {"$in": list(batch)}}, session=session)
    found: list[Document] = await connection.result_of(there.to_list(None))
    # A fact that another process has renamed may be found under an ``_id`` that somebody else's entry had before.
    documents = [document for document in found if _new_id(document) != document["entry_id"]]
    ids = {document["_id"]: _new_id(document) for document in documents}
    taken = connection.entries.find({"entry_id": {"$in": list(ids.values())}}, session=session)
    in_place = {each["entry_id"]: each for each in await connection.result_of(taken.to_list(None))}
    renamed = []
    for document in documents:
        entry_id = ids[document["_id"]]
        other = in_place.get(entry_id)
        if other is not None and _without_ids(other) != _without_ids(document):  # an older version wrote it since
            entry_id, other = id_out_of_the_way(document["entry_id"], uuid4().hex), None
        new_id = f"{document['_id'].partition('/')[0]}/{entry_id}"
        renamed.append((document, None if other else {**document, "_id": new_id, "entry_id": entry_id}))
    return renamed


def _without_ids(document: Document) -> Document:
    return {name: value for name, value in document.items() if name not in ("_id", "entry_id")}

"""How a write in MongoDB meets the tombstones of what it would bring back.

A tombstone is a document beside the documents that it refuses::

    {"_id": <hash>, "refuses": "writes", "erased": <hash of the owner>, "created_at": <date>}

It has the hash in the field that unique indexes and the shard key begin with as well. No other document has binary
data as its ``_id``, so ranges of texts leave tombstones out.

A write is sent between two *looks*, in one ordered command: updates that add 1 to ``refuses`` of each tombstone. Where
there is none they match nothing. Where there is one the server cannot add 1 to a text: the command ends there. The
first look keeps a late write from being done at all. The second look finds a tombstone that came after the first: what
was written must be taken back then. Where the second look finds none, the write was there before the tombstone was, so
the deletion after it finds what was written.

In a transaction a look sees no tombstone that is younger than the snapshot. So a transaction also writes a *fence*, a
document with a number in the place of ``"writes"``, and whoever adds a tombstone writes all fences afterwards. The
server makes this wait for a transaction with a fence, and breaks off one whose snapshot is older.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from secrets import randbelow, token_hex
from typing import Any

from pymongo import ReplaceOne, ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

from firefly_memory.codec import DAMAGE
from firefly_memory.databases.mongodb.clients import VERSION, Connection
from firefly_memory.databases.mongodb.collections import REFUSES, Collection
from firefly_memory.databases.mongodb.errors import DUPLICATE, despite_a_loss, duplicate_in
from firefly_memory.databases.mongodb.fields import Document, text
from firefly_memory.databases.mongodb.transactions import tried_again
from firefly_memory.errors import CorruptDataError, ErasedError
from firefly_memory.tombstones.log import Identity, tombstone

Write = UpdateOne | ReplaceOne[Any]

KEY = "$tombstones"
"""The id of the key among the versions, where all others are names of collections: these have no ``$``."""

_FENCES = 64
_ONE_MORE: Document = {"$inc": {REFUSES: 1}}
_UNAUTHORIZED, _TYPE_MISMATCH = 13, 14


@dataclass(frozen=True, slots=True)
class Gate:
    """What looks for the tombstones of some identities in one collection, in the same command as the write."""

    connection: Connection
    collection: Collection
    operation: str
    tombstones: Sequence[bytes]
    """The ids of the tombstones that refuse the writes. Without any, writes are sent as they are."""

    def left_open(self) -> Gate:
        """For writes that bring nothing back."""
        return replace(self, tombstones=())

    async def write(self, writes: Sequence[Write], *, then: Sequence[Write] = ()) -> Any:
        """The result of the writes, between two looks, and of what comes ``then``. An error counts these writes only.

        At ``ErasedError`` the caller takes back what may be written.
        """
        looks = self._looks()
        return await self._send([*looks, *writes, *looks, *then])

    async def write_in_transaction(self, writes: Sequence[Write], session: Any, *, past_fence: bool = True) -> Any:
        """The result of the writes of a transaction, which is to be aborted at ``ErasedError``. It may leave the
        fence out if it only changes documents that the eraser finds and deletes: one of both meets the other there."""
        # Any of them: whoever adds a tombstone writes all, and writers of one person do not meet at one.
        fence = [_fence(self.collection, randbelow(_FENCES))] if self.tombstones and past_fence else []
        try:
            return await self._send([*self._looks(), *writes, *fence], session)
        except BulkWriteError as exc:
            if (exc.details.get("writeErrors") or [{}])[0].get("index") == len(writes):
                raise tried_again("another writer has just made the fence") from exc
            raise

    async def check(self) -> None:
        """``ErasedError`` if there is a tombstone."""
        if self.tombstones:
            await self._send(self._looks())

    def refuse(self, documents: Iterable[Document]) -> None:
        """``ErasedError`` if one of these documents, which were found by their ids, is a tombstone."""
        if any(isinstance(each["_id"], bytes) for each in documents):
            raise ErasedError(self.operation)

    def _looks(self) -> list[UpdateOne]:
        return [UpdateOne(found_by(self.collection, each), _ONE_MORE) for each in self.tombstones]

    async def _send(self, writes: Sequence[Write], session: Any = None) -> Any:
        collection = in_database(self.connection, self.collection)
        try:
            return await self.connection.result_of(collection.bulk_write(writes, session=session))
        except BulkWriteError as exc:
            refused = exc.details.get("writeErrors") or []
            if self.tombstones and any(each.get("code") == _TYPE_MISMATCH for each in refused):
                raise ErasedError(self.operation) from exc
            for each in refused:
                each["index"] -= len(self.tombstones)
            raise


async def gate_of(
    connection: Connection, collection: Collection, operation: str, identities: Sequence[Identity]
) -> Gate:
    """The gate of a write to ``collection`` that would bring one of these back."""
    return Gate(connection, collection, operation, await tombstones_of(connection, identities))


async def tombstones_of(connection: Connection, identities: Sequence[Identity]) -> list[bytes]:
    """The ids of the tombstones of these identities."""
    if not identities:
        return []
    key = await _key(connection)
    return [bytes.fromhex(tombstone(key, each)) for each in identities]


def in_database(connection: Connection, collection: Collection) -> Any:
    """The driver's form of a registered collection."""
    return connection.entries if collection.name is None else connection[collection.name]


def found_by(collection: Collection, tombstone: bytes) -> Document:
    """The fields that a tombstone in a collection is found by."""
    return {"_id": tombstone, collection.refused_by or "_id": tombstone}


async def write_fences(connection: Connection, collection: Collection) -> None:
    """Wait for the transactions that have passed a fence of a collection, and break off those that come to it late."""
    fences = [_fence(collection, number) for number in range(_FENCES)]
    while fences:
        try:
            await connection.result_of(in_database(connection, collection).bulk_write(fences, ordered=False))
        except BulkWriteError as exc:
            refused = exc.details.get("writeErrors", [])
            if exc.details.get("writeConcernErrors") or any(each["code"] != DUPLICATE for each in refused):
                raise
            fences = [fences[each["index"]] for each in refused]  # which others have just made
        else:
            fences = []


async def hold_fences(connection: Connection, collection: Collection, session: Any) -> None:
    """Let no transaction pass a fence of a collection until this one has ended. Those that have passed one are waited
    for."""
    fences = [_fence(collection, number) for number in range(_FENCES)]
    try:
        await connection.result_of(in_database(connection, collection).bulk_write(fences, session=session))
    except BulkWriteError as exc:
        if duplicate_in(exc) is None:
            raise
        raise tried_again("another writer has just made a fence") from exc


def _fence(collection: Collection, number: int) -> UpdateOne:
    return UpdateOne(found_by(collection, b"fence %d" % (number % _FENCES)), _ONE_MORE, upsert=True)


async def make_key(connection: Connection, migrate: bool, _: Any) -> None:
    """Make the key when a store opens, if nobody has made it. Where nobody may, the first write that needs it does."""
    if migrate:
        try:
            await _key(connection)
        except OperationFailure as exc:
            if exc.code != _UNAUTHORIZED:  # a user who only reads needs none
                raise


async def _key(connection: Connection) -> str:
    """The key of the tombstones of this database. It never changes."""
    key = connection.kept.get(KEY)
    if key is None:
        key = connection.kept[KEY] = await _read_key(connection) or await _new_key(connection)
    return key


async def _read_key(connection: Connection) -> str | None:
    found = await connection.result_of(connection[VERSION].find_one({"_id": KEY}))
    return None if found is None else _secret(found)


async def _new_key(connection: Connection) -> str:
    made = {"$setOnInsert": {"secret": token_hex(32)}}
    after = ReturnDocument.AFTER

    async def make() -> Document:
        making = connection[VERSION].find_one_and_update({"_id": KEY}, made, upsert=True, return_document=after)
        found: Document = await connection.result_of(making)
        return found

    try:
        return _secret(await despite_a_loss(make))
    except DuplicateKeyError:  # another process has made it at the same moment
        return _secret(await make())


def _secret(document: Document) -> str:
    try:
        return text(document, "secret")
    except DAMAGE as exc:
        where = f"the document {KEY!r} of {VERSION}"
        raise CorruptDataError("initialize", where, "it has no key, without which no tombstone is found") from exc

"""What a store does in MongoDB, written once for blocking and asynchronous clients."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar

import bson
from pymongo import DESCENDING, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError

from firefly_memory.codec import BSON, Form
from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import Writing, translated, written
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.entries.mongodb import documents
from firefly_memory.entries.mongodb.working import (
    erased_scopes,
    gate_of_scope,
    look_again,
    may_be_erased,
    only_duplicates,
    take_back,
    write_to_scope,
)
from firefly_memory.entries.record import Position, Record, as_it_is
from firefly_memory.errors import (
    ConflictError,
    DatabaseStoreError,
    EntryOwnershipError,
    ErasedError,
    NotSupportedError,
    OutcomeUnknownError,
)
from firefly_memory.facets import FacetLogs, Purged
from firefly_memory.identifiers import original_name
from firefly_memory.protocols import ABSENT, SAME_METADATA, Capability

T = TypeVar("T")

_ATTEMPTS = 4  # for a save that meets an expired entry of the same id, or another writer of it


class MongoBackend:
    """A :class:`~firefly_memory.entries.hooks.Backend` on clients of one mode.

    ``connection.result_of`` awaits what an asynchronous client returns and passes on what a blocking one returned.
    """

    form: Form = BSON
    read_instant = staticmethod(as_it_is)

    def __init__(self, access: MongoAccess, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._database = access.database
        self._connected = access.connected
        self._in_transaction = access.in_transaction
        self.close = close
        saves = Grouping(
            key=lambda record, _: record.entry_id,
            size=lambda record, _: len(record.content) if isinstance(record.content, str) else 0,
            several=self._save_group,
            after_cancellation=self._save,  # saving twice is saving once
            after_lost_reply=self._find_out_about_save,
        )
        self.save = access.grouped(self._save, saves, retryable=True)
        self.log = FacetLogs("mongodb", lambda log: log(access))

    @property
    def capabilities(self) -> frozenset[Capability]:
        everything = frozenset(Capability)
        return everything - {Capability.ATOMIC_BATCHES} if self._database.has_transactions is False else everything

    async def initialize(self, migrate: bool | None) -> None:
        with translated("initialize", self._database.db_name):
            await self._connected("initialize", migrate)

    async def _save(self, record: Record, now: datetime) -> None:
        with written("save", self._database.db_name, "entry"):
            connection = await self._connected("save")
            for _ in range(_ATTEMPTS):
                try:
                    await self._upsert(connection, record, now)
                except DuplicateKeyError:
                    await self._make_way(connection, [record], now)
                else:
                    return
            raise _too_contended("save", record)

    async def _upsert(self, connection: Connection, record: Record, now: datetime) -> None:
        wanted, change = _own(record, now), documents.upsert(record)
        if may_be_erased(record.namespace):
            await write_to_scope(connection, "save", record, UpdateOne(wanted, change, upsert=True))
        else:
            await connection.result_of(connection.entries.update_one(wanted, change, upsert=True))

    async def _insert(self, connection: Connection, record: Record) -> None:
        if may_be_erased(record.namespace):
            await write_to_scope(connection, "save_if", record, documents.inserting(record))
        else:
            await connection.result_of(connection.entries.insert_one(documents.new(record)))

    async def _find_out_about_save(self, record: Record, now: datetime) -> None:
        """A save after a lost answer. If the entry is not as it was saved, it may have been saved and changed by
        others since: saving again would undo that."""
        with translated("save", self._database.db_name):
            connection = await self._connected("save")
            await look_again(connection, "save", record)
            there = await connection.result_of(connection.entries.find_one(_own(record, now)))
        given = documents.upsert(record)["$set"]
        if there is None or bson.encode({name: there.get(name) for name in given}) != bson.encode(given):
            raise OutcomeUnknownError("save", "what was written is not there now", retryable=True)

    async def save_if(self, record: Record, expected: Any, now: datetime) -> bool:
        with written("save_if", self._database.db_name, "entry", retryable=False):
            connection = await self._connected("save_if")
            is_saved = await (
                self._save_new(connection, record, now)
                if expected is ABSENT
                else self._change(connection, record, expected, now)
            )
            if not is_saved:  # because it was erased, perhaps
                await (await gate_of_scope(connection, "save_if", record.namespace)).check()
            return is_saved

    async def _change(self, connection: Connection, record: Record, expected: Any, now: datetime) -> bool:
        """Whether the record was as ``expected``, and is saved."""
        update = documents.upsert(record)
        # By an expression, for a filter would take a list for the same as one of its members.
        by_metadata = expected is SAME_METADATA
        field, value = ("$metadata", record.metadata) if by_metadata else ("$content", expected)
        same = {"$expr": {"$eq": [field, {"$literal": value}]}}
        wanted = {**_own(record, now), **same}
        del update["$setOnInsert"]
        return bool((await connection.result_of(connection.entries.update_one(wanted, update))).matched_count)

    async def _save_new(self, connection: Connection, record: Record, now: datetime) -> bool:
        """Whether there was no such record, and it is saved."""
        for _ in range(2):
            try:
                await self._insert(connection, record)
            except DuplicateKeyError:
                in_the_way = {"entry_id": record.entry_id, **documents.expired(now)}
                if not (await connection.result_of(connection.entries.delete_one(in_the_way))).deleted_count:
                    return False
            else:
                return True
        return False

    async def save_many(self, records: list[Record], now: datetime) -> None:
        if len(records) == 1:
            await self.save(records[0], now)
            return
        with written("save_many", self._database.db_name, "entry"):
            connection = await self._connected("save_many")
            if not self._database.has_transactions:
                raise NotSupportedError(
                    "save_many() of several entries is all or nothing, which takes a transaction, which takes a "
                    "replica set; start mongod with --replSet, or save the entries one by one"
                )
            updates = _updates(records, now)

            gate = await gate_of_scope(connection, "save_many", records[0].namespace)

            async def write(session: Any) -> None:
                await gate.write_in_transaction(updates, session)

            for _ in range(_ATTEMPTS):
                try:
                    await self._in_transaction(connection, write)
                except BulkWriteError as exc:
                    if not only_duplicates(exc):
                        raise
                    await self._make_way(connection, records, now)
                else:
                    return
            raise _too_contended("save_many", records[0])

    async def _save_group(self, saves: Sequence[tuple[Record, datetime]]) -> list[ConflictError | None]:
        """Save records of different callers, each for itself; the errors of those that are refused. One command has
        no order in which it could look, write and look again, so scopes of working memory take a query before it and
        another one after it."""
        records, now = [record for record, _ in saves], max(now for _, now in saves)
        with written("save", self._database.db_name, "entry") as writing:
            connection = await self._connected("save")
            erased = await erased_scopes(connection, records)
            rest = [record for record in records if record.namespace not in erased]
            refused = await self._save_together(connection, rest, now, writing)
            late = await erased_scopes(connection, rest)
            await take_back(connection, [record for record in rest if record.namespace in late])
            for record in records:
                if record.namespace in erased | late:
                    refused[record.entry_id] = ErasedError("save")
            return [refused.get(record.entry_id) for record in records]

    async def _save_together(
        self, connection: Connection, records: list[Record], now: datetime, writing: Writing
    ) -> dict[str, ConflictError]:
        """The errors of those that were not saved, by their ids."""
        refused: dict[str, ConflictError] = {}
        in_the_way: list[Record] = []
        try:
            if records:
                await connection.result_of(connection.entries.bulk_write(_updates(records, now), ordered=False))
        except BulkWriteError as exc:
            if not only_duplicates(exc):
                raise
            in_the_way = [records[error["index"]] for error in exc.details["writeErrors"]]
        writing.has_begun = True
        for record in in_the_way:
            try:
                await self._save(record, now)
            except (EntryOwnershipError, ErasedError) as error:
                refused[record.entry_id] = error
        return refused

    async def scan(self, namespace: str, limit: int | None, after: Position | None, now: datetime) -> list[Record]:
        with translated("load", self._database.db_name):
            connection = await self._connected("load")
            wanted: Document = {"namespace": namespace, **documents.live(now)}
            if after is not None:
                wanted["_id"] = {"$gt": documents.document_id(after)}
            cursor = connection.entries.find(wanted).sort("_id").hint(documents.IN_ORDER)
            found = await connection.result_of((cursor if limit is None else cursor.limit(limit)).to_list(None))
            return [documents.record(document) for document in found]

    async def scan_several(self, namespaces: list[str], now: datetime) -> list[Record]:
        with translated("load", self._database.db_name):
            connection = await self._connected("load")
            wanted: Document = {"namespace": {"$in": namespaces}, **documents.live(now)}
            cursor = connection.entries.find(wanted).sort("_id").hint(documents.IN_ORDER)
            return [documents.record(document) for document in await connection.result_of(cursor.to_list(None))]

    async def newest(self, namespace: str, key: str, now: datetime) -> Record | None:
        with translated("load_by_key", self._database.db_name):
            connection = await self._connected("load_by_key")
            wanted: Document = {"namespace": namespace, "key": key, **documents.live(now)}
            newest_first = [("_id", DESCENDING)]
            found = await connection.result_of(
                connection.entries.find_one(wanted, sort=newest_first, hint=documents.KEY_IN_ORDER)
            )
            return None if found is None else documents.record(found)

    async def delete(self, namespace: str, entry_id: str, now: datetime) -> None:
        with written("delete", self._database.db_name):
            connection = await self._connected("delete")
            wanted = {"entry_id": entry_id, "namespace": namespace, **documents.live(now)}
            await connection.result_of(connection.entries.delete_one(wanted))

    async def delete_many(self, namespace: str, entry_ids: list[str], now: datetime) -> int:
        wanted = {"entry_id": {"$in": entry_ids}, "namespace": namespace, **documents.live(now)}
        return await self._delete("delete_many", wanted)

    async def clear(self, namespace: str) -> None:
        await self._delete("clear", {"namespace": namespace})

    async def count(self, namespace: str, now: datetime) -> int:
        with translated("count", self._database.db_name):
            connection = await self._connected("count")
            wanted = {"namespace": namespace, **documents.live(now)}
            return int(await connection.result_of(connection.entries.count_documents(wanted)))

    async def namespaces(self, prefix: str, limit: int, after: str, now: datetime) -> list[str]:
        found: list[str] = []
        with translated("namespaces", self._database.db_name):
            connection = await self._connected("namespaces")
            # Hops from one namespace to the next by index, so that their sizes do not matter.
            beyond: Document = {"$gt": after, "$gte": prefix}
            while len(found) < limit:
                document = await connection.result_of(
                    connection.entries.find_one(
                        {"namespace": beyond, **documents.live(now)},
                        projection={"namespace": 1, "_id": 0},
                        sort=[("namespace", 1)],
                    )
                )
                if document is None or not document["namespace"].startswith(prefix):
                    break
                found.append(document["namespace"])
                beyond = {"$gt": found[-1]}
        return found

    async def purge(self, limit: int, now: datetime) -> Purged:
        with written("cleanup_expired", self._database.db_name):
            connection = await self._connected("cleanup_expired")
            doomed = documents.expired(now)
            count = await connection.result_of(connection.entries.count_documents(doomed, limit=limit + 1))
            if count > limit:
                some = connection.entries.find(doomed, projection={"_id": 1}).limit(limit)
                ids = [document["_id"] for document in await connection.result_of(some.to_list(None))]
                doomed = {"_id": {"$in": ids}, **doomed}
            deleted = (await connection.result_of(connection.entries.delete_many(doomed))).deleted_count
            return Purged(int(deleted), more=count > limit)

    async def _make_way(self, connection: Connection, records: list[Record], now: datetime) -> None:
        """After a duplicate: drop expired entries of these ids, or say that another namespace owns one."""
        ids = {"entry_id": {"$in": [record.entry_id for record in records]}}
        await connection.result_of(connection.entries.delete_many({**ids, **documents.expired(now)}))
        foreign = {**ids, "namespace": {"$ne": records[0].namespace}}
        owner = await connection.result_of(connection.entries.find_one(foreign, projection={"entry_id": 1}))
        if owner is not None:
            raise EntryOwnershipError(original_name(owner["entry_id"]), original_name(records[0].namespace))

    async def _delete(self, operation: str, wanted: Document) -> int:
        with written(operation, self._database.db_name):
            connection = await self._connected(operation)

            async def delete(session: Any) -> int:
                deleted = await connection.result_of(connection.entries.delete_many(wanted, session=session))
                return int(deleted.deleted_count)

            if self._database.has_transactions:
                return await self._in_transaction(connection, delete)
            return await delete(None)


def _own(record: Record, now: datetime) -> Document:
    """The live document of a record's id in its namespace; what an upsert makes if there is none."""
    return {"entry_id": record.entry_id, "namespace": record.namespace, **documents.live(now)}


def _updates(records: list[Record], now: datetime) -> list[UpdateOne]:
    return [UpdateOne(_own(record, now), documents.upsert(record), upsert=True) for record in records]


def _too_contended(operation: str, record: Record) -> DatabaseStoreError:
    reason = f"other writers kept changing entry {original_name(record.entry_id)!r}"
    return DatabaseStoreError(operation, reason, retryable=True)

"""Agent history in MongoDB, in transactions if the server has them.

On a standalone server the order of the steps keeps the data right if a process stops between two of them: the entries
of a record are stored, and have their holders, before the record names them. Entries are deleted there only if their
conversation is erased, because nobody could tell the others from entries that a fork is about to use. Entries of an
interrupted or refused write stay too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from pymongo.errors import BulkWriteError

from firefly_memory.agent_history.log import Ascent, HistoryEntry, HistoryRecord, holders_gained, identities_of
from firefly_memory.agent_history.mongodb import documents
from firefly_memory.agent_history.mongodb.deletion import HistoryDeletion, delete_without_transactions
from firefly_memory.agent_history.mongodb.documents import ENTRIES, RECORDS
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection, MongoDatabase
from firefly_memory.databases.mongodb.collections import NO_TOMBSTONES
from firefly_memory.databases.mongodb.errors import DUPLICATE, translated, written
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.errors import ErasedError
from firefly_memory.tombstones.log import history_identity
from firefly_memory.tombstones.mongodb.gates import Gate, Write, gate_of

_MOST_RECORDS = 2**31 - 1
_FEW_FORKS, _MOST_FORKS = 4, 64  # that one query of a history goes up: each takes time, found or not


class _ConflictError(Exception):
    """Aborts the transaction."""


class MongoHistoryLog:
    """A :class:`~firefly_memory.agent_history.log.HistoryLog` on blocking clients, or on asynchronous ones."""

    def __init__(
        self,
        database: MongoDatabase,
        connected: Callable[[str], Awaitable[Connection]],
        in_transaction: InTransaction,
    ) -> None:
        self._database = database
        self._connected = connected
        self._in_transaction = in_transaction

    async def record(self, conversation_id: str) -> HistoryRecord | None:
        with translated("read_record", self._database.db_name):
            connection = await self._connected("read_record")
            there = await connection.result_of(connection[RECORDS].find_one({"_id": conversation_id}))
            return None if there is None else documents.record_of(there)

    async def records(self, scope: str | None, limit: int | None) -> Sequence[HistoryRecord]:
        with translated("read_records", self._database.db_name):
            connection = await self._connected("read_records")
            wanted = NO_TOMBSTONES if scope is None else {"scope": scope}
            cursor = connection[RECORDS].find(wanted).sort(documents.NEWEST_FIRST)
            found = await connection.all_of(cursor if limit is None else cursor.limit(min(limit, _MOST_RECORDS)))
            return [documents.record_of(document) for document in found]

    async def page(self, limit: int, after: str) -> Sequence[HistoryRecord]:
        with translated("read_records", self._database.db_name):
            connection = await self._connected("read_records")
            found = connection[RECORDS].find({"_id": {"$gt": after}}).sort("_id").limit(limit)
            return [documents.record_of(document) for document in await connection.all_of(found)]

    async def history(self, head_id: str, limit: int | None) -> Sequence[HistoryEntry]:
        with translated("read_history", self._database.db_name):
            connection = await self._connected("read_history")
            ascent = Ascent(head_id, limit)
            forks = _FEW_FORKS
            while (above := ascent.next) is not None:
                wanted = documents.history(above, ascent.left, forks)
                cursor = connection[ENTRIES].aggregate(wanted, batchSize=IN_ONE_BATCH)
                found = documents.by_id(await connection.all_of(cursor))
                if above not in found:
                    await self._check_missing(connection, above)
                    break
                # By their links: on a standalone server a write that broke off may have left others at these places.
                ascent.go_on(found, documents.entry_of)
                forks = min(forks * 4, _MOST_FORKS)
            return ascent.entries

    async def _check_missing(self, connection: Connection, entry_id: str) -> None:
        """``CorruptDataError`` if the entry exists, but its chain does not lead to it."""
        there = await connection.result_of(connection[ENTRIES].find_one({"_id": entry_id}, {"message": 0}))
        if there is not None:
            raise documents.not_in_its_chain(there)

    async def entries(self, entry_ids: Sequence[str]) -> Sequence[HistoryEntry]:
        return [documents.entry_of(each) for each in await self._these({"_id": {"$in": list(entry_ids)}})]

    async def shared(self, entry_ids: Sequence[str]) -> Sequence[str]:
        several = {"_id": {"$in": list(entry_ids)}, "holders": {"$gt": 1}}
        return [each["_id"] for each in await self._these(several, {"_id": 1})]

    async def _these(self, wanted: Document, shape: Document | None = None) -> Sequence[Document]:
        with translated("read_history", self._database.db_name):
            connection = await self._connected("read_history")
            return await connection.all_of(connection[ENTRIES].find(wanted, shape))

    async def write(self, record: HistoryRecord, entries: Sequence[HistoryEntry], expected: str | None) -> bool:
        with written("write_record", self._database.db_name, "message", retryable=False), suppress(_ConflictError):
            connection = await self._connected("write_record")
            gate = await gate_of(connection, documents.OF_RECORDS, "write_record", identities_of(record))

            async def write(session: Any) -> None:
                await self._write(connection, session, gate, record, entries, expected)

            await (self._in_transaction(connection, write) if self._database.has_transactions else write(None))
            return True
        return False

    async def delete(self, conversation_id: str, expected: str) -> bool:
        with written("delete_record", self._database.db_name, retryable=False):
            connection = await self._connected("delete_record")
            if not self._database.has_transactions:
                return await self._delete_alone(connection, conversation_id, expected)
            deletion = HistoryDeletion(connection, self._in_transaction)
            ends = await deletion.begin(conversation_id, expected)
        if ends is None:
            return False
        with written("delete_record", self._database.db_name, retryable=False, has_begun=True):
            await deletion.finish(ends)
            return True

    async def _delete_alone(self, connection: Connection, conversation_id: str, expected: str) -> bool:
        """On a standalone server the entries stay, unless their conversation is erased."""
        gate = await gate_of(connection, documents.OF_RECORDS, "delete_record", [history_identity(conversation_id)])
        try:
            await gate.check()
        except ErasedError:
            return await delete_without_transactions(connection, conversation_id, expected)
        this = {"_id": conversation_id, "revision": expected}
        return bool((await connection.result_of(connection[RECORDS].delete_one(this))).deleted_count)

    async def go_on_deleting(self) -> bool:
        with written("cleanup_expired", self._database.db_name):
            connection = await self._connected("cleanup_expired")
            if not self._database.has_transactions:
                return False
            return await HistoryDeletion(connection, self._in_transaction).go_on()

    async def _write(
        self,
        connection: Connection,
        session: Any,
        gate: Gate,
        record: HistoryRecord,
        entries: Sequence[HistoryEntry],
        expected: str | None,
    ) -> None:
        these = {"_id": {"$in": [record.conversation_id, *gate.tombstones]}}
        found = await connection.all_of(connection[RECORDS].find(these, session=session))
        gate.refuse(found)
        before = found[0] if found else None
        if (None if before is None else before["revision"]) != expected:
            raise _ConflictError
        held = frozenset[str]() if before is None else documents.record_of(before).ends
        gained = holders_gained(held, record.ends, entries)
        own = {entry.entry_id: gained.pop(entry.entry_id, 0) for entry in entries}
        for entry_id, more in sorted(gained.items()):
            changes = more > 0 or (more < 0 and session is not None)
            if changes and not await _hold(connection, session, entry_id, more) and entry_id == record.head_id:
                raise _ConflictError
        new, chain = documents.entry_documents(entries, documents.chain_of(before), own)
        if new:
            await self._insert_entries(connection, session, new)
        try:
            if not await self._put(session, gate, before, documents.record_document(record, chain)):
                raise _ConflictError
        except ErasedError:
            if session is None:  # else the transaction takes it back
                await self._take_back(connection, record, new)
            raise

    async def _insert_entries(self, connection: Connection, session: Any, new: Sequence[Document]) -> None:
        try:
            await connection.result_of(connection[ENTRIES].insert_many(new, session=session))
        except BulkWriteError as exc:
            if (exc.details.get("writeErrors") or [{}])[0].get("code") == DUPLICATE:
                raise _ConflictError from exc  # an entry that is there is never replaced
            raise

    async def _put(self, session: Any, gate: Gate, before: Document | None, document: Document) -> bool:
        """Insert a record, or replace the one that was there ``before``; ``False`` if it is no longer so."""
        write: Write = documents.inserting(document) if before is None else documents.replacing(before, document)
        is_erased_with_it = before is not None and before["scope"] == document["scope"]
        own_gate = gate.left_open() if is_erased_with_it else gate
        try:
            writing = own_gate.write([write]) if session is None else own_gate.write_in_transaction([write], session)
            written = await writing
        except BulkWriteError as exc:
            refused = (exc.details.get("writeErrors") or [{}])[0]
            if (refused.get("index"), refused.get("code")) == (0, DUPLICATE):
                return False
            raise
        is_put = bool(written.matched_count or written.upserted_count)
        if not is_put:
            await gate.check()  # it was erased meanwhile, perhaps
        return is_put

    async def _take_back(self, connection: Connection, record: HistoryRecord, new: Sequence[Document]) -> None:
        written = {"_id": record.conversation_id, "revision": record.revision}
        await connection.result_of(connection[RECORDS].delete_one(written))
        entries = {"_id": {"$in": [each["_id"] for each in new]}}
        await connection.result_of(connection[ENTRIES].delete_many(entries))


async def _hold(connection: Connection, session: Any, entry_id: str, more: int) -> bool:
    """Change the number of holders of an entry; whether the entry exists."""
    change = {"$inc": {"holders": more}}
    updated = connection[ENTRIES].update_one({"_id": entry_id}, change, session=session)
    return bool((await connection.result_of(updated)).matched_count)


def history_log(access: MongoAccess) -> MongoHistoryLog:
    return MongoHistoryLog(access.database, access.connected, access.in_transaction)

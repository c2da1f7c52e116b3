"""The deletion of a record. The record is deleted at once, and its entries after it, some at a time.

After each transaction the counts of holders are right. An entry without holders waits for its deletion; all entries
before it exist. So a history is complete, or its end is missing; and a fork that begins to hold such an entry keeps it.
An interrupted deletion leaves such entries: the next deletions, and ``cleanup_expired``, go on with them.

A damaged entry, whose id is no text or whose ``holders`` is no count, stays as it is. So every transaction that finds
entries to delete deletes them, and a loop over transactions ends.
"""

from __future__ import annotations

import logging
import time
from typing import Any, NamedTuple

from pymongo import UpdateOne
from pymongo.errors import PyMongoError

from firefly_memory.agent_history.log import released
from firefly_memory.agent_history.mongodb import documents
from firefly_memory.agent_history.mongodb.documents import ENTRIES, RECORDS
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.transactions import InTransaction

logger = logging.getLogger("firefly_memory")

MOST_AT_ONCE = 2_000
"""Entries that one transaction reads, and deletes."""

_FIRST_AT_ONCE = 50
_QUICK, _SLOW = 0.05, 0.5  # seconds for a transaction: then the next one takes more, or less
_MOST_ENDS = 50  # of histories that one transaction goes up from
_BATCHES_FOR_OTHERS = 10  # that a deletion does of what others have left

_SHAPE = {"parent_id": 1, "holders": 1}


class _Batch(NamedTuple):
    looked: bool
    """Whether there were entries without holders."""
    above: list[str]
    """Entries that lost holders, and perhaps have none now."""


class HistoryDeletion:
    """Deletions on one connection, to a server that has transactions."""

    def __init__(self, connection: Connection, in_transaction: InTransaction) -> None:
        self._connection = connection
        self._in_transaction = in_transaction
        self._at_once = _FIRST_AT_ONCE

    async def begin(self, conversation_id: str, expected: str) -> list[str] | None:
        """Delete the record, if its revision is ``expected``. The entries that it held, or ``None`` if there is no such
        record."""
        return await self._in_transaction(
            self._connection, lambda session: self._let_go(session, conversation_id, expected)
        )

    async def finish(self, ends: list[str]) -> None:
        """Delete those of these entries that have no holders, and the entries that only they held."""
        await self._release(ends)
        try:
            for _ in range(_BATCHES_FOR_OTHERS):
                if not await self.go_on():
                    break
        except Exception as exc:  # what others have left fails nobody's deletion
            left = "entries that earlier deletions left could not be deleted now; cleanup_expired() goes on with them"
            logger.warning("%s (%s)", left, type(exc).__name__, exc_info=exc)

    async def go_on(self) -> bool:
        """Delete some entries without holders; whether there may be more. Does nothing while others do the same."""
        try:
            return (await self._batch({}, once=True)).looked
        except PyMongoError as exc:
            if exc.has_error_label("TransientTransactionError"):
                return False
            raise

    async def _let_go(self, session: Any, conversation_id: str, expected: str) -> list[str] | None:
        connection = self._connection
        this = {"_id": conversation_id, "revision": expected}
        there = await connection.result_of(connection[RECORDS].find_one_and_delete(this, session=session))
        if there is None:
            return None
        ends = sorted(documents.record_of(there).ends)
        fewer = {"$inc": {"holders": -1}}
        await connection.result_of(connection[ENTRIES].update_many({"_id": {"$in": ends}}, fewer, session=session))
        return ends

    async def _release(self, ends: list[str]) -> None:
        """Delete those of these entries that have no holders, and the entries before them that only they held."""
        while ends:
            these, ends = ends[: self._ends_at_once], ends[self._ends_at_once :]
            ends += (await self._batch({"_id": {"$in": these}})).above

    @property
    def _ends_at_once(self) -> int:
        return min(_MOST_ENDS, self._at_once)

    async def _batch(self, wanted: Document, *, once: bool = False) -> _Batch:
        begun = time.monotonic()
        batch = await self._in_transaction(self._connection, lambda session: self._delete(session, wanted), once=once)
        took = time.monotonic() - begun
        if took < _QUICK:
            self._at_once = min(self._at_once * 4, MOST_AT_ONCE)
        elif took > _SLOW:
            self._at_once = max(self._at_once // 4, 1)
        return batch

    async def _delete(self, session: Any, wanted: Document) -> _Batch:
        connection, entries = self._connection, self._connection[ENTRIES]
        undamaged = {"holders": 0, **documents.IS_SOUND}
        unheld = entries.find({**wanted, **undamaged}, {"chain": 1, "place": 1}, session=session)
        ends = await connection.all_of(unheld.limit(self._ends_at_once))
        if not ends:
            return _Batch(looked=False, above=[])
        ranges = [documents.up_from(end, self._at_once // len(ends)) for end in ends]
        sound = {"$or": ranges, **documents.IS_SOUND}
        before = await connection.all_of(entries.find(sound, _SHAPE, session=session))
        gone, lost = released({each["_id"]: (documents.parent_of(each), each["holders"]) for each in before})
        await connection.result_of(entries.delete_many({"_id": {"$in": gone}}, session=session))
        if lost:
            fewer = [
                UpdateOne({"_id": each, **documents.IS_SOUND}, {"$inc": {"holders": -holders}})
                for each, holders in lost.items()
            ]
            await connection.result_of(entries.bulk_write(fewer, session=session))
        return _Batch(looked=True, above=list(lost))


async def delete_without_transactions(connection: Connection, conversation_id: str, expected: str) -> bool:
    """Delete the record, if its revision is ``expected``, and then the entries that only it held, one by one.

    An entry goes in one step with the look whether something else holds it. A fork that holds it by then keeps it, and
    a fork that comes later is refused. What breaks off leaves entries.
    """
    entries, this = connection[ENTRIES], {"_id": conversation_id, "revision": expected}
    there = await connection.result_of(connection[RECORDS].find_one_and_delete(this))
    if there is None:
        return False
    for end in sorted(documents.record_of(there).ends):
        above: str | None = end
        while above is not None:
            alone = {"_id": above, "holders": 1}
            gone = await connection.result_of(entries.find_one_and_delete(alone, _SHAPE))
            if gone is None:
                fewer = UpdateOne({"_id": above, **documents.IS_SOUND}, {"$inc": {"holders": -1}})
                await connection.result_of(entries.bulk_write([fewer]))
            above = None if gone is None else documents.parent_of(gone)
    return True

"""How facts are written.

Where the server has transactions, each call is one. A merge of people holds all fences of the facts meanwhile
(:func:`~firefly_memory.tombstones.mongodb.gates.hold_fences`). So either a write to the place of one of them is there
already and moves, or the write finds the marker.

On a standalone server facts are written one after the other, each in steps: the version of the old value comes before
the change, which makes it count. The fact is changed only if nobody has written to it since it was read. A vector of
the old value is deleted before the change and after it, because another writer may have added one between.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from pymongo import InsertOne, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError

from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.errors import Writing, duplicate_in
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.transactions import InTransaction, tried_again
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.errors import ErasedError
from firefly_memory.longterm.mongodb import documents
from firefly_memory.longterm.mongodb.deletion import delete_facts, delete_versions_of
from firefly_memory.longterm.mongodb.documents import KEYS, MOVED, OF_FACTS, marker_id
from firefly_memory.longterm.mongodb.user_documents import user_row
from firefly_memory.longterm.person_form import damaged_user
from firefly_memory.longterm.rows import (
    FACTS,
    USERS,
    VERSIONS,
    FactRow,
    FactWrite,
    PersonMovedError,
    VersionRow,
    Written,
    updated,
)
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb import vectors as stored_vectors
from firefly_memory.search.mongodb.languages import agree_on_language
from firefly_memory.tombstones.log import Identity
from firefly_memory.tombstones.mongodb.gates import Gate, tombstones_of


class Planned(NamedTuple):
    """What is to be done for one fact."""

    written: Written
    write: InsertOne[Document] | UpdateOne | None = None
    old: FactRow | None = None
    """What it changes."""
    version: VersionRow | None = None
    vector: Vector | None = None

    @property
    def is_said_anew(self) -> bool:
        """Whether the fact gets another value, or its first one."""
        return self.old is None or self.version is not None


def planned(write: FactWrite, there: FactRow | None) -> Planned:
    """What is to be done for a fact if this one is ``there``."""
    row, vector = write.row, write.vector
    if there is None:
        return Planned(Written(row, "created"), InsertOne(documents.new_fact(row, vector)), vector=vector)
    if there.written_by == row.written_by:  # it was done, and only the answer was lost
        return Planned(Written(there, "created" if there.id == row.id else "updated"))
    if not write.overwrite:
        return Planned(Written(there, "skipped"))
    new, version = updated(there, write)
    return Planned(Written(new, "updated"), documents.overwriting(there, new, vector), there, version, vector)


async def gate_of_facts(
    connection: Connection, operation: str, rows: Sequence[FactRow], identities: Collection[Identity]
) -> Gate:
    """What finds the tombstones of those whose facts these are, and the markers of people who were merged."""
    tombstones = await tombstones_of(connection, sorted(identities))
    return Gate(connection, OF_FACTS, operation, [*tombstones, *_markers(rows)])


class FactWriting:
    """Writes of facts on one connection."""

    def __init__(
        self, connection: Connection, gate: Gate, in_transaction: InTransaction | None, writing: Writing, tries: Tries
    ) -> None:
        """``in_transaction`` is ``None`` on a standalone server."""
        self._connection = connection
        self._gate = gate
        self._in_transaction = in_transaction
        self._writing = writing
        self._tries = tries

    async def set(self, writes: Sequence[FactWrite], language: IndexLanguage | None) -> list[Written]:
        if self._in_transaction is not None:
            return await self._in_transaction(self._connection, partial(self._set, writes, language))
        await self._check([each.row for each in writes], language)
        return await self._connection.finish(self._set_alone(writes))

    async def restore(self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None) -> bool:
        if self._in_transaction is not None:
            return await self._in_transaction(self._connection, partial(self._restore, row, versions, language))
        await self._check([row], language)
        return await self._connection.finish(self._restore_alone(row, versions))

    # With transactions

    async def _set(self, writes: Sequence[FactWrite], language: IndexLanguage | None, session: Any) -> list[Written]:
        if language is not None:
            await agree_on_language(self._connection, FACTS, language, session)
        there = await self._there([each.row for each in writes], session)
        plans = [planned(each, there.get((each.row.scope, each.row.key))) for each in writes]
        await self._send([each.write for each in plans if each.write is not None], session)
        versions = [documents.version_document(each.version, each.written.row.space) for each in plans if each.version]
        if versions:
            await self._connection.result_of(self._connection[VERSIONS].insert_many(versions, session=session))
            replaced = [each.written.row.id for each in plans if each.version]
            await stored_vectors.delete_vectors(self._connection, FACTS, replaced, session)
        with_vector = [each for each in plans if each.write is not None and each.vector is not None]
        new = [_embedded(each) for each in with_vector if each.is_said_anew]
        await stored_vectors.insert_vectors(self._connection, FACTS, new, session)
        old = [_embedded(each) for each in with_vector if not each.is_said_anew]
        await stored_vectors.add_vectors(self._connection, FACTS, old, session)
        return [each.written for each in plans]

    async def _restore(
        self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None, session: Any
    ) -> bool:
        if language is not None:
            await agree_on_language(self._connection, FACTS, language, session)
        if await self._is_there(row, session):
            await self._send([], session)
            return False
        await self._send([InsertOne(documents.fact_document(row))], session)
        if versions:
            new = [documents.version_document(each, row.space) for each in versions]
            await self._connection.result_of(self._connection[VERSIONS].insert_many(new, session=session))
        return True

    async def _send(self, writes: Sequence[Any], session: Any) -> None:
        if not writes and not self._gate.tombstones:
            return
        try:
            await self._gate.write_in_transaction(writes, session)
        except BulkWriteError as exc:
            if duplicate_in(exc) is None:
                raise
            raise tried_again("another writer has just made the fact") from exc

    # Without transactions

    async def _check(self, rows: Sequence[FactRow], language: IndexLanguage | None) -> None:
        try:
            await self._gate.check()
        except ErasedError:
            await self._there(rows, None)
            raise
        if language is not None:
            await agree_on_language(self._connection, FACTS, language, None)

    async def _set_alone(self, writes: Sequence[FactWrite]) -> list[Written]:
        return [await self._set_one(each) for each in writes]

    async def _set_one(self, write: FactWrite) -> Written:
        while True:
            there = await self._there([write.row], None)
            plan = planned(write, there.get((write.row.scope, write.row.key)))
            if plan.write is None:
                return plan.written
            self._writing.has_begun = True
            make = self._insert(plan) if plan.old is None else self._change(plan, plan.old)
            if await make:
                return plan.written
            await self._tries.pause(self._connection)

    async def _insert(self, plan: Planned) -> bool:
        """Whether nobody else has made the fact meanwhile. Its vector comes before the fact, which makes it visible."""
        row = plan.written.row
        if plan.vector is not None:
            await stored_vectors.add_vectors(self._connection, FACTS, [_embedded(plan)])
        if await self._is_inserted(row, plan.write):
            return True
        await stored_vectors.delete_vectors(self._connection, FACTS, [row.id])
        return False

    async def _is_inserted(self, row: FactRow, write: Any) -> bool:
        try:
            await self._gate.write([write])
        except BulkWriteError as exc:
            if duplicate_in(exc) is None:
                raise
            return False
        except ErasedError:
            await delete_facts(self._connection, [row.id], None)
            await self._there([row], None)
            raise
        return True

    async def _change(self, plan: Planned, old: FactRow) -> bool:
        """Whether nobody else has written to the fact meanwhile."""
        row, connection = plan.written.row, self._connection
        if plan.version is not None:
            if not await self._put_version(plan.version, row.space):
                return False
            await stored_vectors.delete_vectors(connection, FACTS, [row.id])
        try:
            result = await self._gate.write([plan.write])  # type: ignore[list-item]
        except ErasedError:
            await self._there([row], None)
            await delete_facts(connection, [row.id], None)  # it is the erased person's by now
            raise
        if not result.matched_count:
            if not await stored_vectors.rows_there(connection, FACTS, [old.id]):
                await delete_versions_of(connection, [old.id], None)
            return False
        if plan.version is not None:
            await self._settle_version(plan.version, row.space)
            await stored_vectors.delete_vectors(connection, FACTS, [row.id])
        if plan.vector is not None:
            await stored_vectors.add_vectors(connection, FACTS, [_embedded(plan)])
            says_it_still = connection[FACTS.table].find_one({"_id": row.id, "value": row.value}, {"_id": 1})
            if await connection.result_of(says_it_still) is None:
                await stored_vectors.delete_vectors(connection, FACTS, [row.id])
        return True

    async def _put_version(self, version: VersionRow, space: str) -> bool:
        """Whether the fact has not got a version of this number. One of an interrupted write gives way."""
        unsettled = {"fact_id": version.fact_id, "number": version.number, "settled": {"$exists": False}}
        document = documents.version_document(version, space)
        try:
            await self._connection.result_of(self._connection[VERSIONS].replace_one(unsettled, document, upsert=True))
        except DuplicateKeyError:
            return False
        return True

    async def _settle_version(self, version: VersionRow, space: str) -> None:
        """The version counts by now: a slower writer may have put another one there, and no other may do so again."""
        document = {**documents.version_document(version, space), "settled": True}
        this = {"fact_id": version.fact_id, "number": version.number}
        await self._connection.result_of(self._connection[VERSIONS].replace_one(this, document))

    async def _restore_alone(self, row: FactRow, versions: Sequence[VersionRow]) -> bool:
        if await self._is_there(row, None):
            return False
        self._writing.has_begun = True
        # An interrupted deletion may have left some of a fact with this id.
        await delete_versions_of(self._connection, [row.id], None)
        await stored_vectors.delete_vectors(self._connection, FACTS, [row.id])
        for each in versions:
            await self._put_version(each, row.space)
        if await self._is_inserted(row, InsertOne(documents.fact_document(row))):
            return True
        if not await stored_vectors.rows_there(self._connection, FACTS, [row.id]):
            await delete_versions_of(self._connection, [row.id], None)
        return False

    # With and without

    async def _is_there(self, row: FactRow, session: Any) -> bool:
        """Whether there is a fact with this id or this key."""
        if await self._there([row], session):
            return True
        finding = self._connection[FACTS.table].find_one({"_id": row.id}, {"_id": 1}, session=session)
        return await self._connection.result_of(finding) is not None

    async def _there(self, rows: Sequence[FactRow], session: Any) -> dict[tuple[str, str], FactRow]:
        """The facts with these keys, by place and key; ``PersonMovedError`` if there is a marker."""
        markers = _markers(rows)
        scopes = [*dict.fromkeys(row.scope for row in rows), *markers]
        keys = [*dict.fromkeys(row.key for row in rows), *([MOVED] if markers else [])]
        wanted = {"scope": {"$in": scopes}, "key": {"$in": keys}}
        finding = self._connection[FACTS.table].find(wanted, batch_size=IN_ONE_BATCH, session=session).hint(KEYS)
        found = await self._connection.all_of(finding)
        for each in found:
            if documents.is_marker(each):
                raise await self._moved(markers[each["_id"]], each, session)
        return {(row.scope, row.key): row for row in map(documents.fact_row, found)}

    async def _moved(self, word: str, marker: Document, session: Any) -> Exception:
        wanted = {"word": documents.stands_for(marker)}
        root = await self._connection.result_of(self._connection[USERS].find_one(wanted, session=session))
        if root is None:
            return damaged_user(word, LookupError("the one whom they were merged into is not there"))
        return PersonMovedError(word, user_row(root))


def _markers(rows: Sequence[FactRow]) -> dict[bytes, str]:
    """The ids of the markers that may be in the places of these facts, each with the word of the place."""
    return {marker_id(row.scope): row.scope for row in rows if row.fact_scope == "user"}


def _embedded(plan: Planned) -> stored_vectors.Embedded:
    assert plan.vector is not None
    return documents.embedded(plan.written.row, plan.vector)

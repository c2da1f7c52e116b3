"""How facts are written on a standalone server, which has no transactions.

Facts are written one after the other, each in steps: the version of the old value comes before the change, which makes
it count. The fact is changed only if nobody has written to it since it was read. A vector of the old value is deleted
before the change and after it, because another writer may have added one between.
"""

from __future__ import annotations

from collections.abc import Sequence

from pymongo.errors import BulkWriteError, DuplicateKeyError

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import Writing, duplicate_in
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.errors import ErasedError
from firefly_memory.longterm.mongodb import documents
from firefly_memory.longterm.mongodb.deletion import delete_facts, delete_versions_of
from firefly_memory.longterm.mongodb.finding import find_facts, is_fact_there
from firefly_memory.longterm.mongodb.planning import Planned, planned
from firefly_memory.longterm.rows import FACTS, VERSIONS, FactRow, FactWrite, VersionRow, Written
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb import vectors as stored_vectors
from firefly_memory.search.mongodb.languages import agree_on_language
from firefly_memory.tombstones.mongodb.gates import Gate


class StandaloneWriting:
    """Writes of facts on one connection."""

    def __init__(self, connection: Connection, gate: Gate, writing: Writing, tries: Tries) -> None:
        self._connection = connection
        self._gate = gate
        self._writing = writing
        self._tries = tries

    async def set(self, writes: Sequence[FactWrite], language: IndexLanguage | None) -> list[Written]:
        await self._check([each.row for each in writes], language)
        return await self._connection.finish(self._set(writes))

    async def restore(self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None) -> bool:
        await self._check([row], language)
        return await self._connection.finish(self._restore(row, versions))

    async def _check(self, rows: Sequence[FactRow], language: IndexLanguage | None) -> None:
        try:
            await self._gate.check()
        except ErasedError:
            await find_facts(self._connection, rows)
            raise
        if language is not None:
            await agree_on_language(self._connection, FACTS, language, None)

    async def _set(self, writes: Sequence[FactWrite]) -> list[Written]:
        return [await self._set_one(each) for each in writes]

    async def _set_one(self, write: FactWrite) -> Written:
        while True:
            there = await find_facts(self._connection, [write.row])
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
            await stored_vectors.add_vectors(self._connection, FACTS, [plan.embedded()])
        if await self._is_inserted(plan):
            return True
        await stored_vectors.delete_vectors(self._connection, FACTS, [row.id])
        return False

    async def _is_inserted(self, plan: Planned) -> bool:
        row = plan.written.row
        try:
            await self._gate.write([plan.write])  # type: ignore[list-item]
        except BulkWriteError as exc:
            if duplicate_in(exc) is None:
                raise
            return False
        except ErasedError:
            await delete_facts(self._connection, [row.id], None)
            await find_facts(self._connection, [row])
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
            await find_facts(connection, [row])
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
            await stored_vectors.add_vectors(connection, FACTS, [plan.embedded()])
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

    async def _restore(self, row: FactRow, versions: Sequence[VersionRow]) -> bool:
        if await is_fact_there(self._connection, row):
            return False
        self._writing.has_begun = True
        # An interrupted deletion may have left some of a fact with this id.
        await delete_versions_of(self._connection, [row.id], None)
        await stored_vectors.delete_vectors(self._connection, FACTS, [row.id])
        for each in versions:
            await self._put_version(each, row.space)
        if await self._is_inserted(Planned(Written(row, "created"), documents.making(row))):
            return True
        if not await stored_vectors.rows_there(self._connection, FACTS, [row.id]):
            await delete_versions_of(self._connection, [row.id], None)
        return False

"""How facts are written where the server has transactions.

A writer looks which facts are there, and writes to those that nobody has written to since. Otherwise it looks again.

Where nothing but one fact is written, such as one that is confirmed, this takes one command between two looks for
tombstones. A merge of people writes to the same fact, so one of both meets the other there: the fact moves as it is
written, or the writer does not find it where it was.

All other writes are transactions. A new fact of a person is one, too, because a merge does not meet what is not there
yet. So a merge holds all fences of the facts meanwhile
(:func:`~firefly_memory.tombstones.mongodb.gates.hold_fences`), and this transaction writes one. Either the fact is
there already and moves, or the writer finds the marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pymongo.errors import BulkWriteError, PyMongoError

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import Writing, duplicate_in
from firefly_memory.databases.mongodb.transactions import InTransaction, tried_again
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.errors import ErasedError
from firefly_memory.longterm.mongodb import documents
from firefly_memory.longterm.mongodb.finding import find_facts, find_facts_and_language, is_fact_there
from firefly_memory.longterm.mongodb.planning import Planned, planned
from firefly_memory.longterm.rows import FACTS, VERSIONS, FactRow, FactWrite, VersionRow, Written
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb import vectors as stored_vectors
from firefly_memory.search.mongodb.languages import agree_on_language
from firefly_memory.tombstones.mongodb.gates import Gate


class _ChangedError(Exception):
    """The facts are not as they were seen."""


class FactWriting:
    """Writes of facts on one connection."""

    def __init__(
        self,
        connection: Connection,
        gate: Gate,
        gate_of_owners: Gate,
        in_transaction: InTransaction,
        writing: Writing,
        tries: Tries,
    ) -> None:
        """``gate`` finds tombstones and markers, ``gate_of_owners`` tombstones only."""
        self._connection = connection
        self._gate = gate
        self._gate_of_owners = gate_of_owners
        self._in_transaction = in_transaction
        self._writing = writing
        self._tries = tries

    async def set(self, writes: Sequence[FactWrite], language: IndexLanguage | None) -> list[Written]:
        rows = [each.row for each in writes]
        while True:
            is_noted = True
            if language is None:
                there = await find_facts(self._connection, rows)
            else:
                there, is_noted = await find_facts_and_language(self._connection, rows, language)
            plans = [planned(each, there.get((each.row.scope, each.row.key))) for each in writes]
            try:
                is_done = await self._write(plans, None if is_noted else language)
            except ErasedError:
                await find_facts(self._connection, rows)  # it may be a marker that refuses them
                raise
            if is_done:
                return [each.written for each in plans]
            await self._tries.pause(self._connection)

    async def _write(self, plans: Sequence[Planned], new_language: IndexLanguage | None) -> bool:
        """Whether the facts were as they had been seen: then all is done, and otherwise nothing."""
        if new_language is None:
            if all(each.write is None for each in plans):
                await self._gate.check()
                return True
            if len(plans) == 1 and plans[0].needs_no_transaction:
                return await self._connection.finish(self._write_one(plans[0]))
        try:
            await self._in_transaction(self._connection, partial(self._write_all, plans, new_language))
        except _ChangedError:
            return False
        return True

    # One document

    async def _write_one(self, plan: Planned) -> bool:
        assert plan.write is not None
        try:
            # No look for markers: after a merge one would refuse what has moved already.
            result = await self._gate_of_owners.write([plan.write])
        except ErasedError:
            await self._take_back(plan)
            raise
        except BulkWriteError as exc:
            if (exc.details.get("writeErrors") or [{}])[0].get("index") != 0:
                self._writing.has_begun = True
                with suppress(PyMongoError):  # the first error is the one to raise
                    await self._take_back(plan)
                raise
            if duplicate_in(exc) is None:
                raise
            return False  # another writer has just made the fact
        return plan.old is None or result.matched_count == 1

    async def _take_back(self, plan: Planned) -> None:
        """Undo a write, unless somebody has written to the fact since."""
        facts, row = self._connection[FACTS.table], plan.written.row
        if plan.old is None:
            await self._connection.result_of(facts.delete_one(documents.as_it_was(row)))
        else:
            undoing = documents.overwriting(row, plan.old, None)
            await self._connection.result_of(facts.bulk_write([undoing]))

    # Several documents

    async def _write_all(self, plans: Sequence[Planned], new_language: IndexLanguage | None, session: Any) -> None:
        connection = self._connection
        if new_language is not None:
            await agree_on_language(connection, FACTS, new_language, session)
        past_fence = not all(each.is_found_by_eraser for each in plans)
        await self._send([each.write for each in plans if each.write is not None], session, past_fence=past_fence)
        said = [documents.version_document(each.version, each.written.row.space) for each in plans if each.version]
        await connection.insert(VERSIONS, said, session)
        losing = [each.written.row.id for each in plans if each.loses_vectors]
        if losing:
            await stored_vectors.delete_vectors(connection, FACTS, losing, session)
        with_vector = [each for each in plans if each.vector is not None]
        new = [each.embedded() for each in with_vector if each.is_said_anew]
        await stored_vectors.insert_vectors(connection, FACTS, new, session)
        old = [each.embedded() for each in with_vector if not each.is_said_anew]
        await stored_vectors.add_vectors(connection, FACTS, old, session)

    async def _send(self, writes: Sequence[Any], session: Any, *, past_fence: bool = True) -> None:
        if not writes and not self._gate.tombstones:
            return
        try:
            result = await self._gate.write_in_transaction(writes, session, past_fence=past_fence)
        except BulkWriteError as exc:
            if duplicate_in(exc) is None:
                raise
            raise _ChangedError from exc
        done = result.matched_count + result.upserted_count - (past_fence and bool(self._gate.tombstones))
        if done != len(writes):
            raise _ChangedError

    async def restore(self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None) -> bool:
        return await self._in_transaction(self._connection, partial(self._restore, row, versions, language))

    async def _restore(
        self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None, session: Any
    ) -> bool:
        if language is not None:
            await agree_on_language(self._connection, FACTS, language, session)
        is_there = await is_fact_there(self._connection, row, session)
        try:
            await self._send([] if is_there else [documents.making(row)], session)
        except _ChangedError as exc:
            raise tried_again("another writer has just made the fact") from exc
        if not is_there:
            said = [documents.version_document(each, row.space) for each in versions]
            await self._connection.insert(VERSIONS, said, session)
        return not is_there

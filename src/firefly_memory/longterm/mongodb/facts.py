"""Facts in MongoDB."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from pymongo import ASCENDING, DeleteOne, ReturnDocument

from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.errors import Writing
from firefly_memory.databases.mongodb.fields import Document, dated
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.errors import DatabaseStoreError
from firefly_memory.longterm.fact_form import damaged_fact
from firefly_memory.longterm.mongodb import documents, queries
from firefly_memory.longterm.mongodb.deletion import delete_facts
from firefly_memory.longterm.mongodb.documents import (
    IN_LISTS,
    KEYS,
    OF_FACT,
    OF_FACTS,
    OF_OWNER,
    ORDER,
    SAID,
    VERSIONS_OF_OWNER,
)
from firefly_memory.longterm.mongodb.finding import find_facts, markers_of
from firefly_memory.longterm.mongodb.standalone_writing import StandaloneWriting
from firefly_memory.longterm.mongodb.writing import FactWriting
from firefly_memory.longterm.person_form import damaged_user
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import (
    FACTS,
    VERSIONS,
    FactPosition,
    FactRow,
    FactWrite,
    Filters,
    VersionRow,
    Written,
    as_said,
    identities_of,
)
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb.index import Keys
from firefly_memory.search.mongodb.kept_rows import BY_ID, EVERY, MongoKeptRows
from firefly_memory.tombstones.log import Identity
from firefly_memory.tombstones.mongodb.gates import Gate, tombstones_of

_BY_RANK = [("rank", ASCENDING)]
_AFTER = ReturnDocument.AFTER


class MongoFactLog(MongoKeptRows[FactRow]):
    """A :class:`~firefly_memory.longterm.log.FactLog` on clients of one mode."""

    def __init__(self, access: MongoAccess) -> None:
        super().__init__(access, FACTS, documents.fact_row, damaged_fact)
        sets = Grouping(
            key=lambda writes, *_: f"{writes[0].row.scope} {writes[0].row.key}",
            size=lambda writes, *_: len(writes[0].row.searchable) + len(writes[0].row.value),
            several=self._set_group,
            after_cancellation=self._set_unless_set,
            after_lost_reply=self._set_unless_set,
            may_join=lambda writes, *_: len(writes) == 1 and bool(access.database.has_transactions),
            target=lambda _, language: language,
            overdue=1.0,  # two transactions may be in each other's way
        )
        self.set = access.grouped(self._set, sets, retryable=True)

    async def _set(self, writes: Sequence[FactWrite], language: IndexLanguage | None) -> Sequence[Written]:
        if not writes:
            return []
        identities = {identity for each in writes for identity in each.row.identities}
        with self._writing("set_facts", "fact") as writing:
            work = await self._fact_writing("set_facts", [each.row for each in writes], identities, writing)
            return await work.set(writes, language)

    async def _set_group(self, sets: Sequence[tuple[Sequence[FactWrite], IndexLanguage | None]]) -> Sequence[Any]:
        """All that several callers store, each one fact, or nothing of it."""
        done = await self._set([write for (write,), _ in sets], sets[0][1])
        return [[each] for each in done]

    async def _set_unless_set(self, writes: Sequence[FactWrite], language: IndexLanguage | None) -> Sequence[Written]:
        """The same after an attempt that may have been done. A fact that somebody else has written since is left
        alone."""
        with self._writing("set_facts") as writing:
            there = await find_facts(await self._access.connected("set_facts"), [each.row for each in writes])
            for row in (each.row for each in writes):
                found = there.get((row.scope, row.key))
                if found is not None and found.row.written_by != row.written_by and found.row.newest > row.newest:
                    writing.has_begun = True
                    raise DatabaseStoreError("set_facts", "somebody else has written to the fact since", retryable=True)
        return await self._set(writes, language)

    async def restore(self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None) -> bool:
        with self._writing("restore_fact", "fact") as writing:
            work = await self._fact_writing("restore_fact", [row], identities_of(row, versions), writing)
            return await work.restore(row, versions, language)

    async def get(self, lookup: Lookup, key: str, now: datetime) -> FactRow | None:
        is_marker = {"$eq": ["$rank", -1]}
        date, microseconds = dated("last_accessed", now).values()
        counted = {
            "access_count": {"$add": ["$access_count", 1]},
            "last_accessed": date,
            "last_accessed_us": microseconds,
        }
        change = [{"$set": {name: {"$cond": [is_marker, "$$REMOVE", each]} for name, each in counted.items()}}]
        with self._writing("get_fact"):
            connection = await self._access.connected("get_fact")
            count = partial(
                connection[FACTS.table].find_one_and_update,
                update=change,
                projection=documents.WITHOUT_WORDS,
                sort=_BY_RANK,
                hint=KEYS,
                return_document=_AFTER,
            )
            return await self._seen(connection, lookup, key, lambda wanted: connection.result_of(count(wanted)))

    async def find(self, lookup: Lookup, key: str) -> FactRow | None:
        with self._reading("find_fact"):
            connection = await self._access.connected("find_fact")
            find = partial(
                connection[FACTS.table].find_one, projection=documents.WITHOUT_WORDS, sort=_BY_RANK, hint=KEYS
            )
            return await self._seen(connection, lookup, key, lambda wanted: connection.result_of(find(wanted)))

    async def _seen(
        self,
        connection: Connection,
        lookup: Lookup,
        key: str,
        ask: Callable[[Document], Awaitable[Document | None]],
    ) -> FactRow | None:
        """What a lookup finds; once more for the person for whom somebody stands."""
        for _ in range(_STEPS):
            found = await ask(documents.seen(lookup, key))
            if found is None or not documents.is_marker(found):
                return None if found is None else documents.shown_fact(found)
            lookup = lookup._replace(user=documents.stands_for(found))
        raise _too_long(lookup)

    async def as_of(self, lookup: Lookup, key: str, at: datetime) -> FactRow | None:
        with self._reading("fact_as_of"):
            connection = await self._access.connected("fact_as_of")
            facts = connection[FACTS.table]
            for _ in range(_STEPS):
                wanted = documents.seen(lookup, key)
                finding = facts.find(wanted, documents.WITHOUT_WORDS, batch_size=IN_ONE_BATCH)
                found = await connection.all_of(finding.sort(_BY_RANK).hint(KEYS))
                if not found or not documents.is_marker(found[0]):
                    return await self._first_said(connection, list(map(documents.shown_fact, found)), at)
                lookup = lookup._replace(user=documents.stands_for(found[0]))
        raise _too_long(lookup)

    async def _first_said(self, connection: Connection, rows: Sequence[FactRow], at: datetime) -> FactRow | None:
        """The first of these facts that was there at an instant, as it was then."""
        for row in rows:
            if row.valid_from <= at:
                return row
            wanted, newest_first = queries.said_by(row, at), SAID[1:]
            finding = connection[VERSIONS].find_one(wanted, sort=newest_first, hint=SAID)  # no $lookup takes a hint
            found = await connection.result_of(finding)
            if found is not None:
                return as_said(row, documents.version_row(found))
        return None

    async def list(
        self, words: Sequence[str], filters: Filters, limit: int, after: FactPosition | None, person: str | None = None
    ) -> Sequence[FactRow]:
        if person is not None:
            root = await self._stands_for(person)
            words = [root if each == person else each for each in words]
        wanted = queries.listed(words, filters, after)
        if wanted is None:
            return []
        found = await self._found("list_facts", wanted, documents.WITHOUT_WORDS, IN_LISTS, limit, ORDER)
        return [documents.shown_fact(each) for each in found]

    async def _stands_for(self, word: str) -> str:
        """The word of the person for whom the one with this word stands."""
        with self._reading("list_facts"):
            connection = await self._access.connected("list_facts")
            this = {"_id": documents.marker_id(word)}
            marker = await connection.result_of(connection[FACTS.table].find_one(this, hint=BY_ID))
            return word if marker is None else documents.stands_for(marker)

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        return await self._ids("facts_of_owner", {"owner": owner, "_id": {"$gt": after}}, OF_OWNER, limit)

    async def count(self) -> int:
        with self._reading("count_facts"):
            connection = await self._access.connected("count_facts")
            return int(await connection.result_of(connection[FACTS.table].count_documents(EVERY, hint=BY_ID)))

    async def confirm(self, space: str, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
        nearer = {"$add": ["$confidence", {"$divide": [{"$subtract": [1.0, "$confidence"]}, 5.0]}]}
        return await self._judge("confirm_fact", space, fact_id, "times_confirmed", nearer, write_id, now)

    async def contradict(self, space: str, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
        less = {"$multiply": ["$confidence", 0.8]}
        return await self._judge("contradict_fact", space, fact_id, "times_contradicted", less, write_id, now)

    async def _judge(
        self, operation: str, space: str, fact_id: str, counter: str, confidence: Document, write_id: str, now: datetime
    ) -> FactRow | None:
        change = {
            "confidence": confidence,
            counter: {"$add": [f"${counter}", 1]},
            "written_by": {"$literal": write_id},
            **dated("newest", now),
        }
        with self._writing(operation):
            connection = await self._access.connected(operation)
            this = {"_id": fact_id, "space": space}
            facts = connection[FACTS.table]
            changing = facts.find_one_and_update(this, [{"$set": change}], return_document=_AFTER)
            found = await connection.result_of(changing)
            return None if found is None else documents.fact_row(found)

    async def rewrite(self, rows: Sequence[FactRow]) -> int:
        if rows:
            with self._writing("rewrite_facts", "fact") as writing:
                documents.check_sizes(rows)
                connection = await self._access.connected("rewrite_facts")
                writing.has_begun = True
                updates = [documents.rewriting(row) for row in rows]
                await connection.result_of(connection[FACTS.table].bulk_write(updates, ordered=False))
        return len(rows)

    async def delete(self, ids: Sequence[str], written_by: Sequence[str] | None = None) -> int:
        with self._writing("delete_facts") as writing:
            connection = await self._access.connected("delete_facts")

            def delete(session: Any) -> Coroutine[Any, Any, int]:
                return delete_facts(connection, ids, session, written_by)

            in_transaction = self._transactions()
            if in_transaction is not None:
                return await in_transaction(connection, delete)
            writing.has_begun = True
            return await connection.finish(delete(None))

    # Versions

    async def versions(self, fact_id: str, limit: int, after: int) -> Sequence[VersionRow]:
        wanted = {"fact_id": fact_id, "number": {"$gt": after}}
        return [documents.version_row(each) for each in await self._versions("versions_of_fact", wanted, limit)]

    async def versions_of_owner(self, owner: str, limit: int, after: tuple[str, int]) -> Sequence[tuple[str, int]]:
        wanted = {"$or": [{"owner": owner, **each} for each in _versions_after(after)]}
        found = await self._versions("versions_of_owner", wanted, limit, VERSIONS_OF_OWNER, OF_FACT)
        return [(each["fact_id"], int(each["number"])) for each in found]

    async def page_of_versions(self, limit: int, after: tuple[str, int]) -> Sequence[VersionRow]:
        wanted = {"$or": _versions_after(after)}
        return [documents.version_row(each) for each in await self._versions("page_of_versions", wanted, limit)]

    async def count_versions(self) -> int:
        with self._reading("count_versions"):
            connection = await self._access.connected("count_versions")
            return int(await connection.result_of(connection[VERSIONS].count_documents({}, hint=OF_FACT)))

    async def count_versions_of(self, fact_ids: Sequence[str]) -> Mapping[str, int]:
        counting = [
            {"$match": {"fact_id": {"$in": list(fact_ids)}}},
            {"$group": {"_id": "$fact_id", "count": {"$sum": 1}}},
        ]
        with self._reading("count_versions"):
            connection = await self._access.connected("count_versions")
            asking = connection[VERSIONS].aggregate(counting, batchSize=IN_ONE_BATCH, hint=dict(OF_FACT))
            return {each["_id"]: int(each["count"]) for each in await connection.all_of(asking)}

    async def delete_versions(self, names: Sequence[tuple[str, int]]) -> int:
        if not names:
            return 0
        deletions = [DeleteOne({"fact_id": fact_id, "number": number}) for fact_id, number in names]

        async def delete(session: Any) -> int:
            writing = connection[VERSIONS].bulk_write(deletions, ordered=False, session=session)
            return int((await connection.result_of(writing)).deleted_count)

        with self._writing("delete_versions") as writing:
            connection = await self._access.connected("delete_versions")
            in_transaction = self._transactions()
            if in_transaction is not None:
                return await in_transaction(connection, delete)
            writing.has_begun = True
            return await delete(None)

    async def _versions(
        self, operation: str, wanted: Document, limit: int, index: Keys = OF_FACT, order: Keys = OF_FACT
    ) -> Sequence[Document]:
        if limit == 0:  # which is no limit to the server
            return []
        with self._reading(operation):
            connection = await self._access.connected(operation)
            finding = connection[VERSIONS].find(wanted, batch_size=IN_ONE_BATCH).sort(order).hint(index)
            return await connection.all_of(finding.limit(limit))

    async def _fact_writing(
        self, operation: str, rows: Sequence[FactRow], identities: Collection[Identity], writing: Writing
    ) -> FactWriting | StandaloneWriting:
        documents.check_sizes(rows)
        connection = await self._access.connected(operation)
        tombstones = await tombstones_of(connection, sorted(identities))
        gate_of_owners = Gate(connection, OF_FACTS, operation, tombstones)
        gate = replace(gate_of_owners, tombstones=[*tombstones, *markers_of(rows)])
        tries = Tries(operation, "these facts", self._access.database.timeout, _no_check)
        in_transaction = self._transactions()
        if in_transaction is None:
            return StandaloneWriting(connection, gate, writing, tries)
        return FactWriting(connection, gate, gate_of_owners, in_transaction, writing, tries)


_STEPS = 9
"""A person who was merged stands for one who was not, but this one may be merged between two steps."""


def _too_long(lookup: Lookup) -> Exception:
    return damaged_user(lookup.user, RecursionError("the one for whom they stand was merged as well"))


def _versions_after(after: tuple[str, int]) -> list[Document]:
    fact_id, number = after
    return [{"fact_id": fact_id, "number": {"$gt": number}}, {"fact_id": {"$gt": fact_id}}]


async def _no_check(connection: Connection) -> None:
    """Nothing but other writers can be in the way."""

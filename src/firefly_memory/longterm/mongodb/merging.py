"""How two people become one, in one transaction.

It begins with the fences of the facts: a write to one of them that is under way has ended then, and a later one waits
for the end of this transaction, and finds the marker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import UpdateMany, UpdateOne

from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.fields import Document, dated
from firefly_memory.longterm.mongodb import documents, user_documents
from firefly_memory.longterm.mongodb.deletion import delete_facts
from firefly_memory.longterm.mongodb.documents import KEYS, OF_FACT, OF_FACTS, OF_OWNER, fact_row
from firefly_memory.longterm.mongodb.user_documents import OF_USERS, user_row
from firefly_memory.longterm.rows import (
    FACTS,
    USERS,
    VERSIONS,
    FactRow,
    Merged,
    UserRow,
    VersionRow,
    absorbed,
    already_one,
    joined,
)
from firefly_memory.tombstones.mongodb.gates import gate_of, hold_fences

_AT_ONCE = 1_000
"""Facts with the same key that are read together."""


async def merge(connection: Connection, session: Any, source: str, target: str, write_id: str, now: datetime) -> Merged:
    """What :meth:`~firefly_memory.longterm.log.PeopleLog.merge` does."""
    await hold_fences(connection, OF_FACTS, session)
    from_root, to_root = [await _root(connection, session, word) for word in (source, target)]
    if from_root is None:
        return Merged(None, "unknown source")
    if to_root is None:
        return Merged(None, "unknown target")
    if from_root.id == to_root.id:
        return already_one(source, target, to_root)
    merging = _Merging(connection, session, from_root, to_root, now)
    await merging.move_facts()
    await merging.give_the_rest()
    return Merged(await merging.join(write_id))


async def _root(connection: Connection, session: Any, word: str) -> UserRow | None:
    """The person for whom the one with this word stands."""
    users = connection[USERS]
    found = await connection.result_of(users.find_one({"word": word}, session=session))
    if found is None or not user_row(found).is_merged:
        return None if found is None else user_row(found)
    root = await connection.result_of(users.find_one({"word": user_row(found).stands_for}, session=session))
    return None if root is None else user_row(root)


class _Merging:
    def __init__(self, connection: Connection, session: Any, source: UserRow, target: UserRow, now: datetime) -> None:
        self._connection = connection
        self._session = session
        self._source = source
        self._target = target
        self._now = now

    async def move_facts(self) -> None:
        """Move the source's own facts. Where the target has the key, its fact takes that of the source in."""
        named = await self._facts({"scope": self._source.word}, KEYS, {"key": 1})
        ids = {each["key"]: each["_id"] for each in named}
        keys = list(ids)
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            found = await self._facts({"scope": self._target.word, "key": {"$in": some}}, KEYS)
            taken = {each["key"]: fact_row(each) for each in found}
            if taken:
                await self._absorb(taken, [ids[key] for key in taken])
            free = [ids[key] for key in some if key not in taken]
            if free:
                await self._move(free)

    async def _move(self, ids: Sequence[str]) -> None:
        target = self._target
        place = {"scope": target.word, "owner": target.canonical_id}
        fact = {**place, "scope_id": target.canonical_id, "words.0": target.word}
        await self._write(FACTS.table, [UpdateMany({"_id": {"$in": ids}}, {"$set": fact})])
        await self._write(FACTS.signatures, [UpdateMany({"id": {"$in": ids}}, {"$set": place})])

    async def _absorb(self, taken: Mapping[str, FactRow], ids: Sequence[str]) -> None:
        sources = [fact_row(each) for each in await self._facts({"_id": {"$in": list(ids)}}, None)]
        versions = await self._versions_of(ids)
        changes: list[UpdateOne] = []
        added: list[Document] = []
        for source in sources:
            there = taken[source.key]
            said = [each for each in versions if each.fact_id == source.id and each.number <= source.versions]
            row, new = absorbed(there, source, said, self._now)
            changes.append(UpdateOne({"_id": there.id, "scope": there.scope}, {"$set": _absorbed_fields(row)}))
            added += [documents.version_document(each, row.space) for each in new]
        await delete_facts(self._connection, ids, self._session)
        await self._write(FACTS.table, changes)
        if added:
            inserting = self._connection[VERSIONS].insert_many(added, session=self._session)
            await self._connection.result_of(inserting)

    async def give_the_rest(self) -> None:
        """Give the target what is the source's data in other places of the space, and the versions of all facts."""
        source, owned = self._source, {"$set": {"owner": self._target.canonical_id}}
        its_data: Document = {"owner": source.canonical_id, "space": source.space}
        found = await self._facts(its_data, OF_OWNER, {"_id": 1})
        if found:
            ids = [each["_id"] for each in found]
            await self._write(FACTS.table, [UpdateMany({"_id": {"$in": ids}}, owned)])
            await self._write(FACTS.signatures, [UpdateMany({"id": {"$in": ids}}, owned)])
        await self._write(VERSIONS, [UpdateMany(its_data, owned)])

    async def join(self, write_id: str) -> UserRow:
        """Make the source, and all who stood for it, stand for the target, which is returned."""
        source, target = self._source, self._target
        new_source, new_target = joined(source, target, write_id, self._now)
        stood = self._connection[USERS].find({"stands_for": source.word}, {"word": 1}, session=self._session)
        words = [each["word"] for each in await self._connection.all_of(stood)]
        await self._write(FACTS.table, [documents.marking(word, target.word) for word in words])
        fields = {"stands_for": target.word, "merged_into_id": target.id, **dated("updated_at", self._now)}
        these = [each for each in words if each != source.word]
        gate = await gate_of(self._connection, OF_USERS, "merge_users", [*source.identities, *target.identities])
        # The source gives its contacts up before the target gets them.
        writes: list[Any] = [
            user_documents.replacing(new_source),
            user_documents.replacing(new_target),
            UpdateMany({"word": {"$in": these}}, {"$set": fields}),
        ]
        await gate.write_in_transaction(writes, self._session)
        return new_target

    async def _versions_of(self, ids: Sequence[str]) -> list[VersionRow]:
        finding = self._connection[VERSIONS].find(
            {"fact_id": {"$in": list(ids)}}, batch_size=IN_ONE_BATCH, session=self._session
        )
        found = await self._connection.all_of(finding.sort(OF_FACT).hint(OF_FACT))
        return [documents.version_row(each) for each in found]

    async def _facts(self, wanted: Document, index: Any, shape: Document | None = None) -> list[Document]:
        finding = self._connection[FACTS.table].find(
            wanted, shape, batch_size=IN_ONE_BATCH, session=self._session, hint=index
        )
        return await self._connection.all_of(finding)

    async def _write(self, collection: str, writes: Sequence[Any]) -> None:
        writing = self._connection[collection].bulk_write(list(writes), session=self._session)
        await self._connection.result_of(writing)


def _absorbed_fields(row: FactRow) -> Document:
    return {
        "times_confirmed": row.times_confirmed,
        "times_contradicted": row.times_contradicted,
        "access_count": row.access_count,
        "versions": row.versions,
        **dated("last_accessed", row.last_accessed),
    }

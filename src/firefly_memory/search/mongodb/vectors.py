"""The vectors and signatures of a facet's documents, as the facet writes them: together with the documents.

In a transaction nobody sees a part of it. Without one, the facet writes vectors before the documents, and deletes them
after the documents: a vector without its document is never found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pymongo import UpdateOne

from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.search.index import Subject, Vector
from firefly_memory.search.mongodb.documents import OF_OWNER, OF_ROW

_LEFT_AT_ONCE = 1_000


class Embedded(NamedTuple):
    """The vector of a row, and what its signature has of the row."""

    id: str
    scope: str
    owner: str | None
    vector: Vector


async def add_vectors(
    connection: Connection, subject: Subject, embedded: Sequence[Embedded], session: Any = None
) -> list[str]:
    """Store the vectors that are not there yet; the ids of their rows. Those that are there stay as they are."""
    if not embedded:
        return []
    signatures = [_unless_there(each, _signature(each)) for each in embedded]
    vectors = [_unless_there(each, {"vector": each.vector.vector}) for each in embedded]
    await connection.result_of(connection[subject.signatures].bulk_write(signatures, ordered=False, session=session))
    writing = connection[subject.vectors].bulk_write(vectors, ordered=False, session=session)
    return [embedded[each].id for each in (await connection.result_of(writing)).upserted_ids]


async def insert_vectors(
    connection: Connection, subject: Subject, embedded: Sequence[Embedded], session: Any = None
) -> None:
    """Store vectors of new rows, in half the time of :func:`add_vectors`; an error of the driver if one is there."""
    signatures = [{**_key(each), **_signature(each)} for each in embedded]
    vectors = [{**_key(each), "vector": each.vector.vector} for each in embedded]
    await connection.insert(subject.signatures, signatures, session)
    await connection.insert(subject.vectors, vectors, session)


async def delete_vectors(
    connection: Connection, subject: Subject, ids: Sequence[str], session: Any = None, *, embedder: str | None = None
) -> None:
    """Delete the vectors of these rows, of one embedder or of every one."""
    of_these: Document = {"id": {"$in": list(ids)}}
    if embedder is not None:
        of_these["embedder"] = embedder
    await connection.result_of(connection[subject.vectors].delete_many(of_these, session=session))
    await connection.result_of(connection[subject.signatures].delete_many(of_these, session=session))


async def vectors_by_embedder(connection: Connection, subject: Subject) -> dict[str, int]:
    """How many there are of each embedder."""
    counting: list[Document] = [{"$group": {"_id": "$embedder", "count": {"$sum": 1}}}]
    found = await connection.all_of(connection[subject.signatures].aggregate(counting, hint=dict(OF_ROW)))
    return {each["_id"]: int(each["count"]) for each in found}


async def having_vector(connection: Connection, subject: Subject, embedder: str, limit: int, after: str) -> list[str]:
    """The ids of the first rows after an id that have a vector of an embedder."""
    wanted = {"id": {"$gt": after}, "embedder": embedder}
    finding = connection[subject.signatures].find(wanted, {"_id": 0, "id": 1}).sort(OF_ROW).hint(OF_ROW)
    return [each["id"] for each in await connection.all_of(finding.limit(limit))]


async def without_vector(connection: Connection, subject: Subject, embedder: str, ids: Sequence[str]) -> list[str]:
    """Those of these rows that have no vector of this embedder, in their order."""
    wanted = {"id": {"$in": list(ids)}, "embedder": embedder}
    finding = connection[subject.vectors].find(wanted, {"_id": 0, "id": 1}, batch_size=IN_ONE_BATCH).hint(OF_ROW)
    having = {each["id"] for each in await connection.all_of(finding)}
    return [each for each in ids if each not in having]


async def delete_left_behind(connection: Connection, subject: Subject, owner: str) -> None:
    """Delete the vectors of a person's rows that are not there: an interrupted write or deletion has left them."""
    after, is_full = "", True
    while is_full:
        wanted = {"owner": owner, "id": {"$gt": after}}
        finding = connection[subject.signatures].find(wanted, {"_id": 0, "id": 1}).sort(OF_OWNER).hint(OF_OWNER)
        ids = [each["id"] for each in await connection.all_of(finding.limit(_LEFT_AT_ONCE))]
        is_full = len(ids) == _LEFT_AT_ONCE
        if ids:
            after = ids[-1]
            there = await rows_there(connection, subject, ids)
            await delete_vectors(connection, subject, [each for each in ids if each not in there])


async def rows_there(connection: Connection, subject: Subject, ids: Sequence[str]) -> set[str]:
    """Those of these ids that a row has."""
    finding = connection[subject.table].find({"_id": {"$in": list(ids)}}, {"_id": 1}, batch_size=IN_ONE_BATCH)
    return {each["_id"] for each in await connection.all_of(finding)}


def _signature(each: Embedded) -> Document:
    owned = {} if each.owner is None else {"owner": each.owner}
    return {"scope": each.scope, "signature": each.vector.signature, **owned}


def _unless_there(each: Embedded, fields: Document) -> UpdateOne:
    return UpdateOne(_key(each), {"$setOnInsert": fields}, upsert=True)


def _key(each: Embedded) -> Document:
    return {"id": each.id, "embedder": each.vector.embedder}

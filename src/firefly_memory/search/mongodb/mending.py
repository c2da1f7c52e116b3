"""An index in MongoDB, apart from the words of its rows: vectors and signatures without a row.

Where the server has transactions there are none. On a standalone server an interrupted write or deletion leaves some,
and those of a write that is under way look the same: if they are deleted, the row is embedded again later.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.search.index import Subject
from firefly_memory.search.mongodb.documents import OF_ROW
from firefly_memory.search.mongodb.vectors import delete_vectors, rows_there

_WALKED = 5_000
"""Ids that are looked up together."""


async def index_damage(connection: Connection, subject: Subject) -> list[str]:
    """What is wrong, in sentences."""
    found = []
    for collection, what in ((subject.vectors, "vectors"), (subject.signatures, "signatures")):
        count = 0
        async for ids in _stray(connection, subject, collection):
            counting = connection[collection].count_documents({"id": {"$in": ids}}, hint=OF_ROW)
            count += int(await connection.result_of(counting))
        if count:
            found.append(f"{count:,} {what} have no {subject.kind}")
    return found


async def mend(connection: Connection, subject: Subject) -> None:
    """Make it right."""
    for collection in (subject.vectors, subject.signatures):
        async for ids in _stray(connection, subject, collection):
            await delete_vectors(connection, subject, ids)


async def _stray(connection: Connection, subject: Subject, collection: str) -> AsyncIterator[list[str]]:
    """The ids in a collection that are those of no row. Its documents are never read: the index has the ids."""
    after, is_full = "", True
    while is_full:
        beyond = {"id": {"$gt": after}}
        finding = connection[collection].find(beyond, {"_id": 0, "id": 1}, batch_size=IN_ONE_BATCH)
        found = await connection.all_of(finding.sort(OF_ROW).hint(OF_ROW).limit(_WALKED))
        ids = list(dict.fromkeys(each["id"] for each in found))  # a row may have vectors of several embedders
        is_full = len(found) == _WALKED
        if ids:
            after = ids[-1]
            there = await rows_there(connection, subject, ids)
            stray = [each for each in ids if each not in there]
            if stray:
                yield stray

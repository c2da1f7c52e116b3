"""The deletion of facts with their versions and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.longterm.mongodb.documents import VERSIONS_OF_OWNER
from firefly_memory.longterm.rows import FACTS, VERSIONS
from firefly_memory.search.mongodb import vectors as stored_vectors
from firefly_memory.tombstones.log import Identity

_AT_ONCE = 1_000


async def delete_facts(
    connection: Connection, ids: Sequence[str], session: Any, written_by: Sequence[str] | None = None
) -> int:
    """Delete facts, which makes their versions and vectors invisible, and then these; how many facts there were. With
    ``written_by``, only those whose last write is one of these."""
    facts, these = connection[FACTS.table], {"_id": {"$in": list(ids)}}
    if written_by is not None:
        these["written_by"] = {"$in": list(written_by)}
        found = await connection.all_of(facts.find(these, {"_id": 1}, batch_size=IN_ONE_BATCH, session=session))
        ids = [each["_id"] for each in found]
    deleted = int((await connection.result_of(facts.delete_many(these, session=session))).deleted_count)
    if written_by is not None and session is None:  # others may have written to some of them meanwhile
        there = await stored_vectors.rows_there(connection, FACTS, ids)
        ids = [each for each in ids if each not in there]
    await delete_versions_of(connection, ids, session)
    await stored_vectors.delete_vectors(connection, FACTS, ids, session)
    return deleted


async def delete_versions_of(connection: Connection, ids: Sequence[str], session: Any) -> None:
    """Delete all versions of these facts."""
    of_these = {"fact_id": {"$in": list(ids)}}
    await connection.result_of(connection[VERSIONS].delete_many(of_these, session=session))


async def delete_left_behind(connection: Connection, identities: Sequence[Identity]) -> None:
    """Delete the vectors and versions that interrupted writes and deletions have left of erased people."""
    for kind, name in identities:
        if kind == "owner":
            await stored_vectors.delete_left_behind(connection, FACTS, name)
            await _delete_stray_versions(connection, name)


async def _delete_stray_versions(connection: Connection, owner: str) -> None:
    """Delete a person's versions whose facts are not there."""
    after, is_full = "", True
    while is_full:
        wanted: Document = {"owner": owner, "fact_id": {"$gt": after}}
        finding = connection[VERSIONS].find(wanted, {"_id": 0, "fact_id": 1})
        ordered = finding.sort(VERSIONS_OF_OWNER).hint(VERSIONS_OF_OWNER).limit(_AT_ONCE)
        found = await connection.all_of(ordered)
        is_full = len(found) == _AT_ONCE
        ids = list(dict.fromkeys(each["fact_id"] for each in found))
        if ids:
            after = ids[-1]
            there = await stored_vectors.rows_there(connection, FACTS, ids)
            stray = [each for each in ids if each not in there]
            of_these: Document = {"owner": owner, "fact_id": {"$in": stray}}
            await connection.result_of(connection[VERSIONS].delete_many(of_these))

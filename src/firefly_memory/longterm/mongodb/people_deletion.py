"""The deletion of people with their own facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.longterm.mongodb import documents
from firefly_memory.longterm.mongodb.deletion import delete_facts
from firefly_memory.longterm.mongodb.documents import KEYS
from firefly_memory.longterm.mongodb.user_documents import user_row
from firefly_memory.longterm.rows import FACTS, USERS, UserRow


async def delete_people(connection: Connection, ids: Sequence[str], idle_since: datetime | None, session: Any) -> int:
    """Delete people, and all who stand for one of them; how many of ``ids`` were deleted. The people themselves go
    last: where it breaks off they are there to be deleted again."""
    there = await _people(connection, {"_id": {"$in": list(ids)}}, session)
    if idle_since is not None:
        there = await _idle(connection, there, idle_since, session)
    if not there:
        return 0
    standing = await _people(connection, {"stands_for": {"$in": [row.word for row in there]}}, session)
    everybody = {row.id: row.word for row in (*there, *standing)}
    theirs = {"scope": {"$in": list(everybody.values())}}
    facts = connection[FACTS.table]
    finding = facts.find(theirs, {"_id": 1}, batch_size=IN_ONE_BATCH, session=session, hint=KEYS)
    fact_ids = [each["_id"] for each in await connection.all_of(finding)]
    if fact_ids:
        await delete_facts(connection, fact_ids, session)
    await connection.result_of(facts.bulk_write([documents.unmarking(everybody.values())], session=session))
    deleting = connection[USERS].delete_many({"_id": {"$in": list(everybody)}}, session=session)
    await connection.result_of(deleting)
    return len(there)


async def _idle(connection: Connection, rows: Sequence[UserRow], since: datetime, session: Any) -> list[UserRow]:
    """Those who have no facts, and were not updated since then. The one for whom somebody stands counts."""
    words = list({row.stands_for for row in rows})
    roots = {row.word: row for row in await _people(connection, {"word": {"$in": words}}, session)}
    counting: list[Document] = [{"$match": {"scope": {"$in": words}}}, {"$group": {"_id": "$scope"}}]
    asking = connection[FACTS.table].aggregate(counting, hint=dict(KEYS), session=session)
    with_facts = {each["_id"] for each in await connection.all_of(asking)}
    idle = {word for word, root in roots.items() if root.updated_at < since and word not in with_facts}
    return [row for row in rows if row.stands_for in idle]


async def _people(connection: Connection, wanted: Document, session: Any) -> list[UserRow]:
    finding = connection[USERS].find(wanted, batch_size=IN_ONE_BATCH, session=session)
    return [user_row(each) for each in await connection.all_of(finding)]

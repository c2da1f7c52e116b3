"""Conversations of before revision 0006 get the place of their newest turn, by which they are listed.

It is done once; ``memory_version`` notes it. Any number of processes may do it at once: what one has written, and what
appends have written since, stays.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pymongo.errors import DuplicateKeyError

from firefly_memory.conversations.mongodb.documents import CONVERSATIONS, MOMENTS, Pipeline
from firefly_memory.conversations.mongodb.queries import WITH_NEWEST
from firefly_memory.databases.mongodb.clients import VERSION, Connection
from firefly_memory.databases.mongodb.errors import despite_a_loss
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.errors import SchemaMismatchError

REVISION = "0006"

_THIS: Document = {"_id": CONVERSATIONS}
_OF_BEFORE: Document = {MOMENTS["created"]: {"$exists": True}, MOMENTS["updated"]: {"$exists": False}}


def _placed() -> Pipeline:
    microseconds = {"$toString": {"$add": [1000, {"$ifNull": ["$newest.created_at_us", 0]}]}}
    day_and_time = {"$dateToString": {"date": "$newest.created_at", "format": "%Y-%m-%dT%H:%M:%S.%L"}}
    of_newest = {"$concat": [day_and_time, {"$substrCP": [microseconds, 1, 3]}, "+00:00/", "$_id"]}
    active = {"$cond": [{"$gt": ["$newest", None]}, of_newest, "$place"]}
    unless_there = [{"$set": {"active": {"$ifNull": ["$active", "$$new.active"]}}}]
    into = {"into": CONVERSATIONS, "whenMatched": unless_there, "whenNotMatched": "discard"}
    return [
        {"$match": _OF_BEFORE},
        *WITH_NEWEST,
        {"$project": {"conversation_id": 1, "active": active}},
        {"$merge": into},
    ]


async def bring_to_today(connection: Connection, migrate: bool, _: Any) -> None:
    """Give every conversation its place; ``SchemaMismatchError`` if nobody may ``migrate`` and one has none."""
    noted = await connection.result_of(connection[VERSION].find_one(_THIS))
    if noted is not None and noted.get("revision") == REVISION:
        return
    conversations = connection[CONVERSATIONS]
    if await connection.result_of(conversations.find_one(_OF_BEFORE, {"_id": 1})) is not None:
        if not migrate:
            needed = f"{REVISION}, where conversations are listed by their newest turn"
            raise SchemaMismatchError(
                "initialize", "0005", needed, "firefly-memory db upgrade", "initialize(migrate=True)"
            )
        await despite_a_loss(lambda: connection.all_of(conversations.aggregate(_placed())))
    if migrate:
        with suppress(DuplicateKeyError):  # another process has noted it at the same moment
            await connection.result_of(
                connection[VERSION].update_one(_THIS, {"$set": {"revision": REVISION}}, upsert=True)
            )

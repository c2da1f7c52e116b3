"""Pauses between the tries of a write to a conversation."""

from __future__ import annotations

from firefly_memory.conversations.mongodb.damage import check_findable
from firefly_memory.conversations.mongodb.documents import CONVERSATIONS
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.identifiers import original_name


def tries_of(operation: str, conversation_id: str, timeout: float) -> Tries:
    async def check(connection: Connection) -> None:
        there = connection[CONVERSATIONS].find_one({"_id": conversation_id}, {"conversation_id": 1})
        check_findable(await connection.result_of(there))

    return Tries(operation, f"conversation {original_name(conversation_id)!r}", timeout, check)

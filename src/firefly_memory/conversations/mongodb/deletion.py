"""The deletion of one conversation, and that of all: documents first, which makes them disappear, then turns and
flushes.

Up to ``MOST_AT_ONCE`` conversations go in one transaction. More of them, or those of a standalone server, go in steps,
each of which takes whole conversations. A turn or a flush without its conversation is seen by nobody; whatever is left
of those goes with the next call.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

from firefly_memory.conversations.log import Head
from firefly_memory.conversations.mongodb import documents, queries
from firefly_memory.conversations.mongodb.documents import CONVERSATIONS, FLUSHES
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import despite_a_loss
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.entries.scopes import FACTS_OF_CONVERSATIONS
from firefly_memory.tombstones.log import Identity

MOST_AT_ONCE = 10_000

_PARTS_AT_ONCE = 5_000
_IDS_AT_ONCE = 1_000
_OF_LIVES = (CONVERSATIONS, FLUSHES)
_FACTS: Document = {"$regex": f"^{re.escape(FACTS_OF_CONVERSATIONS)}"}  # a prefix, so the index finds them
_CONVERSATIONS: Document = {"place": {"$exists": True}}  # turns have none


async def delete_conversation(
    connection: Connection,
    conversation_id: str,
    facts: str | None,
    seen: Head | None,
    in_transaction: InTransaction | None,
) -> bool:
    """Delete the document of a conversation, and its facts. With ``seen``, only as long as nobody has appended."""
    if seen is not None:
        return await _delete_unchanged(connection, conversation_id, facts, seen, in_transaction)
    if facts is not None:  # first: where it breaks off, the conversation is there to be deleted again
        await connection.result_of(connection.entries.delete_many({"namespace": facts}))
    await connection.result_of(connection[CONVERSATIONS].delete_one(documents.itself(conversation_id)))
    return True


async def _delete_unchanged(
    connection: Connection, conversation_id: str, facts: str | None, seen: Head, in_transaction: InTransaction | None
) -> bool:
    """First mark the conversation, then look: an append inserts its turn before it takes the mark away. So either the
    turn is there already, or the mark is gone when the conversation is to be deleted."""
    conversations, mark = connection[CONVERSATIONS], documents.doomed()
    itself = documents.itself(conversation_id)
    await connection.result_of(conversations.update_one(itself, {"$set": mark}))
    found = await connection.all_of(conversations.aggregate(queries.conversation(conversation_id)))
    there = documents.head(found[0]) if found else None
    if there is None or (there.turns, there.created_at) != (seen.turns, seen.created_at):
        return False
    # A list may have the turn of an append that is under way, and not yet its instant.
    active = documents.active_at(conversation_id, seen.updated_at)
    unchanged = {**itself, **mark, **active, "life": found[0]["life"]}

    async def delete(session: Any) -> bool:
        result = await connection.result_of(conversations.delete_one(unchanged, session=session))
        if not result.deleted_count:
            return False
        if facts is not None:  # last: the facts of a conversation that stays are not lost
            await connection.result_of(connection.entries.delete_many({"namespace": facts}, session=session))
        if session is not None and seen.turns <= _PARTS_AT_ONCE:  # then nothing is left if this process dies
            life = documents.life_of(found[0])
            for name in _OF_LIVES:
                await connection.result_of(connection[name].delete_many(life, session=session))
        return True

    return await (delete(None) if in_transaction is None else in_transaction(connection, delete))


class ConversationDeletion:
    """Of every conversation, and of the entries of a namespace, if one is given."""

    def __init__(self, connection: Connection, namespace: str | None) -> None:
        self._connection = connection
        self._namespace = namespace

    async def at_once(self, in_transaction: InTransaction) -> bool:
        """Delete all of them, but not yet their turns, if they are not too many; whether that was done."""
        connection = self._connection
        counting = connection[CONVERSATIONS].count_documents(_CONVERSATIONS, limit=MOST_AT_ONCE + 1)
        if await connection.result_of(counting) > MOST_AT_ONCE:
            return False
        await in_transaction(connection, self._delete)
        return True

    async def go_on(self, *, are_gone: bool) -> None:
        """Delete all of them step by step, if they are not gone, and then their turns. Doing it twice does no harm."""
        if not are_gone:
            await self._delete_in_steps()
            await despite_a_loss(lambda: self._delete(None))
        for name in _OF_LIVES:
            await self._delete_parts(name)

    async def _delete(self, session: Any) -> None:
        connection = self._connection
        await connection.result_of(connection[CONVERSATIONS].delete_many(_CONVERSATIONS, session=session))
        for namespace in (_FACTS, *([] if self._namespace is None else [self._namespace])):
            await connection.result_of(connection.entries.delete_many({"namespace": namespace}, session=session))

    async def _delete_in_steps(self) -> None:
        conversations, after, is_full = self._connection[CONVERSATIONS], "", True
        while is_full:
            page = conversations.find({"_id": {"$gt": after}}, {"_id": 1}).sort("_id").limit(MOST_AT_ONCE)
            ids = [each["_id"] for each in await self._connection.all_of(page)]
            is_full = len(ids) == MOST_AT_ONCE  # not for as long as others make new ones
            if ids:
                after = ids[-1]
                await self._delete_these(ids)

    async def _delete_parts(self, name: str) -> None:
        """All turns or all flushes whose conversation is gone."""
        connection, parts, is_full = self._connection, self._connection[name], True
        after: Document = {"$type": "object"}  # which the id of a turn or a flush is
        while is_full:
            some = parts.find({"_id": after}, {"conversation_id": 1, "life": 1})
            found = await connection.all_of(some.sort("_id").limit(_PARTS_AT_ONCE))
            is_full = len(found) == _PARTS_AT_ONCE
            # A life is named before it has turns: if it is not now, it never will be again.
            ids = {each.get("conversation_id") for each in found if isinstance(each.get("conversation_id"), str)}
            these = {"_id": {"$in": list(ids)}}
            there = await connection.all_of(connection[CONVERSATIONS].find(these, documents.NAMES_OF_LIVES))
            lives = documents.lives(there)
            over = [each["_id"] for each in found if is_over(each.get("life"), lives)]
            if over:
                await self._delete_these(over, name)
            if found:
                after = {"$gt": found[-1]["_id"]}

    async def _delete_these(self, ids: list[Any], name: str = CONVERSATIONS) -> None:
        connection, these = self._connection, {"_id": {"$in": ids}}
        await despite_a_loss(lambda: connection.result_of(connection[name].delete_many(these)))


async def delete_left_behind(connection: Connection, identities: Sequence[Identity]) -> None:
    """Delete what nobody sees of erased people and conversations: conversations that somebody has only begun to make,
    and turns without their conversation."""
    conversations = connection[CONVERSATIONS]
    for owner in (name for kind, name in identities if kind == "owner"):
        begun = {"owner": owner, "settled": {"$exists": False}}
        for each in await connection.all_of(conversations.find(begun, {"_id": 1, "life": 1})):
            this = {**documents.itself(each["_id"]), **documents.unsettled(each)}
            await despite_a_loss(partial(_delete_one, connection, this))
            await delete_parts_of(connection, each["_id"])
    ids = [name for kind, name in identities if kind == "conversation"]
    for first in range(0, len(ids), _IDS_AT_ONCE):
        some = {"conversation_id": {"$in": ids[first : first + _IDS_AT_ONCE]}}
        for name in _OF_LIVES:
            for each in await connection.result_of(connection[name].distinct("conversation_id", some)):
                await delete_parts_of(connection, each)


async def _delete_one(connection: Connection, this: Document) -> None:
    await connection.result_of(connection[CONVERSATIONS].delete_one(this))


async def delete_parts_of(connection: Connection, conversation_id: str) -> None:
    """Delete the turns and the flushes that deletions and writes of this conversation have left behind."""
    of_id = {"conversation_id": conversation_id}
    found = {name: await connection.result_of(connection[name].distinct("life", of_id)) for name in _OF_LIVES}
    # A life is named before it has turns: if it is not now, it never will be again.
    itself = connection[CONVERSATIONS].find(documents.itself(conversation_id), documents.NAMES_OF_LIVES)
    named = documents.lives(await connection.all_of(itself))
    for name, lives in found.items():
        over = [life for life in lives if is_over(life, named)]
        if over:
            await despite_a_loss(partial(_delete_many, connection[name], {**of_id, "life": {"$in": over}}, connection))


async def _delete_many(collection: Any, dead: Document, connection: Connection) -> None:
    await connection.result_of(collection.delete_many(dead))


def is_over(life: Any, lives: set[Any]) -> bool:
    """Whether the life of a turn is none of ``lives``; that of a damaged turn may be anything."""
    return not isinstance(life, Hashable) or life not in lives

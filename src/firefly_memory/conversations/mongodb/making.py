"""How conversations come into being: empty, by an append, or as forks.

A writer that makes a conversation passes the gate of its id and its owner, before the step that makes it visible and
after that step. So does a writer that appends to a conversation that is not settled. An append to a settled
conversation goes by its life.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from firefly_memory.conversations.log import identities_of
from firefly_memory.conversations.mongodb import documents, queries
from firefly_memory.conversations.mongodb.damage import lacks_turns
from firefly_memory.conversations.mongodb.documents import ALL, CONVERSATIONS, Pipeline
from firefly_memory.conversations.mongodb.flushing import copy_flushes, delete_flushes
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.errors import despite_a_loss, duplicate_in
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.errors import ErasedError
from firefly_memory.tombstones.mongodb.gates import Gate, Write, gate_of


async def gate_of_new(connection: Connection, operation: str, conversation_id: str, owner: str | None) -> Gate:
    """What a writer that makes a conversation has to pass."""
    return await gate_of(connection, ALL, operation, identities_of(conversation_id, owner))


async def find_all(connection: Connection, pipeline: Pipeline) -> list[dict[str, Any]]:
    return await connection.all_of(connection[CONVERSATIONS].aggregate(pipeline, batchSize=IN_ONE_BATCH))


async def find_conversation(connection: Connection, conversation_id: str) -> dict[str, Any] | None:
    found = await find_all(connection, queries.conversation(conversation_id))
    return found[0] if found else None


async def update(connection: Connection, conversation_id: str, condition: Document, change: Document) -> bool:
    """Change the document of a conversation, if the condition holds; whether it did."""
    wanted = {**documents.itself(conversation_id), **condition}
    result = await connection.result_of(connection[CONVERSATIONS].update_one(wanted, change))
    return int(result.matched_count) == 1


async def delete_life(connection: Connection, conversation_id: str, life: Any) -> None:
    """Delete everything in a life of a conversation, which was refused because it is erased."""
    everything = {"conversation_id": conversation_id, "life": life}
    await despite_a_loss(lambda: connection.result_of(connection[CONVERSATIONS].delete_many(everything)))
    await delete_flushes(connection, conversation_id, life)


class Maker:
    """Makes one conversation."""

    def __init__(self, connection: Connection, tries: Tries, gate: Gate) -> None:
        self._connection = connection
        self._tries = tries
        self._gate = gate

    async def create(self, new: Document) -> bool:
        """Make an empty conversation; ``False`` if it is there."""
        try:
            return await self._make(new, documents.replaced_by(new))
        except ErasedError:
            await self._delete(new)
            raise

    async def _make(self, new: Document, change: Document) -> bool:
        """Insert the document of a conversation, or change one that is not there yet; ``False`` if it is there."""
        while True:
            if await self._is_done(documents.inserting(new)):
                return True
            there = await find_conversation(self._connection, new["_id"])
            if there is not None:
                if documents.head(there) is not None:
                    return False
                # By an append whose turn is still to come, or a fork whose turns are: its writer sees that, and looks.
                wanted = {**documents.itself(new["_id"]), **documents.unsettled(there)}
                if await self._is_done(UpdateOne(wanted, change)):
                    return True
            await self._tries.pause(self._connection)

    async def _is_done(self, write: Write) -> bool:
        """Whether ``write`` has inserted or found its document."""
        try:
            result = await self._gate.write([write])
        except BulkWriteError as exc:
            if duplicate_in(exc) is None:
                raise
            return False
        return int(result.upserted_count + result.matched_count) == 1

    async def _delete(self, made: Document) -> None:
        """Delete a conversation that must not have been made, and its turns."""
        await delete_life(self._connection, made["_id"], made["life"])

    async def copy(self, there: Document, fork: Document, count: int) -> bool:
        """Make the conversation ``fork`` with the first ``count`` turns of the conversation that is ``there``;
        ``False`` if the id is taken, or somebody deleted one of the two meanwhile."""
        connection = self._connection
        try:
            if not await self._make(documents.forking(fork), documents.also_forking(fork)):
                return False
            # Where nobody sees them: they appear with the one update that makes their life the conversation's.
            copy = documents.copied_turns(there, fork, count)
            await despite_a_loss(lambda: connection.all_of(connection[CONVERSATIONS].aggregate(copy)))
            wanted = {**documents.life_of(fork), "turn_id": {"$lt": count}}
            copied = int(await connection.result_of(connection[CONVERSATIONS].count_documents(wanted)))
            copied += documents.first_copied(fork, count)
            await copy_flushes(connection, there, fork)
            begun = {**documents.itself(fork["_id"]), **documents.is_forking(fork)}
            if copied == count and await self._is_done(UpdateOne(begun, documents.replaced_by(fork))):
                return True
        except ErasedError:
            await self._delete(fork)
            await self._give_up(fork)
            raise
        except Exception:
            with suppress(Exception):  # the first error is the one to raise
                await self._give_up(fork)
            raise
        if await self._give_up(fork):  # nobody deleted what was copied
            now = await find_conversation(connection, there["_id"])
            if now is not None and now["life"] == there["life"]:
                raise lacks_turns(there["_id"], count, copied)
        return False

    async def _give_up(self, fork: Document) -> bool:
        """Delete what there is of a fork that was not made; whether it could still have been made."""
        connection, conversations = self._connection, self._connection[CONVERSATIONS]
        itself = documents.itself(fork["_id"])
        still = await update(connection, fork["_id"], documents.is_forking(fork), documents.no_longer_forking(fork))
        there = await connection.result_of(conversations.find_one(itself, documents.NAMES_OF_LIVES))
        if there is None or there["life"] != fork["life"]:  # else it was made, and only the answer was lost
            life = documents.life_of(fork)
            await despite_a_loss(lambda: connection.result_of(conversations.delete_many(life)))
            await delete_flushes(connection, fork["_id"], fork["life"])
        nobody_is = {**itself, "forks": [], "settled": {"$exists": False}}
        await despite_a_loss(lambda: connection.result_of(conversations.delete_one(nobody_is)))
        return still

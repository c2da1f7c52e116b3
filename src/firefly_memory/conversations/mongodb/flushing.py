"""Flushes in MongoDB: turns leave the window, and come back into it, without transactions.

The document of a flush comes first. Then one update of the conversation makes it count, if the claim still holds. Turns
that are dropped lose their contents last. Until then, and if the process dies before, the number of dropped turns hides
them; the next flush that drops turns goes on from ``emptied_turns``. A transaction would do little more, and its locks
would outlive a killed client: appends would wait for them.

The documents of dropped turns stay, without contents: a writer that remembers an older end of the conversation would
else append under the number of one of them.

Nobody reads a flush that no conversation names. It has the life of its conversation, and goes with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from firefly_memory.codec import DAMAGE
from firefly_memory.conversations.log import Flush, Flushed
from firefly_memory.conversations.mongodb import documents
from firefly_memory.conversations.mongodb.damage import damaged
from firefly_memory.conversations.mongodb.documents import CONVERSATIONS, FLUSHES, Pipeline, dropped_of
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import despite_a_loss
from firefly_memory.databases.mongodb.fields import Document, split, text, text_or_none, whole

_OF_LIFE = {"life": 1}
_HIDDEN = {"life": 1, "dropped_turns": 1, "emptied_turns": 1}


async def flush_turns(connection: Connection, conversation_id: str, flush: Flush, after: Flushed) -> bool:
    there = await _find_life(connection, conversation_id)
    if there is None:
        return False
    record = flush_document(conversation_id, there["life"], flush)
    wanted = _this_flush(conversation_id, there["life"], flush.flush_id)
    written = await connection.result_of(connection[FLUSHES].replace_one(wanted, record, upsert=True))
    held = {**documents.itself(conversation_id), "life": there["life"], "claim": flush.flush_id}
    is_done = await _change_head(connection, held, {**after._asdict(), "flush_id": flush.flush_id})
    if not is_done and written.upserted_id is not None:
        await despite_a_loss(lambda: connection.result_of(connection[FLUSHES].delete_one(wanted)))
    if is_done and after.dropped_turns:
        with suppress(Exception):  # they are hidden, and the flush is done
            await empty_dropped_turns(connection, conversation_id)
    return is_done


async def find_flush(connection: Connection, conversation_id: str, flush_id: str) -> Flush | None:
    there = await _find_life(connection, conversation_id)
    if there is None:
        return None
    wanted = _this_flush(conversation_id, there["life"], flush_id)
    found = await connection.result_of(connection[FLUSHES].find_one(wanted))
    return None if found is None else flush_of(found)


async def restore_turns(connection: Connection, conversation_id: str, newest: str, flush: Flush) -> bool:
    is_stored = {"dropped_turns": {"$not": {"$gt": flush.turns_before}}}  # also if there is no such field
    wanted = {**documents.itself(conversation_id), "flush_id": newest, **is_stored}
    before = {
        "evicted_turns": flush.turns_before,
        "evicted_tokens": flush.tokens_before,
        "summary": flush.summary_before,
        "flush_id": flush.previous,
    }
    return await _change_head(connection, wanted, before)


async def empty_dropped_turns(connection: Connection, conversation_id: str) -> None:
    """Delete the contents of the turns that the conversation hides."""
    itself, conversations = documents.itself(conversation_id), connection[CONVERSATIONS]
    there = await connection.result_of(conversations.find_one(itself, _HIDDEN))
    first, dropped = (0, 0) if there is None else (there.get("emptied_turns", 0), dropped_of(there))
    if first < dropped:
        hidden = {**documents.life_of(there), "turn_id": {"$gte": first, "$lt": dropped}}
        await despite_a_loss(lambda: connection.result_of(conversations.update_many(hidden, documents.EMPTIED)))
        done = {"$max": {"emptied_turns": dropped}}
        await connection.result_of(conversations.update_one({**itself, "life": there["life"]}, done))


async def delete_flushes(connection: Connection, conversation_id: str, life: Any) -> None:
    of_life = {"conversation_id": conversation_id, "life": life}
    await despite_a_loss(lambda: connection.result_of(connection[FLUSHES].delete_many(of_life)))


async def copy_flushes(connection: Connection, there: Mapping[str, Any], fork: Mapping[str, Any]) -> None:
    """Copy the flushes of a conversation into the life of its fork, if the fork has any."""
    if fork.get("flush_id") is not None:
        copy = _copied_flushes(there, fork)
        await despite_a_loss(lambda: connection.all_of(connection[FLUSHES].aggregate(copy)))


def _copied_flushes(there: Mapping[str, Any], fork: Mapping[str, Any]) -> Pipeline:
    own_id = {"life": {"$literal": fork["life"]}, "flush": "$_id.flush"}
    theirs = {"_id": own_id, "conversation_id": {"$literal": fork["_id"]}, "life": fork["life"]}
    into: Document = {"$merge": {"into": FLUSHES, "whenMatched": "keepExisting"}}
    return [{"$match": documents.life_of(there)}, {"$set": theirs}, into]


async def _find_life(connection: Connection, conversation_id: str) -> Document | None:
    there = connection[CONVERSATIONS].find_one(documents.itself(conversation_id), _OF_LIFE)
    found: Document | None = await connection.result_of(there)
    return found


async def _change_head(connection: Connection, wanted: Document, state: Document) -> bool:
    """Give a conversation a new state, and end its claim."""
    change = {"$set": {**state, "claim": None, "claimed_until": None}}
    result = await connection.result_of(connection[CONVERSATIONS].update_one(wanted, change))
    return int(result.matched_count) == 1


def _this_flush(conversation_id: str, life: Any, flush_id: str) -> Document:
    """Where the document of a flush is, in a sharded collection as well."""
    return {"_id": {"life": life, "flush": flush_id}, "conversation_id": conversation_id}


def flush_document(conversation_id: str, life: Any, flush: Flush) -> Document:
    fields = flush._asdict()
    date, microseconds = split(fields.pop("created_at"))
    del fields["flush_id"]
    made_at = {"created_at": date, **({"created_at_us": microseconds} if microseconds else {})}
    return {**_this_flush(conversation_id, life, flush.flush_id), "life": life, **fields, **made_at}


def flush_of(document: Mapping[str, Any]) -> Flush:
    try:
        return Flush(
            text(document["_id"], "flush"),
            text_or_none(document, "previous"),
            text(document, "strategy"),
            whole(document, "turns"),
            whole(document, "turns_before"),
            whole(document, "tokens_before"),
            text_or_none(document, "summary_before"),
            documents.appended_at(document),
        )
    except DAMAGE as exc:
        raise damaged(document, exc) from exc

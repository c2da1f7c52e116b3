"""Conversations as documents, and the queries that find them.

A conversation is one document, and one more for each turn, which alone have a ``turn_id``. They share a collection, so
that one command can insert a turn and then see whether the conversation is still there. A turn carries its number and
the sum of the tokens before it, so the newest turn is all there is to count: the conversation's own document holds what
the turns cannot tell, and an append does not change it. To insert a turn is to append it, and the unique index on its
number lets one of several writers have it.

``life`` is what belongs together: a conversation that is deleted and made again has another one. So whatever a writer
or a deletion leaves of an earlier life when it dies half-way is seen by nobody and in nobody's way.

A conversation that an append makes is there once it has a turn, and is then ``settled``. Until then, whoever makes it
under its name, or by a fork, may give it another life.

A life is named before it has turns: by its conversation's ``life``, or among the ``forks`` of one that is not settled.
These are copies in the making, seen by nobody; one of them may become the conversation's life. A life that is named no
longer never is again, so a deletion that finds turns, and then finds their life not named, may delete them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bson import ObjectId
from pymongo import ASCENDING, IndexModel, ReplaceOne, UpdateOne

from firefly_memory.codec import DAMAGE
from firefly_memory.conversations.log import Head, Order, StoredTurn
from firefly_memory.conversations.mongodb.damage import damaged
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.fields import Document, split, text, text_or_none, whole
from firefly_memory.entries.mongodb.documents import document_id, exact
from firefly_memory.entries.record import Position

Pipeline = list[Document]

CONVERSATIONS = "memory_conversations"
FLUSHES = "memory_flushes"
"""A collection of its own: earlier versions take whatever has a ``life`` in the other one for a turn."""

MOMENTS: dict[Order, str] = {"created": "place", "updated": "active"}
"""The field that each order of the list goes by: an instant and the conversation's id."""

_LIFE = [("conversation_id", ASCENDING), ("life", ASCENDING)]
CONVERSATION_INDEXES = (
    *(IndexModel([(field, ASCENDING)], sparse=True) for field in MOMENTS.values()),  # turns have none of them
    *(
        IndexModel([("owner", ASCENDING), (field, ASCENDING)], partialFilterExpression={"owner": {"$exists": True}})
        for field in MOMENTS.values()
    ),
    IndexModel([*_LIFE, ("turn_id", ASCENDING)], unique=True),
    IndexModel([*_LIFE, ("tokens_before", ASCENDING)]),
    IndexModel(
        [*_LIFE, ("idempotency_key", ASCENDING)],
        unique=True,
        partialFilterExpression={"idempotency_key": {"$exists": True}},
    ),
)

ALL = Collection(
    CONVERSATIONS,
    CONVERSATION_INDEXES,
    refused_by="conversation_id",
    forget="firefly_memory.conversations.mongodb.deletion:delete_left_behind",
)
OF_FLUSHES = Collection(FLUSHES, (IndexModel([*_LIFE, ("_id", ASCENDING)], unique=True),))
COLLECTIONS = (ALL, OF_FLUSHES)

_LARGEST_SUM = 2**63 - 1

_OF_FLUSHED = ("dropped_turns", "emptied_turns", "flush_id", "marks")
"""The fields that a conversation has only if a flush gave it any."""

EMPTIED: Document = {
    "$set": {"user_prompt": "", "assistant_response": "", "messages": None, "messages_format": None, "metadata": {}},
    "$unset": {"idempotency_key": "", "input_tokens": ""},
}
"""The update that takes the contents of a turn away."""


class Tail(NamedTuple):
    """Where the next turn of a conversation goes: behind so many turns of so many tokens."""

    life: ObjectId | None
    """``None`` as long as there is no such conversation."""
    turns: int
    tokens: int
    evicted_tokens: int
    owner: str | None = None
    """That of this life."""
    is_settled: bool = False
    """Whether the conversation was there when it was seen: then it was made by somebody who was not refused."""
    evicted_turns: int = 0

    def refuses(self, owner: str | None) -> bool:
        """Whether there is a conversation, and ``owner`` is given and is not its owner."""
        return self.life is not None and owner not in (None, self.owner)


NOWHERE = Tail(None, 0, 0, 0)


def itself(conversation_id: str) -> Document:
    """Where the document of a conversation is, in a sharded collection as well."""
    return {"_id": conversation_id, "conversation_id": conversation_id}


def new_conversation(conversation_id: str, now: datetime, owner: str | None = None) -> Document:
    nothing = {"evicted_turns": 0, "evicted_tokens": 0, "summary": None, "claim": None, "claimed_until": None}
    made_at = {"created_at": split(now)[0], "place": document_id(Position(now, conversation_id))}
    owned = {} if owner is None else {"owner": owner}
    active = active_at(conversation_id, now)
    return {**itself(conversation_id), "life": ObjectId(), **made_at, **active, **nothing, **owned}


def active_at(conversation_id: str, moment: datetime) -> Document:
    """The place of a conversation in the list by the newest turn, which was made at ``moment``."""
    return {"active": document_id(Position(moment, conversation_id))}


def settled(conversation: Document) -> Document:
    """It is there, with turns or without."""
    return {**conversation, "settled": True}


def unsettled(conversation: Document) -> Document:
    """What has to hold for the document of a conversation that is not there yet to be replaced."""
    return {"life": conversation["life"], "settled": {"$exists": False}}


def forking(fork: Mapping[str, Any]) -> Document:
    """The document that stands where a fork is being made, in a life of its own, and names that of ``fork``."""
    begun = {name: value for name, value in fork.items() if name not in ("settled", *_OF_FLUSHED)}
    nothing = {"evicted_turns": 0, "evicted_tokens": 0, "summary": None}
    return {**begun, "life": ObjectId(), **nothing, "forks": [fork["life"]]}


def life_of(conversation: Mapping[str, Any]) -> Document:
    """A filter for all documents in the life of a conversation."""
    return {"conversation_id": conversation["_id"], "life": conversation["life"]}


def also_forking(fork: Mapping[str, Any]) -> Document:
    """The update that names the life of ``fork`` in a conversation that is not settled."""
    return {"$addToSet": {"forks": fork["life"]}}


def no_longer_forking(fork: Mapping[str, Any]) -> Document:
    return {"$pull": {"forks": fork["life"]}}


def is_forking(fork: Mapping[str, Any]) -> Document:
    """What holds as long as the life of ``fork`` may become that of the conversation."""
    return {"forks": fork["life"], "settled": {"$exists": False}}


def replaced_by(conversation: Mapping[str, Any]) -> Document:
    """The update that puts a conversation in the place of one that is not settled."""
    fields = {name: value for name, value in conversation.items() if name != "_id"}
    absent = [name for name in ("forks", "owner", *_OF_FLUSHED) if name not in fields]
    return {"$set": fields, "$unset": dict.fromkeys(absent, "")}


NAMES_OF_LIVES = {"life": 1, "forks": 1, "settled": 1}


def lives(conversations: Iterable[Mapping[str, Any]]) -> set[Any]:
    """The lives that these documents name; all others of these conversations are over."""
    named = set()
    for document in conversations:
        named.add(document.get("life"))
        if "settled" not in document:
            named.update(document.get("forks", ()))
    return named


def turn_key(append_id: Any) -> Document:
    """The ``_id`` of a turn, which is no conversation's: those are texts."""
    return {"turn": append_id}


def new_turns(conversation_id: str, drafts: Iterable[StoredTurn], tail: Tail) -> list[Document]:
    documents = []
    life, turn_id, tokens_before = tail.life, tail.turns, tail.tokens
    for draft in drafts:
        date, microseconds = split(draft.created_at)
        document = {
            "_id": turn_key(draft.append_id),
            "conversation_id": conversation_id,
            "life": life,
            "turn_id": turn_id,
            "tokens": draft.tokens,
            "tokens_before": tokens_before,
            "user_prompt": draft.user_prompt,
            "assistant_response": draft.assistant_response,
            "messages": draft.messages,
            "messages_format": draft.messages_format,
            "metadata": draft.metadata,
            "created_at": date,
        }
        if microseconds:
            document["created_at_us"] = microseconds
        if draft.idempotency_key is not None:
            document["idempotency_key"] = draft.idempotency_key
        if draft.input_tokens is not None:
            document["input_tokens"] = draft.input_tokens
        documents.append(document)
        turn_id += 1
        tokens_before += draft.tokens
    if tokens_before > _LARGEST_SUM:
        raise damaged({"_id": conversation_id}, OverflowError("the sum of its tokens is beyond 64 bits"))
    return documents


def doomed() -> Document:
    """The mark of a conversation that is to be deleted if nobody appends. Each append takes it away."""
    return {"doomed": ObjectId()}


def settling(conversation_id: str, life: Any, change: Document) -> tuple[Document, Document]:
    """An update that matches a conversation only in that life, and settles it."""
    return {**itself(conversation_id), "life": life}, {"$set": settled({}), "$unset": {"doomed": ""}, **change}


def known_to_be_settled(conversation_id: str, life: Any, moment: datetime) -> tuple[Document, Document]:
    """:func:`settling` after a turn that was appended at ``moment``, and perhaps other turns since."""
    return settling(conversation_id, life, {"$max": active_at(conversation_id, moment)})


def inserting(document: Mapping[str, Any]) -> ReplaceOne[Any]:
    """An update that inserts a document, and never changes one."""
    nobody = {"conversation_id": document["conversation_id"], "turn_id": {"$lt": 0}}
    return ReplaceOne({"_id": document["_id"], **nobody}, document, upsert=True)


def appended_now(conversation_id: str, life: ObjectId, moment: datetime) -> UpdateOne:
    """An update that matches the conversation if it is in that life, after a turn was inserted that was made at
    ``moment``. No command inserts and looks, but one updates: documents that are not there yet, and this one."""
    settle = {"$set": settled(active_at(conversation_id, moment))}
    return UpdateOne(*settling(conversation_id, life, settle))


def fork_of(source: Head, fork_id: str, turns: int, now: datetime, newest: StoredTurn | None = None) -> Document:
    """The document of a conversation with the first ``turns`` turns of another one, of which the last is ``newest``."""
    fork = settled(new_conversation(fork_id, now, source.owner))
    if newest is not None:
        fork |= active_at(fork_id, newest.created_at)
    if turns and source.dropped_turns:
        fork["dropped_turns"] = source.dropped_turns
    if source.evicted_turns <= turns:
        fork |= {name: getattr(source, name) for name in ("evicted_turns", "evicted_tokens", "summary")}
        fork |= {name: getattr(source, name) for name in ("flush_id", "marks") if getattr(source, name) is not None}
    return fork


def first_copied(fork: Mapping[str, Any], turns: int) -> int:
    """The number of the first turn that a fork needs: the first one that was not dropped, or else the newest one."""
    return max(min(dropped_of(fork), turns - 1), 0)


def copied_turns(there: Mapping[str, Any], fork: Mapping[str, Any], turns: int) -> Pipeline:
    """Copies the first ``turns`` turns into the life of ``fork``, on the server."""
    mine = {**life_of(there), "turn_id": {"$gte": first_copied(fork, turns), "$lt": turns}}
    # An id of its own for each: that of its turn, in this life.
    own_id = turn_key({"$concat": [str(fork["life"]), ":", "$_id.turn"]})
    theirs = {"_id": own_id, "conversation_id": {"$literal": fork["_id"]}, "life": fork["life"]}
    return [{"$match": mine}, {"$set": theirs}, {"$merge": {"into": CONVERSATIONS, "whenMatched": "keepExisting"}}]


def claimed(claim: str, until: datetime) -> Document:
    return {"claim": claim, "claimed_until": split(until)[0]}  # to the millisecond will do


def unclaimed(now: datetime, until: datetime) -> Document:
    """No claim, or one that is over, or one from a time when a clock was far ahead."""
    over, beyond = {"$lte": split(now)[0]}, {"$gt": split(until)[0] + (until - now)}
    return {"$or": [{"claim": None}, {"claimed_until": over}, {"claimed_until": beyond}]}


# What the documents say.


def tail(document: Mapping[str, Any]) -> Tail:
    try:
        life, newest = document["life"], document.get("newest")
        evicted, evicted_turns = whole(document, "evicted_tokens"), whole(document, "evicted_turns")
        if not isinstance(life, ObjectId):
            raise TypeError(f"its life is {type(life).__name__}, not an ObjectId")
        owner, is_settled = _optional(document, "owner"), "settled" in document
        if newest is None:
            return Tail(life, 0, 0, evicted, owner, is_settled, evicted_turns)
        tokens = whole(newest, "tokens_before") + whole(newest, "tokens")
        if tokens > _LARGEST_SUM:
            raise OverflowError("the sum of its tokens is beyond 64 bits")
        return Tail(life, whole(newest, "turn_id") + 1, tokens, evicted, owner, is_settled, evicted_turns)
    except DAMAGE as exc:
        raise damaged(document, exc) from exc


def head(document: Mapping[str, Any]) -> Head | None:
    """``None`` for a conversation that is not there yet."""
    newest = document.get("newest")
    if newest is None and not document.get("settled"):
        return None
    try:
        updated_at = _made_at(document) if newest is None else appended_at(newest)
    except DAMAGE as exc:
        raise damaged(document, exc) from exc
    end = tail(document)
    try:
        return Head(
            document["_id"],
            end.turns,
            end.tokens,
            end.evicted_turns,
            end.evicted_tokens,
            _optional(document, "summary"),
            _made_at(document),
            updated_at,
            end.owner,
            dropped_of(document),
            _optional(document, "flush_id"),
            _optional(document, "marks"),
        )
    except DAMAGE as exc:
        raise damaged(document, exc) from exc


def turn(document: Mapping[str, Any]) -> StoredTurn:
    try:
        return StoredTurn(
            whole(document, "turn_id"),
            whole(document, "tokens"),
            text(document, "user_prompt"),
            text(document, "assistant_response"),
            text_or_none(document, "messages"),
            text_or_none(document, "messages_format"),
            {**document["metadata"]},
            _optional(document, "idempotency_key"),
            document["_id"]["turn"],
            appended_at(document),
            None if document.get("input_tokens") is None else whole(document, "input_tokens"),
        )
    except DAMAGE as exc:
        raise damaged(document, exc) from exc


def dropped_of(document: Mapping[str, Any]) -> int:
    """How many turns a conversation hides, from the first on."""
    return 0 if document.get("dropped_turns") is None else whole(document, "dropped_turns")


def _optional(document: Mapping[str, Any], name: str) -> str | None:
    return None if document.get(name) is None else text(document, name)


def _made_at(document: Mapping[str, Any]) -> datetime:
    return exact(document["created_at"], document["place"])


def appended_at(document: Mapping[str, Any]) -> datetime:
    date: datetime = document["created_at"]
    return date + timedelta(microseconds=document.get("created_at_us", 0))

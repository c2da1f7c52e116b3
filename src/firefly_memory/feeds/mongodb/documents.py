"""Feeds and their messages as documents.

A feed is one document, its *head*, and one more for each message, which alone have a ``number``. They share a
collection, so that one command inserts a message and then sees whether the feed is still there. To insert a message is
to append it, and the unique index on its number lets one of several writers have it. So the newest message is all there
is to count, unless it is deleted: ``dropped`` of the head says how many messages, from the first on, are hidden.

``life`` is what belongs together: a feed that is deleted and made again has another one. So whatever a writer or a
deletion leaves of an earlier life when it dies half-way is seen by nobody and in nobody's way.

A feed that an append makes is there once it has a message, and is then ``settled``. Until then, it may get another
life.

``doomed`` is the mark of a deletion that looks whether anybody appends, and ``together`` that of the last transaction.

A message has its number once more in a field for each of its kinds, ``conversation``, ``global`` and ``agents``: then
no query but that of the kind's index can sort by it, and the planner has no choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bson import ObjectId
from pymongo import ASCENDING, IndexModel, ReplaceOne

from firefly_memory.codec import DAMAGE
from firefly_memory.codec import damaged as damaged_at
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.fields import Document, split, text, whole
from firefly_memory.errors import CorruptDataError
from firefly_memory.feeds.log import MOST_MESSAGES, Feed, NewMessage, StoredMessage, Which
from firefly_memory.identifiers import original_name

FEEDS = "memory_feeds"

LIFE = [("location", ASCENDING), ("life", ASCENDING)]
BY_NUMBER = [*LIFE, ("number", ASCENDING)]
BY_KIND: dict[Which, list[tuple[str, int]]] = {
    "conversation": [*LIFE, ("conversation", ASCENDING)],
    "global": [*LIFE, ("global", ASCENDING)],
    "agents": [*LIFE, ("agent_key", ASCENDING), ("agents", ASCENDING)],
}
OF_OWNER = [("owner", ASCENDING), ("_id", ASCENDING)]


def _where_there_is(field: str) -> Document:
    return {field: {"$exists": True}}


OF_FEEDS = Collection(
    FEEDS,
    (
        IndexModel(BY_NUMBER, unique=True),
        *(IndexModel(keys, partialFilterExpression=_where_there_is(kind)) for kind, keys in BY_KIND.items()),
        IndexModel(OF_OWNER, partialFilterExpression=_where_there_is("owner")),
    ),
    refused_by="location",
    forget="firefly_memory.feeds.mongodb.deletion:delete_left_behind",
)
COLLECTIONS = (OF_FEEDS,)


class Tail(NamedTuple):
    """Where the next message of a feed goes."""

    life: ObjectId | None
    """``None`` as long as there is no such feed."""
    newest: int
    dropped: int
    owner: str | None = None
    """That of this life."""
    is_settled: bool = False
    """Whether the feed was there when it was seen: then it was made by somebody who was not refused."""

    def refuses(self, owner: str | None) -> bool:
        """Whether there is a feed, and ``owner`` is given and is not its owner."""
        return self.life is not None and owner not in (None, self.owner)


NOWHERE = Tail(None, 0, 0)


def itself(location: str) -> Document:
    """Where the head of a feed is, in a sharded collection as well."""
    return {"_id": location, "location": location}


def of_life(location: str, life: Any) -> Document:
    return {"location": location, "life": life}


def new_head(location: str, owner: str | None, now: datetime, dropped: int = 0) -> Document:
    owned = {} if owner is None else {"owner": owner}
    dates = {**_at("created_at", now), **_at("updated_at", now)}
    return {**itself(location), "life": ObjectId(), "dropped": dropped, **dates, **owned}


def new_feed(feed: Feed) -> Document:
    """The head of a feed without messages."""
    head = new_head(feed.location, feed.owner, feed.created_at, feed.dropped)
    return {**head, **_at("updated_at", feed.updated_at), "settled": True}


def message_id(append_id: str) -> Document:
    """The ``_id`` of a message, which is no feed's: those are texts."""
    return {"message": append_id}


def new_messages(location: str, messages: Iterable[NewMessage], tail: Tail) -> list[Document]:
    return [
        {
            "_id": message_id(each.append_id),
            **of_life(location, tail.life),
            "number": number,
            **({} if each.agent_key is None else {"agent_key": each.agent_key, "agents": number}),
            **({"conversation": number} if each.is_conversation else {}),
            **({"global": number} if each.is_global else {}),
            "message": each.message,
            **_at("created_at", each.created_at),
        }
        for number, each in enumerate(messages, tail.newest + 1)
    ]


def inserting(document: Mapping[str, Any]) -> ReplaceOne[Any]:
    """An update that inserts a document, and never changes one."""
    nobody = {"location": document["location"], "number": {"$lt": 0}}
    return ReplaceOne({"_id": document["_id"], **nobody}, document, upsert=True)


def settling(location: str, life: Any, first: int) -> tuple[Document, Document]:
    """An update that matches a feed in that life, if the place of message ``first`` was free, and settles it."""
    unhidden = {"dropped": {"$not": {"$gte": first}}}
    return {**itself(location), "life": life, **unhidden}, {"$set": {"settled": True}, "$unset": {"doomed": ""}}


def changed_by(append_id: str) -> Document:
    """The change of a head by a transaction, which so meets the others that write to this head."""
    return {"together": append_id}


def doomed() -> Document:
    """The mark of a feed that is to be deleted if nobody appends. Each append takes it away."""
    return {"doomed": ObjectId()}


def unsettled(head: Mapping[str, Any]) -> Document:
    """What has to hold for the head of a feed that is not there yet to be replaced."""
    return {**itself(head["_id"]), "life": head["life"], "settled": {"$exists": False}}


def replaced_by(head: Mapping[str, Any]) -> Document:
    """The update that puts a feed in the place of one that is not settled."""
    absent = {} if "owner" in head else {"owner": ""}
    return {"$set": {name: value for name, value in head.items() if name != "_id"}, "$unset": {"doomed": "", **absent}}


def dropping(number: int, updated_at: datetime) -> Document:
    """The update that hides the messages up to a number; the newest one was appended at ``updated_at``."""
    return {"$set": {"dropped": number, **_at("updated_at", updated_at)}}


def _at(name: str, moment: datetime) -> Document:
    date, microseconds = split(moment)
    return {name: date, f"{name}_us": microseconds}


# What the documents say.


def tail(head: Mapping[str, Any], newest: Mapping[str, Any] | None) -> Tail:
    """``newest`` is the newest message, if there is one."""
    try:
        life, dropped, owner = head["life"], whole(head, "dropped"), _text_or_none(head, "owner")
        if not isinstance(life, ObjectId):
            raise TypeError(f"its life is {type(life).__name__}, not an ObjectId")
        number = dropped if newest is None else max(dropped, whole(newest, "number"))
        if number > MOST_MESSAGES:
            raise OverflowError("its messages have reached the highest number")
    except DAMAGE as exc:
        raise damaged(head, exc) from exc
    return Tail(life, number, dropped, owner, "settled" in head)


def feed(head: Mapping[str, Any], newest: Mapping[str, Any] | None) -> Feed | None:
    """``None`` for a feed that is not there yet."""
    if newest is None and "settled" not in head:
        return None
    end = tail(head, newest)
    try:
        is_hidden = newest is None or end.newest == end.dropped
        updated_at = _instant(head, "updated_at") if is_hidden else _instant(newest, "created_at")
        return Feed(head["_id"], end.newest, end.dropped, end.owner, _instant(head, "created_at"), updated_at)
    except DAMAGE as exc:
        raise damaged(head, exc) from exc


def message(document: Mapping[str, Any]) -> StoredMessage:
    try:
        agent_key, content = _text_or_none(document, "agent_key"), text(document, "message")
        return StoredMessage(whole(document, "number"), agent_key, content, _instant(document, "created_at"))
    except DAMAGE as exc:
        raise damaged(document, exc) from exc


def damaged(document: Mapping[str, Any], exc: Exception) -> CorruptDataError:
    """The error for the head of a feed or a message."""
    where = f"feed {original_name(str(document.get('location', document.get('_id'))))!r}"
    if "number" in document:
        where = f"message {document['number']!r} of {where}"
    return damaged_at("reading a feed", where, exc)


def check_findable(head: Mapping[str, Any] | None) -> None:
    """``CorruptDataError`` for a head that is not found, because its two names differ."""
    if head is not None and head.get("location") != head["_id"]:
        raise damaged({"_id": head["_id"]}, ValueError("its location is another one"))


def _instant(document: Any, name: str) -> datetime:
    date: datetime = document[name]
    return date + timedelta(microseconds=whole(document, f"{name}_us"))


def _text_or_none(document: Mapping[str, Any], name: str) -> str | None:
    return None if document.get(name) is None else text(document, name)

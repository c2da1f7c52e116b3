"""People as documents. ``telegram_id``, ``email`` and ``merged_into_id`` are there only if the person has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pymongo import ASCENDING, IndexModel, UpdateOne

from firefly_memory.codec import DAMAGE
from firefly_memory.cursors import Moment
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.fields import Document, dated, instant, instant_or_none, split, whole
from firefly_memory.longterm.person_form import checked_user, damaged_user
from firefly_memory.longterm.rows import USERS, UserRow
from firefly_memory.search.mongodb.index import Keys

WORD: Keys = [("word", ASCENDING)]
STANDS_FOR: Keys = [("stands_for", ASCENDING)]
CANONICAL_ID: Keys = [("canonical_id", ASCENDING)]
IN_ORDER: Keys = [("space", ASCENDING), ("first_seen", ASCENDING), ("first_seen_us", ASCENDING), ("_id", ASCENDING)]

CONTACTS = ("telegram_id", "email")
_OPTIONAL = (*CONTACTS, "merged_into_id")

OF_USERS = Collection(
    USERS,
    (
        IndexModel(WORD, unique=True),
        IndexModel(STANDS_FOR),
        IndexModel(CANONICAL_ID),
        IndexModel(IN_ORDER),
        *(
            IndexModel(
                [("space", ASCENDING), (each, ASCENDING)],
                unique=True,
                partialFilterExpression={each: {"$exists": True}},
            )
            for each in CONTACTS
        ),
    ),
    refused_by="word",
)


def user_document(row: UserRow) -> Document:
    document: Document = {
        "_id": row.id,
        "space": row.space,
        "canonical_id": row.canonical_id,
        "word": row.word,
        "display_name": row.display_name,
        "total_conversations": row.total_conversations,
        **dated("last_conversation_at", row.last_conversation_at),
        "stands_for": row.stands_for,
        "written_by": row.written_by,
        **dated("first_seen", row.first_seen),
        **dated("updated_at", row.updated_at),
    }
    optional = {name: getattr(row, name) for name in _OPTIONAL}
    return {**document, **{name: value for name, value in optional.items() if value is not None}}


def inserting(row: UserRow) -> UpdateOne:
    """The update that makes a person if there is none with the word."""
    document = user_document(row)
    return UpdateOne({"word": document.pop("word")}, {"$setOnInsert": document}, upsert=True)


def replacing(row: UserRow) -> UpdateOne:
    """The update that gives a person who is there the fields of ``row``."""
    document = user_document(row)
    absent = dict.fromkeys((name for name in _OPTIONAL if name not in document), "")
    change: Document = {"$set": {name: value for name, value in document.items() if name != "_id"}}
    return UpdateOne({"_id": row.id, "word": row.word}, {**change, **({"$unset": absent} if absent else {})})


def after(moment: Moment) -> list[Document]:
    """The ranges of :data:`IN_ORDER` after a moment, each a filter."""
    date, microseconds = split(moment.at)
    return [
        {"first_seen": {"$gt": date}},
        {"first_seen": date, "first_seen_us": {"$gt": microseconds}},
        {"first_seen": date, "first_seen_us": microseconds, "_id": {"$gt": moment.name}},
    ]


def user_row(document: Mapping[str, Any]) -> UserRow:
    try:
        return checked_user(
            UserRow(
                id=document["_id"],
                space=document["space"],
                canonical_id=document["canonical_id"],
                word=document["word"],
                telegram_id=document.get("telegram_id"),
                email=document.get("email"),
                display_name=document["display_name"],
                total_conversations=whole(document, "total_conversations"),
                last_conversation_at=instant_or_none(document, "last_conversation_at"),
                merged_into_id=document.get("merged_into_id"),
                stands_for=document["stands_for"],
                written_by=document["written_by"],
                first_seen=instant(document, "first_seen"),
                updated_at=instant(document, "updated_at"),
            )
        )
    except DAMAGE as exc:
        raise damaged_user(document.get("_id"), exc) from exc

"""Agent history as documents.

Each record is a document in :data:`RECORDS`, and each entry is a document in :data:`ENTRIES`. Entries that one record
wrote, each after the one before, are a *chain*: they have the id of the chain and their ``place`` in it, so that the
last entries of a chain are one range of an index. Whoever continues from any other entry begins a new chain; all
entries of that chain name the entry it continues from as ``above``. So a history is several ranges, one for each fork
in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from bson import ObjectId
from pymongo import ASCENDING, DESCENDING, IndexModel, ReplaceOne, UpdateOne

from firefly_memory.agent_history.log import HistoryEntry, HistoryRecord, damaged_history
from firefly_memory.codec import DAMAGE
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.fields import Document, split, text, text_or_none, whole
from firefly_memory.errors import CorruptDataError

RECORDS = "memory_agent_history"
ENTRIES = "memory_agent_history_entries"

NEWEST_FIRST = [("updated_at", DESCENDING), ("updated_at_us", DESCENDING)]
RECORD_INDEXES = (IndexModel(NEWEST_FIRST), IndexModel([("scope", ASCENDING), *NEWEST_FIRST]))
ENTRY_INDEXES = (
    IndexModel([("chain", ASCENDING), ("place", ASCENDING)]),
    IndexModel([("holders", ASCENDING)], partialFilterExpression={"holders": 0}),
)

OF_RECORDS = Collection(RECORDS, RECORD_INDEXES, formerly="memory_dialogues", refused_by="_id")
COLLECTIONS = (
    OF_RECORDS,
    Collection(ENTRIES, ENTRY_INDEXES, formerly="memory_dialogue_entries"),
)

_COUNTS = ["int", "long", "double"]
_HOLDERS_COUNT = [{"$in": [{"$type": "$holders"}, _COUNTS]}, {"$gte": ["$holders", 0]}]
IS_SOUND: Document = {"$expr": {"$and": [{"$eq": [{"$type": "$_id"}, "string"]}, *_HOLDERS_COUNT]}}
"""A filter for entries that a deletion can count with. As an expression it lets no query choose another index."""


class Chain(NamedTuple):
    """The chain that a record continues, if its next entry comes after ``end``."""

    chain: ObjectId
    end: str
    place: int
    above: str | None = None
    """The entry of another chain before the first entry of this chain."""


def record_document(record: HistoryRecord, chain: Chain | None) -> Document:
    date, microseconds = split(record.updated_at)
    fields: Document = record._asdict()
    del fields["conversation_id"]
    chain_fields = None if chain is None else chain._asdict()
    this = {"_id": record.conversation_id}
    return {**this, **fields, "updated_at": date, "updated_at_us": microseconds, "chain": chain_fields}


def inserting(record: Document) -> ReplaceOne[Document]:
    """The update that inserts the document of a record, and never changes one."""
    return ReplaceOne({"_id": record["_id"], "revision": {"$lt": ""}}, record, upsert=True)


def replacing(before: Document, record: Document) -> UpdateOne:
    """The update that changes the document of a record, if it is as it was ``before``."""
    return UpdateOne({"_id": record["_id"], "revision": before["revision"]}, {"$set": record})


def record_of(document: Document) -> HistoryRecord:
    try:
        moment = document["updated_at"] + timedelta(microseconds=document["updated_at_us"])
        return HistoryRecord(
            conversation_id=text(document, "_id"),
            revision=text(document, "revision"),
            head_id=text_or_none(document, "head_id"),
            scope=text_or_none(document, "scope"),
            forked_from=text_or_none(document, "forked_from"),
            forked_at=text_or_none(document, "forked_at"),
            branches=[text({"branch": each}, "branch") for each in document["branches"]],
            usage=text(document, "usage"),
            deferred_tool_requests=text_or_none(document, "deferred_tool_requests"),
            updated_at=moment,
            format_version=whole(document, "format_version"),
        )
    except DAMAGE as exc:
        raise _damaged("conversation", document, exc) from exc


def chain_of(document: Document | None) -> Chain | None:
    try:
        return Chain(**document["chain"]) if document is not None and document["chain"] is not None else None
    except DAMAGE as exc:
        raise _damaged("conversation", document or {}, exc) from exc


def entry_documents(
    entries: Sequence[HistoryEntry], chain: Chain | None, holders: dict[str, int]
) -> tuple[list[Document], Chain | None]:
    """The documents of new entries, and the chain that the last of them ends."""
    documents: list[Document] = []
    for entry in entries:
        goes_on = chain is not None and entry.parent_id == chain.end
        chain = Chain(
            chain.chain if chain is not None and goes_on else ObjectId(),
            entry.entry_id,
            chain.place + 1 if chain is not None and goes_on else 0,
            chain.above if chain is not None and goes_on else entry.parent_id,
        )
        documents.append(
            {
                "_id": entry.entry_id,
                "parent_id": entry.parent_id,
                "kind": entry.kind,
                "message": entry.message,
                "holders": holders.get(entry.entry_id, 0),
                "chain": chain.chain,
                "place": chain.place,
                "above": chain.above,
            }
        )
    return documents, chain


def by_id(found: Sequence[Document]) -> dict[str, Document]:
    """The documents whose id is text, by id: only these can be named as a parent."""
    return {document["_id"]: document for document in found if isinstance(document["_id"], str)}


def entry_of(document: Document) -> HistoryEntry:
    try:
        parent_id = text_or_none(document, "parent_id")
        return HistoryEntry(text(document, "_id"), parent_id, text(document, "kind"), text(document, "message"))
    except DAMAGE as exc:
        raise _damaged("entry", document, exc) from exc


def history(entry_id: str, limit: int | None, forks: int) -> list[Document]:
    """A query for an entry and the entries before it, at most ``limit``, in its chain and the next ``forks`` above it.

    The ends of the chains come first, without their messages: no stage holds more than one message.
    """
    this: list[Document] = [{"$match": {"_id": entry_id}}]
    if limit == 1:
        return this
    first = {
        "chain": "$chain",
        "last": "$place",
        "above": "$above",
        "room": _EVERYTHING if limit is None else min(limit, _EVERYTHING),
    }
    return [
        *this,
        {"$replaceWith": {"ends": [first]}},
        *_NEXT_END * forks,
        {"$unwind": "$ends"},
        {"$replaceWith": "$ends"},
        {"$lookup": _UP_FROM_END},
        # At once, so that there never is one document of all of them: it might be larger than documents can be.
        {"$unwind": "$entry"},
        {"$replaceWith": "$entry"},
    ]


_EVERYTHING = 2**53

_NEXT_END: list[Document] = [
    {"$set": {"end": {"$last": "$ends"}}},
    {"$set": {"room": {"$subtract": ["$end.room", {"$add": ["$end.last", 1]}]}}},
    {"$set": {"above": {"$cond": [{"$gt": ["$room", 0]}, "$end.above", None]}}},
    {
        "$lookup": {
            "from": ENTRIES,
            "localField": "above",
            "foreignField": "_id",
            "let": {"room": "$room"},
            "pipeline": [{"$project": {"_id": 0, "chain": 1, "last": "$place", "above": 1, "room": "$$room"}}],
            "as": "next",
        }
    },
    {"$set": {"ends": {"$concatArrays": ["$ends", "$next"]}}},
]
"""Continues from the end of the last chain to the end of the chain above it, if there is one and it is wanted."""

_UP_FROM_END = {
    "from": ENTRIES,
    "let": {"chain": "$chain", "last": "$last", "room": "$room"},
    "pipeline": [
        {
            "$match": {
                "$expr": {
                    "$and": [
                        {"$eq": ["$chain", "$$chain"]},
                        {"$lte": ["$place", "$$last"]},
                        {"$gt": ["$place", {"$subtract": ["$$last", "$$room"]}]},
                    ]
                }
            }
        }
    ],
    "as": "entry",
}


def up_from(document: Document, steps: int) -> dict[str, Any]:
    """A filter for the entry of ``document`` and those before it in its chain, at most ``steps``; the entry alone if it
    is damaged."""
    chain, last = document.get("chain"), document.get("place")
    if not isinstance(chain, ObjectId) or not isinstance(last, int) or isinstance(last, bool) or last < 0:
        return {"_id": document["_id"]}
    return {"chain": chain, "place": {"$lte": last, "$gt": last - steps}}


def parent_of(document: Document) -> str | None:
    """The entry before the entry of ``document``; ``None`` as well if that link is damaged."""
    parent_id = document.get("parent_id")
    return parent_id if isinstance(parent_id, str) else None


def not_in_its_chain(document: Document) -> CorruptDataError:
    chain, place = document.get("chain"), document.get("place")
    return _damaged("entry", document, ValueError(f"it is not found by its chain {chain!r} and place {place!r}"))


def _damaged(what: str, document: Document, exc: Exception) -> CorruptDataError:
    return damaged_history(what, str(document.get("_id")), exc)

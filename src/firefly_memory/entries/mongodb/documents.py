"""Records as documents, and the filters that find them.

The document has the documented fields. MongoDB's dates end at the millisecond, so ``_id`` holds the record's exact
place in the order as text, ``<created_at>/<entry_id>``, and serves as the key that pages and the newest entry of a key
are found by. ``expires_at_us`` is there only where an expiry has microseconds beyond its date.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pymongo import ASCENDING, IndexModel, ReplaceOne

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.fields import Document, split, text, text_or_none
from firefly_memory.entries.record import Position, Record

# Beyond the documented indexes, for rule R11: a page of a namespace, and the newest entry of a key, each from one
# place. Queries name them, for the server's planner tries out plans on a few documents and may learn the wrong lesson.
IN_ORDER = [("namespace", ASCENDING), ("_id", ASCENDING)]
KEY_IN_ORDER = [("namespace", ASCENDING), ("key", ASCENDING), ("_id", ASCENDING)]

INDEXES = (
    IndexModel([("namespace", ASCENDING)]),
    IndexModel([("namespace", ASCENDING), ("key", ASCENDING)], partialFilterExpression={"key": {"$exists": True}}),
    IndexModel([("expires_at", ASCENDING)], partialFilterExpression={"expires_at": {"$exists": True}}),
    IndexModel([("entry_id", ASCENDING)], unique=True),
    IndexModel(IN_ORDER),
    IndexModel(KEY_IN_ORDER, partialFilterExpression={"key": {"$exists": True}}),
)

ENTRIES = Collection(None, INDEXES, refused_by="entry_id")
COLLECTIONS = (ENTRIES,)


def document_id(position: Position) -> str:
    """The ``_id`` of the record at ``position``: sorts as rule R4 says."""
    return f"{position.created_at.isoformat(timespec='microseconds')}/{position.entry_id}"


def upsert(record: Record) -> Document:
    """The update that makes or replaces a record; what it leaves alone stays as it was first."""
    date, microseconds = split(record.expires_at)
    fields: Document = {
        "scope": record.scope,
        "key": record.key,
        "content": record.content,
        "metadata": record.metadata,
        "expires_at": date,
        "importance": record.importance,
    }
    update: Document = {
        "$set": fields,
        "$setOnInsert": {"_id": document_id(record.position), "created_at": split(record.created_at)[0]},
    }
    if microseconds:
        fields["expires_at_us"] = microseconds
    else:
        update["$unset"] = {"expires_at_us": ""}
    return update


def new(record: Record) -> Document:
    """The document of a record that is not there yet."""
    update = upsert(record)
    return {**update["$setOnInsert"], **update["$set"], "entry_id": record.entry_id, "namespace": record.namespace}


def inserting(record: Record) -> ReplaceOne[Document]:
    """The update that inserts a record, and never changes one."""
    document = new(record)
    nobody = {"namespace": {"$lt": ""}}
    return ReplaceOne({"_id": document["_id"], "entry_id": record.entry_id, **nobody}, document, upsert=True)


def record(document: Document) -> Record:
    """The record a document stands for."""
    try:
        return Record(
            text(document, "entry_id"),
            text(document, "namespace"),
            text(document, "scope"),
            text_or_none(document, "key"),
            document["content"],
            document["metadata"],
            exact(document["created_at"], document["_id"]),
            _joined(document["expires_at"], document.get("expires_at_us", 0)),
            document["importance"],
        )
    except DAMAGE as exc:
        where = f"document {document.get('_id')!r} in namespace {document.get('namespace')!r}"
        raise damaged("load", where, exc) from exc


def live(now: datetime) -> Document:
    date, microseconds = split(now)
    return {
        "$or": [
            {"expires_at": None},
            {"expires_at": {"$gt": date}},
            {"expires_at": date, "expires_at_us": {"$gt": microseconds}},
        ]
    }


def expired(now: datetime) -> Document:
    date, microseconds = split(now)
    return {
        "$or": [
            {"expires_at": {"$lt": date}},
            {"expires_at": date, "expires_at_us": {"$not": {"$gt": microseconds}}},
        ]
    }


def _joined(date: datetime | None, microseconds: int) -> datetime | None:
    return None if date is None else date + timedelta(microseconds=microseconds)


def exact(date: datetime, document_id: str) -> datetime:
    """The instant that ``date`` is to the millisecond, and the text of a :func:`document_id` exactly."""
    moment = datetime.fromisoformat(document_id.partition("/")[0]).astimezone(UTC)
    # Somebody may have changed the date by hand; then it is what counts.
    return moment if split(moment)[0] == date else date.astimezone(UTC)

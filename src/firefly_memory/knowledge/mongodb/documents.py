"""Chunks as documents.

A chunk is one document with the fields of its row, those by which it is found among them
(:mod:`firefly_memory.search.mongodb.documents`). ``owner`` is there only if the chunk is a person's. ``added`` is the
chunk's place in the list of its collection, ``<created_at>/<id>``. ``embedders`` names those whose vectors the chunk
has got: so whoever adds a vector changes the chunk, and a transaction that deletes the chunk meets that.

What the words of the index are made by is noted in the collection of versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import bson
from pymongo import ASCENDING, IndexModel, InsertOne, UpdateOne

from firefly_memory.codec import DAMAGE
from firefly_memory.cursors import Moment
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.fields import Document, split, text, whole
from firefly_memory.errors import InvalidEntryError
from firefly_memory.knowledge.log import CHUNKS, ChunkRow, checked_row, damaged_chunk
from firefly_memory.search.index import Indexed, Vector
from firefly_memory.search.mongodb.documents import indexed_fields, row_indexes, vector_collections
from firefly_memory.search.mongodb.vectors import Embedded

IN_COLLECTION = [("space", ASCENDING), ("collection", ASCENDING), ("added", ASCENDING)]
OF_OWNER = [("owner", ASCENDING), ("_id", ASCENDING)]
BY_ID = [("_id", ASCENDING)]

OF_CHUNKS = Collection(
    CHUNKS.table,
    (
        *row_indexes(CHUNKS),
        IndexModel(IN_COLLECTION),
        IndexModel(OF_OWNER, partialFilterExpression={"owner": {"$exists": True}}),
    ),
    refused_by="_id",
    forget="firefly_memory.knowledge.mongodb.writing:delete_left_behind",
)
COLLECTIONS = (OF_CHUNKS, *vector_collections(CHUNKS))

EVERY: Document = {"_id": {"$gte": ""}}
"""A filter for all chunks: it leaves tombstones out, whose ids are no texts."""

_MOST_BYTES = 16 * 1024 * 1024
_ALWAYS_FITS = 50_000
"""Characters of a chunk: with all that it is found by, a character takes less than 300 bytes of the document."""


def chunk_document(row: ChunkRow) -> Document:
    """The document of a chunk that is not there yet."""
    indexed = Indexed(row.scope, row.searchable, row.words, row.who, row.group_id, row.position)
    date, microseconds = split(row.created_at)
    document = {
        "_id": row.id,
        "space": row.space,
        "collection": row.collection,
        "source": row.source,
        "text": row.text,
        "said_at": row.said_at,
        "created_at": date,
        "created_at_us": microseconds,
        "added": place_in_list(Moment(row.created_at, row.id)),
        **indexed_fields(indexed, row.newest),
    }
    if row.owner is not None:
        document["owner"] = row.owner
    return document


def inserting(row: ChunkRow, vector: Vector | None) -> UpdateOne:
    """The update that inserts a chunk. One that is there stays as it is, but for the embedder of a new vector."""
    update: Document = {"$setOnInsert": chunk_document(row)}
    if vector is not None:
        update |= embedded_by(vector.embedder)
    return UpdateOne({"_id": update["$setOnInsert"].pop("_id")}, update, upsert=True)


def new(row: ChunkRow, vector: Vector | None) -> InsertOne[Document]:
    """The insert of a chunk that is not there, with the embedder of its vector."""
    document = chunk_document(row)
    if vector is not None:
        document["embedders"] = [vector.embedder]
    return InsertOne(document)


def rewriting(row: ChunkRow) -> UpdateOne:
    """The update that replaces the searchable form and the words of a chunk."""
    return UpdateOne({"_id": row.id}, {"$set": {"searchable": row.searchable, "words": list(row.words)}})


def embedded_by(embedder: str) -> Document:
    """The change of a chunk that gets a vector."""
    return {"$addToSet": {"embedders": embedder}}


def check_sizes(rows: Iterable[ChunkRow]) -> None:
    """``InvalidEntryError`` for a chunk that is too large for a document, before anything is written."""
    for row in rows:
        if len(row.text) + len(row.source or "") > _ALWAYS_FITS:
            size = len(bson.encode(chunk_document(row)))
            if size > _MOST_BYTES:
                raise InvalidEntryError(
                    "chunk", f"is larger than the 16 MB MongoDB allows for a document ({size:,} bytes)"
                )


def embedded(rows: Iterable[ChunkRow], vectors: Mapping[str, Vector]) -> list[Embedded]:
    """The vectors of these rows."""
    return [Embedded(row.id, row.scope, row.owner, vectors[row.id]) for row in rows if row.id in vectors]


def embedded_document(document: Mapping[str, Any], vectors: Mapping[str, Vector]) -> Embedded:
    """The vector of a chunk that is there."""
    try:
        name, scope = text(document, "_id"), text(document, "scope")
        owner = text(document, "owner") if "owner" in document else None
        return Embedded(name, scope, owner, vectors[name])
    except DAMAGE as exc:
        raise damaged_chunk(document.get("_id"), exc) from exc


def place_in_list(moment: Moment) -> str:
    """The ``added`` of a chunk: sorts by the instant, and then by the id."""
    return f"{moment.at.astimezone(UTC).isoformat(timespec='microseconds')}/{moment.name}"


def row_of(document: Mapping[str, Any]) -> ChunkRow:
    """The row of a chunk."""
    try:
        return checked_row(
            ChunkRow(
                id=document["_id"],
                space=document["space"],
                collection=document["collection"],
                owner=document.get("owner"),
                source=document["source"],
                text=document["text"],
                said_at=document["said_at"],
                newest=_instant(document, "newest"),
                created_at=_instant(document, "created_at"),
                scope=document["scope"],
                who=document["who"],
                group_id=document["group_id"],
                position=document["position"],
                searchable=document["searchable"],
                words=_words(document["words"]),
            )
        )
    except DAMAGE as exc:
        raise damaged_chunk(document.get("_id"), exc) from exc


def _instant(document: Mapping[str, Any], name: str) -> datetime:
    moment: datetime = document[name] + timedelta(microseconds=whole(document, f"{name}_us"))
    return moment.astimezone(UTC)


def _words(words: Any) -> tuple[str, ...]:
    "".join(words)  # they are texts, or this fails
    return tuple(words)

"""Chunks as documents.

A chunk is one document with the fields of its row, those by which it is found among them
(:mod:`firefly_memory.search.mongodb.documents`). ``owner`` is there only if the chunk is a person's. ``added`` is the
chunk's place in the list of its collection, ``<created_at>/<id>``. ``embedders`` names those whose vectors the chunk
has got: so whoever adds a vector changes the chunk, and a transaction that deletes the chunk meets that.

What the words of the index are made by is noted in the collection of versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any

from pymongo import ASCENDING, IndexModel, InsertOne, UpdateOne

from firefly_memory.codec import DAMAGE
from firefly_memory.cursors import Moment
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.fields import Document, check_size, dated, instant, texts
from firefly_memory.knowledge.log import CHUNKS, ChunkRow, checked_row, damaged_chunk
from firefly_memory.search.index import Indexed, Vector
from firefly_memory.search.mongodb.documents import indexed_fields, row_indexes, vector_collections
from firefly_memory.search.mongodb.row_vectors import embedded_by
from firefly_memory.search.mongodb.vectors import Embedded

IN_COLLECTION = [("space", ASCENDING), ("collection", ASCENDING), ("added", ASCENDING)]
OF_OWNER = [("owner", ASCENDING), ("_id", ASCENDING)]

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

_ALWAYS_FITS = 50_000
"""Characters of a chunk: with all that it is found by, a character takes less than 300 bytes of the document."""


def chunk_document(row: ChunkRow) -> Document:
    """The document of a chunk that is not there yet."""
    indexed = Indexed(row.scope, row.searchable, row.words, row.who, row.group_id, row.position)
    document = {
        "_id": row.id,
        "space": row.space,
        "collection": row.collection,
        "source": row.source,
        "text": row.text,
        "said_at": row.said_at,
        **dated("created_at", row.created_at),
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


def check_sizes(rows: Iterable[ChunkRow]) -> None:
    """``InvalidEntryError`` for a chunk that is too large for a document, before anything is written."""
    for row in rows:
        if len(row.text) + len(row.source or "") > _ALWAYS_FITS:
            check_size("chunk", chunk_document(row))


def embedded(rows: Iterable[ChunkRow], vectors: Mapping[str, Vector]) -> list[Embedded]:
    """The vectors of these rows."""
    return [Embedded(row.id, row.scope, row.owner, vectors[row.id]) for row in rows if row.id in vectors]


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
                newest=instant(document, "newest"),
                created_at=instant(document, "created_at"),
                scope=document["scope"],
                who=document["who"],
                group_id=document["group_id"],
                position=document["position"],
                searchable=document["searchable"],
                words=texts(document, "words"),
            )
        )
    except DAMAGE as exc:
        raise damaged_chunk(document.get("_id"), exc) from exc

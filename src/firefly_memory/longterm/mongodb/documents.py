"""Facts, and what they said before, as documents.

A fact is one document with the fields of its row, those by which it is found among them
(:mod:`firefly_memory.search.mongodb.documents`). ``owner`` is there only if the fact is a person's. ``rank`` is the
place of its scope in the order of a lookup. ``embedders`` names those whose vectors the fact has got. Each version is
one document in a collection of its own.

A person who was merged leaves a *marker* among the facts, in the form of a tombstone
(:mod:`firefly_memory.tombstones.mongodb.gates`)::

    {"_id": <of the word of the person's place>, "scope": <the same>, "key": <MOVED>, "rank": -1, "refuses": "writes",
     "stands_for": <the word of the other person's place>}

Its scope is binary data, so no question about a place meets it. A lookup that names the person asks for it as well, and
finds it first. A write to the person's place looks for it as for a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pymongo import ASCENDING, DESCENDING, DeleteMany, IndexModel, UpdateOne

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.databases.mongodb.collections import REFUSES, Collection
from firefly_memory.databases.mongodb.fields import (
    Document,
    check_size,
    dated,
    instant,
    instant_or_none,
    text,
    text_or_none,
    texts,
    whole,
)
from firefly_memory.longterm.fact_form import checked_row, damaged_fact
from firefly_memory.longterm.mongodb.user_documents import OF_USERS
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import FACTS, VERSIONS, FactRow, VersionRow
from firefly_memory.longterm.types import SCOPES
from firefly_memory.search.index import Indexed, Vector
from firefly_memory.search.mongodb.documents import indexed_fields, row_indexes, vector_collections
from firefly_memory.search.mongodb.index import Keys
from firefly_memory.search.mongodb.vectors import Embedded

KEYS: Keys = [("scope", ASCENDING), ("key", ASCENDING)]
ORDER: Keys = [
    ("confidence", DESCENDING),
    ("newest", DESCENDING),
    ("newest_us", DESCENDING),
    ("_id", ASCENDING),
]
"""That of lists."""
IN_LISTS: Keys = [("scope", ASCENDING), *ORDER, ("fact_type", ASCENDING)]
"""With the type at the end, so that facts of other types are passed over without a look at them."""
OF_OWNER: Keys = [("owner", ASCENDING), ("_id", ASCENDING)]

OF_FACT: Keys = [("fact_id", ASCENDING), ("number", ASCENDING)]
SAID: Keys = [
    ("fact_id", ASCENDING),
    ("valid_from", DESCENDING),
    ("valid_from_us", DESCENDING),
    ("number", DESCENDING),
]
VERSIONS_OF_OWNER: Keys = [("owner", ASCENDING), ("fact_id", ASCENDING), ("number", ASCENDING)]

_WITH_OWNER: Document = {"owner": {"$exists": True}}

OF_FACTS = Collection(
    FACTS.table,
    (
        *row_indexes(FACTS),
        IndexModel(KEYS, unique=True),
        IndexModel(IN_LISTS),
        IndexModel(OF_OWNER, partialFilterExpression=_WITH_OWNER),
    ),
    refused_by="scope",
    forget="firefly_memory.longterm.mongodb.deletion:delete_left_behind",
)
OF_VERSIONS = Collection(
    VERSIONS,
    (
        IndexModel(OF_FACT, unique=True),
        IndexModel(SAID),
        IndexModel(VERSIONS_OF_OWNER, partialFilterExpression=_WITH_OWNER),
    ),
)
COLLECTIONS = (OF_FACTS, OF_VERSIONS, OF_USERS, *vector_collections(FACTS))

MOVED = b"moved"
"""The key of markers: those of facts are texts."""

_RANKS: Mapping[str, int] = {scope: rank for rank, scope in enumerate(SCOPES)}
_ALWAYS_FITS = 50_000
"""Characters of a fact: with all that it is found by, a character takes less than 300 bytes of the document."""


# Facts


def fact_document(row: FactRow) -> Document:
    """The document of a fact that is not there yet."""
    indexed = Indexed(row.scope, row.searchable, row.words, row.who, row.group_id, row.position)
    document: Document = {
        "_id": row.id,
        "space": row.space,
        "fact_scope": row.fact_scope,
        "scope_id": row.scope_id,
        "key": row.key,
        "rank": _RANKS.get(row.fact_scope, len(_RANKS)),
        "value": row.value,
        "fact_type": row.fact_type,
        "confidence": row.confidence,
        "times_confirmed": row.times_confirmed,
        "times_contradicted": row.times_contradicted,
        "source_episode_id": row.source_episode_id,
        "versions": row.versions,
        "written_by": row.written_by,
        "access_count": row.access_count,
        **dated("last_accessed", row.last_accessed),
        **dated("valid_from", row.valid_from),
        **dated("created_at", row.created_at),
        **indexed_fields(indexed, row.newest),
    }
    if row.owner is not None:
        document["owner"] = row.owner
    return document


def making(row: FactRow, vector: Vector | None = None) -> UpdateOne:
    """The update that makes a fact, with the embedder of its vector. No command inserts and looks, but one updates."""
    embedders = {} if vector is None else {"embedders": [vector.embedder]}
    document = {**fact_document(row), **embedders}
    this = {name: document.pop(name) for name in ("_id", "scope")}
    return UpdateOne(this, {"$setOnInsert": document}, upsert=True)


def as_it_was(row: FactRow) -> Document:
    """A filter for a fact that nobody has written to since it was read."""
    return {"_id": row.id, "scope": row.scope, "written_by": row.written_by}


_SET_BY_WRITES = (
    "value", "fact_type", "confidence", "times_confirmed", "source_episode_id", "versions", "written_by",
    "valid_from", "valid_from_us", "newest", "newest_us", "searchable", "words", "owner",
)  # fmt: skip


_NO_VECTORS: Document = {"embedders.0": {"$exists": False}}


def overwriting(old: FactRow, new: FactRow, vector: Vector | None, *, without_vectors: bool = False) -> UpdateOne:
    """The update that makes ``new`` of ``old``, if nobody has written to it since. Another value has lost the
    vectors of the old one; with ``without_vectors`` a fact that has got one meanwhile is not changed."""
    document = fact_document(new)
    change: Document = {"$set": {name: document[name] for name in _SET_BY_WRITES if name in document}}
    if new.value != old.value:
        change["$set"]["embedders"] = [] if vector is None else [vector.embedder]
    elif vector is not None:
        change["$addToSet"] = {"embedders": vector.embedder}
    gone = [name for name in _SET_BY_WRITES if name not in document]
    if gone:
        change["$unset"] = dict.fromkeys(gone, "")
    # A merge changes these, and is no write of the fact.
    as_read: Document = {"owner": old.owner, "versions": old.versions, "times_confirmed": old.times_confirmed}
    return UpdateOne({**as_it_was(old), **as_read, **(_NO_VECTORS if without_vectors else {})}, change)


def rewriting(row: FactRow) -> UpdateOne:
    """The update that replaces the searchable form and the words of a fact that nobody has written to since."""
    return UpdateOne(as_it_was(row), {"$set": {"searchable": row.searchable, "words": list(row.words)}})


def check_sizes(rows: Iterable[FactRow]) -> None:
    """``InvalidEntryError`` for a fact that is too large for a document, before anything is written."""
    for row in rows:
        if len(row.value) > _ALWAYS_FITS:
            check_size("fact", fact_document(row))


def embedded(row: FactRow, vector: Vector) -> Embedded:
    """The vector of a fact."""
    return Embedded(row.id, row.scope, row.owner, vector)


WITHOUT_WORDS: Document = {"words": 0}
"""A projection for facts that are shown, and not moved or indexed."""


def shown_fact(document: Mapping[str, Any]) -> FactRow:
    """The row of a fact that was read :data:`WITHOUT_WORDS`."""
    return fact_row({**document, "words": []})


def fact_row(document: Mapping[str, Any]) -> FactRow:
    """The row of a fact."""
    try:
        return checked_row(
            FactRow(
                id=document["_id"],
                space=document["space"],
                fact_scope=document["fact_scope"],
                scope_id=document["scope_id"],
                key=document["key"],
                value=document["value"],
                fact_type=document["fact_type"],
                confidence=document["confidence"],
                times_confirmed=whole(document, "times_confirmed"),
                times_contradicted=whole(document, "times_contradicted"),
                source_episode_id=document["source_episode_id"],
                owner=document.get("owner"),
                versions=whole(document, "versions"),
                written_by=document["written_by"],
                access_count=whole(document, "access_count"),
                last_accessed=instant_or_none(document, "last_accessed"),
                valid_from=instant(document, "valid_from"),
                created_at=instant(document, "created_at"),
                newest=instant(document, "newest"),
                scope=document["scope"],
                who=document["who"],
                group_id=document["group_id"],
                position=int(document["position"] + 0),
                searchable=document["searchable"],
                words=texts(document, "words"),
            )
        )
    except DAMAGE as exc:
        raise damaged_fact(document.get("_id"), exc) from exc


# Lookups and markers


def seen(lookup: Lookup, key: str) -> Document:
    """A filter for the facts with a key that a lookup sees, and for the marker of a person who was merged."""
    if lookup.user is None:
        return {"scope": {"$in": lookup.words}, "key": key}
    return {"scope": {"$in": [*lookup.words, marker_id(lookup.user)]}, "key": {"$in": [key, MOVED]}}


def marker_id(word: str) -> bytes:
    """The ``_id`` of the marker in the place of a person."""
    return b"moved " + word.encode()


def marking(word: str, stands_for: str) -> UpdateOne:
    """The update that leaves a marker, or makes that of a person who stood for another one right."""
    fields = {"key": MOVED, "rank": -1, REFUSES: "writes", "stands_for": stands_for}
    marker = marker_id(word)
    return UpdateOne({"_id": marker, "scope": marker}, {"$set": fields}, upsert=True)


def unmarking(words: Iterable[str]) -> DeleteMany:
    """The deletion of the markers of some people."""
    return DeleteMany({"_id": {"$in": [marker_id(each) for each in words]}})


def is_marker(document: Mapping[str, Any]) -> bool:
    return document.get("key") == MOVED


def stands_for(marker: Mapping[str, Any]) -> str:
    """The word of the person for whom one who was merged stands."""
    try:
        return text(marker, "stands_for")
    except DAMAGE as exc:
        raise damaged("reading a fact", f"the marker {marker.get('_id')!r} of {FACTS.table}", exc) from exc


# Versions


def version_document(row: VersionRow, space: str) -> Document:
    """The document of a version of a fact in this space."""
    document: Document = {
        "fact_id": row.fact_id,
        "number": row.number,
        "space": space,
        "value": row.value,
        "confidence": row.confidence,
        "source_episode_id": row.source_episode_id,
        **dated("valid_from", row.valid_from),
        **dated("superseded_at", row.superseded_at),
    }
    if row.owner is not None:
        document["owner"] = row.owner
    return document


def version_row(document: Mapping[str, Any]) -> VersionRow:
    """The row of a version."""
    try:
        confidence = document["confidence"]
        if isinstance(confidence, bool) or not 0.0 <= confidence <= 1.0:
            raise ValueError("its confidence is not from 0 to 1")
        return VersionRow(
            fact_id=text(document, "fact_id"),
            number=whole(document, "number"),
            value=text(document, "value"),
            confidence=float(confidence),
            source_episode_id=text_or_none(document, "source_episode_id"),
            owner=text(document, "owner") if "owner" in document else None,
            valid_from=instant(document, "valid_from"),
            superseded_at=instant(document, "superseded_at"),
        )
    except DAMAGE as exc:
        where = f"version {document.get('number')!r} of fact {document.get('fact_id')!r}"
        raise damaged("reading a fact", where, exc) from exc

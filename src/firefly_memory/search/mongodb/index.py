"""The reading half of an index in MongoDB.

A question of many words is one aggregation with a part for each word (``$unionWith``): each part is a range of the
index, which has all that the part gives back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pymongo import ASCENDING, DESCENDING

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH
from firefly_memory.databases.mongodb.errors import translated
from firefly_memory.databases.mongodb.fields import Document, text, text_or_none
from firefly_memory.errors import CorruptDataError
from firefly_memory.identifiers import original_name, original_or_none
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.filters import Conditions
from firefly_memory.search.index import Signatures, Subject, WithoutAccelerator
from firefly_memory.search.mongodb.documents import (
    NEWEST,
    OF_ROW,
    PEOPLE,
    PLACES,
    SIGNATURES,
    in_scopes,
    is_wanted,
    places_beside,
    words_index,
)

Pipeline = list[Document]
Keys = Sequence[tuple[str, Any]]
"""The fields of an index, each with its direction."""

_IDS: Document = {"_id": 1}
_BY_ID = [("_id", ASCENDING)]
_CANDIDATE: Document = {"words": 1, "who": 1, "place": 1, "position": 1}
_WITH_LENGTH: Document = {
    **dict.fromkeys(("who", "place", "position"), 1),
    "length": {"$cond": [{"$isArray": "$words"}, {"$size": "$words"}, None]},
}
_UNLESS_IN_GROUP: Document = {
    **_CANDIDATE,
    "words": {"$cond": [{"$eq": [{"$type": "$place"}, "missing"]}, "$words", "$$REMOVE"]},
}


class MongoSearchIndex(WithoutAccelerator):
    """A :class:`~firefly_memory.search.index.SearchIndex` on clients of one mode."""

    def __init__(self, access: MongoAccess, subject: Subject) -> None:
        self._access = access
        self._subject = subject
        self._words = words_index(subject)

    async def counts(self, scopes: Sequence[str], words: Sequence[str], most: int | None) -> Mapping[str, int]:
        if not words:
            return {}
        parts = [counted(scopes, word) for word in dict.fromkeys(words)]
        found = {each["_id"]: int(each["count"]) for each in await self._union(parts, self._words)}
        return {word: found.get(word, 0) for word in words}

    async def best(
        self, scopes: Sequence[str], weights: Mapping[str, int], limit: int, conditions: Conditions = ()
    ) -> Sequence[str]:
        if not weights or limit < 1:
            return []
        wanted = is_wanted(self._subject, conditions)
        if len(weights) == 1:
            return await self._first(scopes, next(iter(weights)), wanted, limit)
        # By ranges of the index: to read the documents and look at their words takes three times as long.
        parts = [weighed({**having(scopes, word), **wanted}, weight) for word, weight in weights.items()]
        return [each["_id"] for each in await self._union(parts, self._words, *largest_sums(limit))]

    async def _first(self, scopes: Sequence[str], word: str, wanted: Document, limit: int) -> list[str]:
        """The documents with a word, by id: all have the same weight, and there may be very many."""
        these = {**having(scopes, word), **wanted}
        found = await self._found(self._subject.table, these, _IDS, self._words, sort=_BY_ID, limit=limit)
        return [each["_id"] for each in found]

    async def around(
        self, scopes: Sequence[str], ids: Sequence[str], conditions: Conditions = (), *, words: bool = True
    ) -> Sequence[Candidate]:
        table, wanted = self._subject.table, is_wanted(self._subject, conditions)
        # The words of those in a group come with their neighbours.
        given = {"_id": {"$in": list(ids)}, **in_scopes(scopes), **wanted}
        these = await self._found(table, given, _UNLESS_IN_GROUP, _BY_ID)
        found = [each for each in these if "place" not in each]
        places = self._places(each for each in these if "place" in each)
        if places:
            shape = _CANDIDATE if words else _WITH_LENGTH
            found += await self._found(table, {"place": {"$in": places}, **wanted}, shape, PLACES)
        return [self._candidate(each) for each in found]

    def _places(self, documents: Iterable[Document]) -> list[str]:
        """Where documents of groups and their neighbours are, each place once."""
        places: dict[str, None] = {}
        for each in documents:
            try:
                places[each["place"]] = None
                places.update(dict.fromkeys(places_beside(each)))
            except DAMAGE as exc:
                raise self._damaged(each, exc) from exc
        return list(places)

    def _candidate(self, document: Document) -> Candidate:
        try:
            words = () if "length" in document else document["words"]
            "".join(words)  # they are texts, or this fails
            return Candidate(
                id=text(document, "_id"),
                words=words,
                length=int(document["length"] + 0) if "length" in document else None,
                who=original_or_none(text_or_none(document, "who")),
                # With the scope: another person's group may have the same name.
                group=document["place"].rpartition("/")[0] if "place" in document else None,
                position=int(document["position"] + 0),
            )
        except DAMAGE as exc:
            raise self._damaged(document, exc) from exc

    async def containing(
        self, scopes: Sequence[str], text: str, limit: int, conditions: Conditions = ()
    ) -> Sequence[str]:
        if limit < 1:
            return []
        wanted = {**in_scopes(scopes), **has_text(text), **is_wanted(self._subject, conditions)}
        found = await self._found(self._subject.table, wanted, _IDS, NEWEST, sort=NEWEST[1:], limit=limit)
        return [each["_id"] for each in found]

    async def people(self, scopes: Sequence[str], limit: int) -> Sequence[str]:
        if not scopes or limit < 1:
            return []
        live = is_wanted(self._subject)
        found = await self._union([people_of(scope, live, limit) for scope in dict.fromkeys(scopes)], PEOPLE)
        return [original_name(each) for each in sorted({each["_id"] for each in found})[:limit]]

    async def signatures(
        self, scopes: Sequence[str], embedder: str, most: int, conditions: Conditions = ()
    ) -> Signatures | None:
        wanted, shape = {**in_scopes(scopes), "embedder": embedder}, {"_id": 0, "id": 1, "signature": 1}
        if conditions:
            ids = await self._every(scopes, is_wanted(self._subject, conditions), most)
            if len(ids) > most:
                return None
            wanted["id"] = {"$in": ids}
        found = await self._found(self._subject.signatures, wanted, shape, SIGNATURES, limit=most + 1)
        if len(found) > most:
            return None
        return Signatures([each["id"] for each in found], [each["signature"] for each in found])

    async def _every(self, scopes: Sequence[str], wanted: Document, most: int) -> list[str]:
        """The ids of the documents of the scopes that are wanted, up to one more than ``most``. A scope is a word of
        all its documents."""
        each_once = list(dict.fromkeys(scopes))
        these = {**in_scopes(each_once), "words": {"$in": each_once}, **wanted}
        found = await self._found(self._subject.table, these, _IDS, self._words, limit=most + 1)
        return [each["_id"] for each in found]

    async def vectors(self, embedder: str, ids: Sequence[str]) -> Mapping[str, bytes]:
        wanted, shape = {"id": {"$in": list(ids)}, "embedder": embedder}, {"_id": 0, "id": 1, "vector": 1}
        return {each["id"]: each["vector"] for each in await self._found(self._subject.vectors, wanted, shape, OF_ROW)}

    async def _found(
        self,
        collection: str,
        wanted: Document,
        shape: Document,
        index: Keys,
        *,
        sort: Keys | None = None,
        limit: int = 0,
    ) -> list[Document]:
        with translated("search", self._access.database.db_name):
            connection = await self._access.connected("search")
            finding = connection[collection].find(wanted, shape, batch_size=IN_ONE_BATCH).hint(index).limit(limit)
            return await connection.all_of(finding if sort is None else finding.sort(sort))

    async def _union(self, parts: Sequence[Pipeline], index: Keys, *then: Document) -> list[Document]:
        """What several pipelines give together, and what further stages make of it."""
        with translated("search", self._access.database.db_name):
            connection = await self._access.connected("search")
            rows, pipeline = self._subject.table, [*union(self._subject.table, parts), *then]
            return await connection.all_of(
                connection[rows].aggregate(pipeline, batchSize=IN_ONE_BATCH, hint=dict(index))
            )

    def _damaged(self, document: Document, exc: Exception) -> CorruptDataError:
        return damaged("search", f"{document.get('_id')!r} of {self._subject.kind}", exc)


# The queries.


def having(scopes: Sequence[str], word: str) -> Document:
    """A filter for the documents of the scopes with a word."""
    return {**in_scopes(scopes), "words": word}


def counted(scopes: Sequence[str], word: str) -> Pipeline:
    """How many documents have a word."""
    return [{"$match": having(scopes, word)}, {"$group": {"_id": {"$literal": word}, "count": {"$sum": 1}}}]


def weighed(having_word: Document, weight: int) -> Pipeline:
    """The documents with a word, each with the weight of the word."""
    return [{"$match": having_word}, {"$project": {"weight": {"$literal": weight}}}]


def largest_sums(limit: int) -> Pipeline:
    """The documents with the largest sums of weights; equal ones by id."""
    summed = {"$group": {"_id": "$_id", "sum": {"$sum": "$weight"}}}
    return [summed, {"$sort": {"sum": DESCENDING, "_id": ASCENDING}}, {"$limit": limit}]


def people_of(scope: str, live: Document, limit: int) -> Pipeline:
    """The first names in a scope, each found by one step down the index, unless documents expire."""
    return [{"$match": {"scope": scope, "who": {"$gte": ""}, **live}}, {"$group": {"_id": "$who"}}, {"$limit": limit}]


def has_text(text: str) -> Document:
    """A filter for searchable forms with a text. Not a regular expression: these may be only so long."""
    form = {"$cond": [{"$eq": [{"$type": "$searchable"}, "string"]}, "$searchable", ""]}
    return {"$expr": {"$gte": [{"$indexOfBytes": [form, {"$literal": text}]}, 0]}}


def union(collection: str, parts: Sequence[Pipeline]) -> Pipeline:
    """What the pipelines give, one after the other."""
    first, *rest = parts
    return [*first, *({"$unionWith": {"coll": collection, "pipeline": each}} for each in rest)]

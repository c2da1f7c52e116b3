"""The documents that are searched, their vectors and signatures: their fields, and the indexes these need.

The documents of a facet have the fields of :func:`indexed_fields` beside those of the facet::

    {"_id": <id>, "scope", "searchable", "words": [<the scope, and each word as often as it is there>],
     "who", "group_id", "position", "place": "<scope>/<group>/<position>", "newest": <date>, "newest_us"}

``place`` is there only for a document of a group: its neighbours are a few points of one index. ``newest_us`` has the
microseconds that a date of MongoDB loses. Vectors and signatures have an id of their own, and ``id`` is that of the
row::

    {"id", "embedder", "vector"}
    {"id", "embedder", "scope", "signature", "owner"}

Whatever has a vector has a signature: signatures are written before vectors, and deleted after them. So what an
interrupted write or deletion has left of a person is found by the ``owner`` of signatures, whom those of nobody lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pymongo import ASCENDING, DESCENDING, IndexModel

from firefly_memory import clock
from firefly_memory.databases.mongodb.collections import Collection
from firefly_memory.databases.mongodb.fields import Document, split
from firefly_memory.search.filters import Comparison, Conditions
from firefly_memory.search.index import Indexed, Subject
from firefly_memory.search.neighbours import REACH

# Queries name these indexes: the server's planner tries out plans on a few documents and may learn the wrong lesson.
WORDS = [("scope", ASCENDING), ("words", ASCENDING), ("_id", ASCENDING)]
"""With the id at the end, so that words are counted and ids are found without a look at the documents."""
PLACES = [("place", ASCENDING)]
NEWEST = [("scope", ASCENDING), ("newest", DESCENDING), ("newest_us", DESCENDING), ("_id", ASCENDING)]
PEOPLE = [("scope", ASCENDING), ("who", ASCENDING)]

OF_ROW = [("id", ASCENDING), ("embedder", ASCENDING)]
SIGNATURES = [("scope", ASCENDING), ("embedder", ASCENDING), ("id", ASCENDING), ("signature", ASCENDING)]
"""With all that is read of a signature, so that no document is."""
OF_OWNER = [("owner", ASCENDING), ("id", ASCENDING)]


def words_index(subject: Subject) -> list[tuple[str, int]]:
    """The index of words. With the time until when a document is there, where documents expire, and what they can be
    filtered by, for the same reason."""
    further = [*([] if subject.expires is None else [subject.expires]), *(each.name for each in subject.filters)]
    return [*WORDS, *((name, ASCENDING) for name in further)]


def row_indexes(subject: Subject) -> tuple[IndexModel, ...]:
    """The indexes of the documents of a facet, beside those that the facet needs itself."""
    return (
        IndexModel(words_index(subject)),
        IndexModel(PLACES, partialFilterExpression={"place": {"$exists": True}}),
        IndexModel(NEWEST),
        IndexModel(PEOPLE),
    )


def vector_collections(subject: Subject) -> tuple[Collection, ...]:
    """The collections of the vectors and of the signatures of a facet's documents."""
    if not subject.has_vectors:
        return ()
    of_row = IndexModel(OF_ROW, unique=True)
    of_people = IndexModel(OF_OWNER, partialFilterExpression={"owner": {"$exists": True}})
    return (
        Collection(subject.vectors, (of_row,)),
        Collection(subject.signatures, (of_row, IndexModel(SIGNATURES), of_people)),
    )


def indexed_fields(indexed: Indexed, newest: datetime) -> Document:
    """The fields by which a row is found."""
    fields: Document = {**indexed._asdict(), "words": list(indexed.words)}
    fields["newest"], fields["newest_us"] = split(newest)
    if indexed.group_id is not None:
        fields["place"] = _place(f"{indexed.scope}/{indexed.group_id}", indexed.position)
    return fields


def places_beside(document: Document) -> Iterator[str]:
    """Where the neighbours of a document are; nowhere without a group."""
    if "place" in document:
        group, _, position = document["place"].rpartition("/")
        for steps in range(1, REACH + 1):
            yield _place(group, int(position) - steps)
            yield _place(group, int(position) + steps)


def is_wanted(subject: Subject, conditions: Conditions = ()) -> Document:
    """A filter for documents that fulfil the conditions and have not expired. A date of MongoDB has no microseconds, so
    one that expires is gone up to a millisecond early."""
    wanted: Document = {}
    for each, value in conditions:
        wanted[each.name] = {"$in": list(value)} if each.comparison is Comparison.ONE_OF else {"$gte": value}
    if subject.expires is not None:
        wanted[subject.expires] = {"$not": {"$lte": clock.now()}}
    return wanted


def _place(group: str, position: int) -> str:
    return f"{group}/{position}"


def in_scopes(scopes: Sequence[str]) -> Document:
    """A filter for the documents of some scopes. Of one scope the server reads a single range of an index."""
    return {"scope": scopes[0]} if len(scopes) == 1 else {"scope": {"$in": list(scopes)}}

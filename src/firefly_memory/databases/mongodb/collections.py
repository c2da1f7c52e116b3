"""The collections of the facets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pymongo import IndexModel

from firefly_memory.databases.mongodb.clients import VERSION, Connection
from firefly_memory.facets import Facet, all_facets

REFUSES = "refuses"
"""The field of tombstones, which no other document has."""

TOMBSTONES = {"_id": {"$type": "binData"}}
"""A filter for the tombstones of a collection that has some. It is a range of the index that every collection has."""

NO_TOMBSTONES = {REFUSES: {"$exists": False}}
"""A filter for all other documents. It lets no query choose another index."""


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of a facet, and the indexes it needs. Without a name it is the one that a store was opened with."""

    name: str | None
    indexes: tuple[IndexModel, ...] = ()
    formerly: str | None = None
    """Its name in an earlier version: it is renamed when a store opens."""
    refused_by: str | None = None
    """The field, perhaps ``_id``, that its unique indexes and its shard key begin with, if writes to it may be refused:
    then it has tombstones, with a hash in this field and as the ``_id``. No other ``_id`` may be binary data."""
    forget: str | None = None
    """The dotted name of ``(connection, identities)``, which deletes what nobody sees of erased identities, such as
    what interrupted writes have left behind."""


def registered_collections() -> Iterator[Collection]:
    """Those of every facet."""
    for facet in all_facets():
        yield from facet.stored("collections") or ()


def names_of(facet: Facet) -> set[str]:
    """The names of a facet's collections, but for that which a store is opened with."""
    return {each.name for each in facet.stored("collections") or () if each.name is not None}


def taken_names() -> set[str]:
    """The names that no store may give to its collection of entries."""
    return {VERSION, *(each.name for each in registered_collections() if each.name is not None), *former_names()}


def former_names() -> dict[str, str]:
    """The former name of each collection that has one, and its name of today."""
    return {
        each.formerly: each.name
        for each in registered_collections()
        if each.formerly is not None and each.name is not None
    }


def collections_of(connection: Connection) -> list[tuple[Any, tuple[IndexModel, ...]]]:
    """Every collection, with its indexes."""
    return [
        (connection.entries if each.name is None else connection[each.name], each.indexes)
        for each in registered_collections()
    ]

"""Collections of the predecessors, on MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firefly_memory.databases.mongodb.legacy_collections import ForeignCollections, foreign_collections
from firefly_memory.errors import ConfigurationError
from firefly_memory.transfer.importers.firefly_legacy.entries import IDS, RefusedError, Row
from firefly_memory.transfer.importers.firefly_legacy.sources import Source, the_only

_DATABASES = ("firefly_memory", "firefly")
_NAMES = ("entries", "firefly_memory")


@contextmanager
def document_source(url: str, database: str | None, collection: str | None, *, timeout: float) -> Iterator[Source]:
    with foreign_collections(url, timeout=timeout) as places:
        given = database or places.database(_DATABASES[0])
        databases = _DATABASES if given == _DATABASES[0] and database is None else (given,)
        names = _NAMES if collection is None else (collection,)
        there = {f"{each}.{name}": (each, name) for each in databases for name in places.names(each)}
        fitting = [full for full, (each, name) in there.items() if name in names and not places.is_ours(each, name)]
        chosen = the_only(fitting, "collection", sorted(there), "--database and --collection")
        unique_ids = places.has_unique(*there[chosen], IDS)
        rows = _rows(places, *there[chosen])
        yield Source(f"collection {chosen}", rows, unique_ids, estimate=lambda: places.estimate(*there[chosen]))


def _rows(places: ForeignCollections, database: str, collection: str) -> Iterator[Row]:
    for document in places.rows(database, collection):
        if document is None:
            yield Row(None, None, RefusedError("the document is damaged"))
        else:
            yield Row(document.get("namespace"), document.get("entry_id"), document)


def check_collection(url: str, database: str, collection: str, *, timeout: float) -> bool:
    """Whether this library's entries are in the new place; ``ConfigurationError`` if a predecessor's are."""
    with foreign_collections(url, timeout=timeout) as places:
        if places.has_others(database, collection):
            raise ConfigurationError(
                f"the collection {database}.{collection} has documents already that this library has not made; rename "
                "it, or choose another one for the new store with --to-collection"
            )
        return places.is_ours(database, collection)

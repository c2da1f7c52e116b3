"""Collections of the predecessors, on MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firefly_memory.databases.mongodb.legacy_collections import ForeignCollections, foreign_collections
from firefly_memory.errors import ConfigurationError
from firefly_memory.target import Target
from firefly_memory.transfer.importers.firefly_legacy.entries import IDS, RefusedError, Row
from firefly_memory.transfer.importers.firefly_legacy.sources import Source, Where, the_only

_DATABASES = ("firefly_memory", "firefly")
_NAMES = ("entries", "firefly_memory")


class DocumentImporter:
    """Collections of a server."""

    @contextmanager
    def source(self, url: str, where: Where, *, timeout: float) -> Iterator[Source]:
        with foreign_collections(url, timeout=timeout) as places:
            given = where.database or places.database(_DATABASES[0])
            databases = _DATABASES if given == _DATABASES[0] and where.database is None else (given,)
            names = _NAMES if where.collection is None else (where.collection,)
            there = {f"{each}.{name}": (each, name) for each in databases for name in places.names(each)}
            fitting = [full for full, (each, name) in there.items() if name in names and not places.is_ours(each, name)]
            chosen = the_only(fitting, "collection", sorted(there), "--database and --collection")
            unique_ids = places.has_unique(*there[chosen], IDS)
            rows = _rows(places, *there[chosen])
            yield Source(f"collection {chosen}", rows, unique_ids, estimate=lambda: places.estimate(*there[chosen]))

    def has_been_here(self, new: Target, *, timeout: float) -> bool:
        database, collection = new.options["database"], new.options["collection"]
        with foreign_collections(new.url, timeout=timeout) as places:
            if places.has_others(database, collection):
                raise ConfigurationError(
                    f"the collection {database}.{collection} has documents already that this library has not made; "
                    "rename it, or choose another one for the new store with --to-collection"
                )
            return places.is_ours(database, collection)


IMPORTER = DocumentImporter()


def _rows(places: ForeignCollections, database: str, collection: str) -> Iterator[Row]:
    for document in places.rows(database, collection):
        if document is None:
            yield Row(None, None, RefusedError("the document is damaged"))
        else:
            yield Row(document.get("namespace"), document.get("entry_id"), document)

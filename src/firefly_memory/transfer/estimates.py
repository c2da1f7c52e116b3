"""The approximate number of items in a store, for progress bars."""

from __future__ import annotations

from collections.abc import Collection

from firefly_memory.errors import FireflyMemoryError
from firefly_memory.facets import Absent, Facet, all_facets
from firefly_memory.target import Target, migrations_of
from firefly_memory.transfer.registered import MovedFacet

_TIMEOUT = 10.0


def estimated_items(found: Target, without: Collection[MovedFacet] = ()) -> int | None:
    """The approximate number of items of all facets, without the facets that are left out. ``None`` if the database has
    no estimate."""
    try:
        by_name = _estimates(found)
    except FireflyMemoryError:  # the next use of the store raises it as well
        return None
    facets = [*(each.facet for each in without), *(each for each in all_facets() if isinstance(each.moving, Absent))]
    left_out = {name for facet in facets for name in _names_of(found, facet)} if by_name else ()
    return sum(number for name, number in by_name.items() if name not in left_out) or None


def _names_of(found: Target, facet: Facet) -> set[str]:
    """The tables or collections of a facet."""
    # Each is imported when it is wanted: the others' drivers may not be installed.
    if found.row.database is not None:
        from firefly_memory.databases.sql.schema.metadata import tables_of

        return tables_of(facet)
    from firefly_memory.databases.mongodb.collections import names_of

    return names_of(facet)


def _estimates(found: Target) -> dict[str, int]:
    if found.row.database is not None:
        with migrations_of(found, timeout=_TIMEOUT, reading=True) as database:
            return database.estimates()
    if found.row.estimates is not None:
        options = found.options | {"timeout": _TIMEOUT, "migrate": False}
        by_name: dict[str, int] = found.row.load("estimates")(found.url, options)
        return by_name
    return {}

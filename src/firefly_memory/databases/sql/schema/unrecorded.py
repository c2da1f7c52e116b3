"""Tables that are there, but not by the revision that the database says it is at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from sqlalchemy.exc import DBAPIError

from firefly_memory.databases.sql.errors import Place
from firefly_memory.databases.sql.schema.metadata import VERSION_TABLE
from firefly_memory.errors import DatabaseStoreError

_CREATES = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\S+)", re.IGNORECASE)


def made_by(steps: Iterable[str]) -> Iterator[str]:
    """The tables that the statements make, without the one that revisions are recorded in."""
    for step in steps:
        found = _CREATES.match(step)
        name = found[1].rpartition(".")[2].strip('"') if found else VERSION_TABLE
        if name != VERSION_TABLE:
            yield name


def is_in_the_way(error: DBAPIError) -> DatabaseStoreError:
    """For a name of something else than a table, such as an index."""
    reason = f"{error.orig}; if it is not this library's, rename it, or choose another schema_name or file"
    return DatabaseStoreError("initialize", reason)


def unrecorded(
    place: Place, taken: str, recorded: str | None, there: set[str], revisions: dict[str, set[str]]
) -> DatabaseStoreError:
    """For the table ``taken``, which is to be made. ``revisions`` has what each one makes, oldest first."""
    whole = takewhile(lambda each: each[1] <= there, revisions.items())
    # One that makes no table leaves no trace here; run again, it does no harm.
    seen = [revision for revision, made in whole if made]
    newest = seen[-1] if seen else None
    state = f"the recorded revision is {recorded}" if recorded else "no revision is recorded"
    other = "choose another schema_name or file"
    order = [None, *revisions]
    if order.index(newest) <= order.index(recorded):
        do = f"no revision has exactly the tables that are there: restore a backup, or {other}"
    else:
        do = (
            f"if the tables are this library's, run: {place.command(f'stamp {newest}')}, then: "
            f"{place.command('upgrade')}, and then: {place.command('check')}; otherwise {other}"
        )
    return DatabaseStoreError("initialize", f"the table {taken} is there already, but {state}; {do}")

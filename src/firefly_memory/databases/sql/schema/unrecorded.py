"""Tables that are there, but not by the revision that the database says it is at."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.errors import DatabaseStoreError


def is_in_the_way(error: DBAPIError) -> DatabaseStoreError:
    """For a name of something else than a table, such as an index."""
    reason = f"{error.orig}; if it is not this library's, rename it, or choose another schema_name or file"
    return DatabaseStoreError("initialize", reason)


def unrecorded(
    db_name: DatabaseName, taken: str, recorded: str | None, there: set[str], revisions: dict[str, set[str]]
) -> DatabaseStoreError:
    """For the table or column ``taken``, which is to be made. ``revisions`` has those after each one, oldest first."""
    ours = there & set().union(*revisions.values())
    # The first revision with these tables: a later one that changes no table does no harm if it runs again.
    newest = next((revision for revision, tables in revisions.items() if tables == ours), None)
    state = f"the recorded revision is {recorded}" if recorded else "no revision is recorded"
    other = "choose another schema_name or file"
    order = [None, *revisions]
    if order.index(newest) <= order.index(recorded):
        do = f"no revision has exactly the tables that are there: restore a backup, or {other}"
    else:
        do = (
            f"if the tables are this library's, run: {db_name.command(f'stamp {newest}')}, then: "
            f"{db_name.command('upgrade')}, and then: {db_name.command('check')}; otherwise {other}"
        )
    table, _, column = taken.partition(".")
    what = f"the column {column} of {table}" if column else f"the table {table}"
    return DatabaseStoreError("initialize", f"{what} is there already, but {state}; {do}")

"""What ``firefly-memory doctor`` looks at in the schema of any SQL database."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from firefly_memory.databases.diagnostics import Finding, ok, problem
from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.schema import migrate, revisions
from firefly_memory.databases.sql.schema.commands import State, Status
from firefly_memory.databases.sql.schema.drift import differences


def of_schema(connection: Connection, db_name: DatabaseName) -> Iterator[Finding]:
    """The revision, and every object that is not as this version needs it."""
    status = Status(migrate.revision_of(connection, db_name))
    match status.state:
        case State.BEHIND:
            found = f"{status.revision or 'there is none'}; missing: {', '.join(status.pending)}"
            yield problem("schema", found, f"run: {db_name.command('upgrade')}")
        case State.COMPATIBLE:
            yield ok("schema", f"{status.revision}, {status.state.value}: this version works with it")
        case State.AHEAD:
            found = f"{status.revision}; this version knows revisions up to {revisions.head()}"
            yield problem("schema", found, f"pip install --upgrade firefly-memory\n{migrate.OR_A_FACET}")
        case State.CURRENT:
            drift = differences(connection, db_name.schema_name)
            yield from (problem("schema", str(each), each.mend) for each in drift)
            if not drift:
                yield ok("schema", f"{status.revision}, with every table, column, check and index as it should be")

"""About how many rows tables have: numbers that the database knows already, without counting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, func, literal_column, select, table
from sqlalchemy.dialects.postgresql import pg_catalog


def estimated_rows(connection: Connection, names: Iterable[str], schema_name: str | None) -> dict[str, int]:
    """By table. SQLite knows the largest number that a row has, PostgreSQL what its statistics say."""
    if schema_name is None:
        largest: Any = func.coalesce(func.max(literal_column("rowid")), 0)
        return {name: int(connection.execute(select(largest).select_from(table(name))).scalar_one()) for name in names}
    spaces, classes = pg_catalog.pg_namespace, pg_catalog.pg_class
    # The first is of the last ANALYZE, and negative before; the second is what was written since the statistics began.
    about = func.greatest(classes.c.reltuples, func.pg_catalog.pg_stat_get_live_tuples(classes.c.oid), 0)
    rows = connection.execute(
        select(classes.c.relname, about)
        .join(spaces, spaces.c.oid == classes.c.relnamespace)
        .where(spaces.c.nspname == schema_name, classes.c.relname.in_(list(names)))
    )
    return {name: int(number) for name, number in rows}

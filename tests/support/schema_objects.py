"""What a database knows of its own objects."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

import psycopg


def catalogue(url: str, schema: str = "firefly_memory") -> Any:
    """Everything the database knows of our objects, in its own words."""
    if url.startswith("sqlite"):
        file = sqlite3.connect(url.removeprefix("sqlite:///"))
        found = file.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
        file.close()
        return [(*row[:3], re.sub(r"\s+", " ", row[3] or "")) for row in found]
    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name"
            " FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, ordinal_position",
            (schema,),
        ).fetchall()
        indexes = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = %s ORDER BY 1", (schema,)
        ).fetchall()
        constraints = connection.execute(
            "SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s) AND contype <> 'n' ORDER BY 1",
            (schema,),
        ).fetchall()
    return columns, indexes, constraints

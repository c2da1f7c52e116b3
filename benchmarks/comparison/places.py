"""A database for each contender, and how large it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from benchmarks.comparison.contender import Contender, Place

_SIZE = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"""


@dataclass(frozen=True)
class Places:
    directory: Path
    postgresql_url: str
    """Of a superuser, and of any database of the server."""

    def new(self, contender: type[Contender], purpose: str) -> Place:
        """An empty database."""
        return self.named(f"{contender.__name__}_{purpose}", contender.backend)

    def named(self, title: str, backend: str) -> Place:
        """An empty database with a name."""
        name = title.lower()
        if backend == "postgresql":
            with psycopg.connect(self.postgresql_url, autocommit=True) as connection:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return Place(self.directory / f"{name}.db", self.url(database=name))

    def url(self, *, database: str, user: str | None = None) -> str:
        found = conninfo_to_dict(self.postgresql_url)
        password = f":{found['password']}" if found.get("password") and user is None else ""
        return f"postgresql://{user or found['user']}{password}@{found['host']}:{found['port']}/{database}"


def size(contender: Contender) -> int | None:
    """Bytes of the tables with their indexes, or of the file; nothing for what is in memory."""
    match contender.backend:
        case "sqlite":
            with closing(sqlite3.connect(contender.place.path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return contender.place.path.stat().st_size
        case "postgresql":
            with psycopg.connect(contender.place.postgresql_url) as connection:
                row = connection.execute(_SIZE).fetchone()
                assert row is not None
                return int(row[0])
    return None

"""Empty databases of a test's own, and statements run in them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg


@contextmanager
def empty_postgresql(server_url: str, template: str = "template1") -> Iterator[str]:
    """The URL of an empty database, or of a copy of the database ``template``, gone at the end."""
    name = f"own_{uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        # Copying the template's files takes half the time of logging its pages, which PostgreSQL does from 15 on.
        strategy = "STRATEGY FILE_COPY" if connection.info.server_version >= 150000 else ""
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} {strategy}".encode())
        try:
            yield re.sub(r"/[^/?]*(?=$|\?)", f"/{name}", server_url)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def execute(url: str, sql: str) -> list[Any]:
    """Run a statement, or a script of them that ends at the first error; the rows of a single one."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        try:
            if ";" not in sql:
                return connection.execute(sql).fetchall()
            connection.executescript(sql)
            return []
        finally:
            connection.close()
    with psycopg.connect(url, autocommit=True) as server:
        cursor = server.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

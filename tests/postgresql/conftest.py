"""PostgreSQL servers of a test module's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.support.servers import EmbeddedPostgreSQL
from tests.support.stoppable_postgresql import PASSWORD


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgreSQL]:
    """A server of this module's own, to be stopped and frozen at will."""
    server = EmbeddedPostgreSQL(password=PASSWORD)
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def run_sql(server: EmbeddedPostgreSQL) -> Callable[[str], list[Any]]:
    """Runs a statement on that server."""

    def run(sql: str) -> list[Any]:
        with psycopg.connect(server.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    return run


@pytest.fixture(scope="module")
def small_server() -> Iterator[EmbeddedPostgreSQL]:
    """A server with room for twelve connections."""
    server = EmbeddedPostgreSQL(max_connections="12", superuser_reserved_connections="0", max_wal_senders="0")
    server.start()
    yield server
    server.remove()

"""A PostgreSQL server that a test may stop and freeze: how it is reached, and what errors show of it."""

from __future__ import annotations

import traceback

import pytest

from firefly_memory import PostgreSQLStore
from firefly_memory.testing import Mode
from tests.support.servers import EmbeddedPostgreSQL

PASSWORD = "correct-horse"
DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
IN_BOTH_MODES = pytest.mark.parametrize("mode", Mode)


def url(server: EmbeddedPostgreSQL, driver: str) -> str:
    return server.url.replace("postgresql://", f"postgresql+{driver}://")


def prepare(server: EmbeddedPostgreSQL, schema_name: str) -> None:
    """Migrate a schema, and leave."""
    with PostgreSQLStore(server.url, schema_name=schema_name):
        pass


def everything_shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)

"""A revision that changes every row of a long table may take longer than any time-out of a store."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import psycopg
import pytest

from firefly_memory import PostgreSQLStore
from firefly_memory.cli import main
from tests.support.backends import Place

SLOW = """
CREATE FUNCTION {name}.slowly() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_catalog.pg_sleep(1.2); RETURN NEW; END $$;
CREATE TRIGGER slowly BEFORE UPDATE ON {name}.memory_entries FOR EACH ROW EXECUTE FUNCTION {name}.slowly()
"""
"""As slow as some millions of rows."""


async def _blocking(store: PostgreSQLStore, url: str, name: str) -> None:
    store.initialize_sync()


async def _suspending(store: PostgreSQLStore, url: str, name: str) -> None:
    await store.initialize()


async def _command(store: PostgreSQLStore, url: str, name: str) -> None:
    assert main(["db", "upgrade", "--url", url, "--schema", name, "--timeout", "0.5"]) == 0


Upgrade = Callable[[PostgreSQLStore, str, str], Awaitable[None]]


def _execute(admin: psycopg.Connection[Any], statement: str) -> psycopg.Cursor[Any]:
    return admin.execute(statement.encode())


@pytest.mark.parametrize(
    ("driver", "upgrade"),
    [("psycopg", _blocking), ("psycopg", _suspending), ("asyncpg", _suspending), ("psycopg", _command)],
)
async def test_no_driver_time_out_stops_a_revision(
    driver: str, upgrade: Upgrade, name: str, admin: psycopg.Connection[Any], place: Place
) -> None:
    url = place.postgresql()
    assert main(["db", "upgrade", "0003", "--url", url, "--schema", name]) == 0
    old = hashlib.sha256(b"working:s\0k").hexdigest()
    execute = partial(_execute, admin)
    execute(
        f"INSERT INTO {name}.memory_entries (entry_id, namespace, scope, key, content, metadata, created_at, importance)"
        f" VALUES ('{old}', 'working:s', 'working', 'k', '1', '{{}}', now(), 0.5)"
    )
    execute(SLOW.format(name=name))
    with_driver = url.replace("postgresql:", f"postgresql+{driver}:")
    async with PostgreSQLStore(with_driver, schema_name=name, timeout=0.5) as store:
        await upgrade(store, url, name)
    assert execute(f"SELECT entry_id FROM {name}.memory_entries").fetchall() == [(f"fact:{old}",)]

"""R12 for PostgreSQL's schema: missing, behind, ahead, or dropped while in use."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import event

from firefly_memory import DatabaseStoreError, MemoryEntry, PostgreSQLStore, SchemaMismatchError
from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.postgresql.database import PostgreSQLDatabase
from firefly_memory.schema import HEAD
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.store_caller import MakeStoreCaller

IN_BOTH_MODES = pytest.mark.parametrize("mode", Mode)


@pytest.fixture
def url(place: Place) -> str:
    return place.postgresql()


@pytest.fixture
def admin(url: str) -> Callable[[str], list[Any]]:
    def run(sql: str) -> list[Any]:
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    return run


@pytest.fixture
def name(admin: Callable[[str], list[Any]]) -> Iterator[str]:
    """A schema's name that nobody has used."""
    name = f"trouble_{uuid4().hex[:12]}"
    yield name
    admin(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def prepare(url: str, schema_name: str) -> None:
    """Migrate a schema, and leave."""
    with PostgreSQLStore(url, schema_name=schema_name):
        pass


@IN_BOTH_MODES
def test_a_missing_schema_is_created_or_reported(
    mode: Mode, url: str, name: str, using: MakeStoreCaller, admin: Callable[[str], list[Any]]
) -> None:
    store = using(PostgreSQLStore(url, schema_name=name, migrate=False), mode)
    with pytest.raises(SchemaMismatchError, match=r"run: firefly-memory db upgrade --schema \w+") as caught:
        store("load", "n")
    assert (caught.value.found, caught.value.expected) == (None, HEAD)
    assert not admin(f"SELECT 1 FROM pg_namespace WHERE nspname = '{name}'"), "only looked at"
    prepare(url, name)
    assert store("load", "n") == []


@IN_BOTH_MODES
def test_a_schema_that_is_behind_or_ahead_is_reported(
    mode: Mode, url: str, name: str, using: MakeStoreCaller, admin: Callable[[str], list[Any]]
) -> None:
    prepare(url, name)
    admin(f"UPDATE {name}.firefly_memory_version SET version_num = '9999'")
    for migrate in (True, False):
        store = using(PostgreSQLStore(url, schema_name=name, migrate=migrate), mode)
        with pytest.raises(SchemaMismatchError, match="pip install --upgrade firefly-memory") as caught:
            store("load", "n")
        assert caught.value.found == "9999"
    admin(f"DELETE FROM {name}.firefly_memory_version")
    admin(f"DROP TABLE {name}.memory_entries")
    store = using(PostgreSQLStore(url, schema_name=name, migrate=False), mode)
    with pytest.raises(SchemaMismatchError, match="is missing"):
        store("load", "n")
    admin(f"DROP SCHEMA {name} CASCADE")
    store = using(PostgreSQLStore(url, schema_name=name), mode)
    store("save", "n", MemoryEntry())


@IN_BOTH_MODES
def test_a_dropped_table_is_reported_by_a_running_store(
    mode: Mode, url: str, name: str, using: MakeStoreCaller, admin: Callable[[str], list[Any]]
) -> None:
    store = using(PostgreSQLStore(url, schema_name=name), mode)
    store("save", "n", MemoryEntry())
    admin(f"DROP SCHEMA {name} CASCADE")
    with pytest.raises(SchemaMismatchError, match=r"firefly-memory db upgrade"):
        store("load", "n")


@IN_BOTH_MODES
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_a_database_with_a_small_encoding_is_refused_at_the_start(
    driver: str, mode: Mode, place: Place, name: str, using: MakeStoreCaller, admin: Callable[[str], list[Any]]
) -> None:
    admin(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        latin = re.sub(r"/[^/?]*(?=$|\?)", f"/{name}", place.with_driver(driver))
        store = using(PostgreSQLStore(latin), mode)
        with pytest.raises(DatabaseStoreError, match="LATIN1 cannot hold every text"):
            store("save", "n", MemoryEntry())
        with psycopg.connect(latin.replace(f"+{driver}", ""), autocommit=True) as connection:
            connection.execute("CREATE SCHEMA firefly_memory")
            connection.execute("CREATE TABLE firefly_memory.firefly_memory_version (version_num VARCHAR(32))")
            connection.execute("INSERT INTO firefly_memory.firefly_memory_version VALUES (%s)", (HEAD,))
        with pytest.raises(DatabaseStoreError, match="LATIN1 cannot hold every text"):
            store("save", "n", MemoryEntry())
    finally:
        admin(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_start_with_a_current_schema_costs_one_query(url: str, name: str) -> None:
    prepare(url, name)
    store = PostgreSQLStore(url, schema_name=name)
    assert isinstance(store.database, PostgreSQLDatabase)
    pool = store.database.open_pool()
    asked: list[str] = []
    event.listen(pool.engine, "before_cursor_execute", lambda *arguments: asked.append(arguments[2]))
    store.database.check_schema(pool, None)
    assert len(asked) == 1
    pool.dispose()


@pytest.mark.parametrize("schema_name", ["a$b", "firefly_memory", "plain"])
def test_the_command_in_an_error_message_names_its_schema_for_a_shell(schema_name: str) -> None:
    shown = DatabaseName("h/x", schema_name).command("upgrade")
    arguments = subprocess.run(["sh", "-c", f"printf '%s\\n' {shown}"], capture_output=True, text=True, check=True)
    expected = [] if schema_name == "firefly_memory" else ["--schema", schema_name]
    assert arguments.stdout.splitlines() == ["firefly-memory", "db", "upgrade", *expected]

"""The documented schema equals the result of the migrations, on both dialects, up and down."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from firefly_memory import MemoryEntry, PostgreSQLStore, SQLiteStore
from firefly_memory.databases.sql.schema.names import MIGRATIONS
from firefly_memory.schema import HEAD, REVISIONS
from tests.support.alembic_command import alembic, done
from tests.support.databases import execute
from tests.support.schema_objects import catalogue


def test_postgresql_has_exactly_the_documented_table_and_two_indexes_more(postgresql: str) -> None:
    done(postgresql, "upgrade", "head")
    columns, indexes, constraints = catalogue(postgresql)
    assert [column[1:] for column in columns if column[0] == "memory_entries"] == [
        ("entry_id", "text", "NO", None, None),
        ("namespace", "text", "NO", None, None),
        ("scope", "text", "NO", None, None),
        ("key", "text", "YES", None, None),
        ("content", "jsonb", "NO", None, None),
        ("metadata", "jsonb", "NO", "'{}'::jsonb", None),
        ("created_at", "timestamp with time zone", "NO", "now()", None),
        ("expires_at", "timestamp with time zone", "YES", None, None),
        ("importance", "double precision", "NO", "0.5", None),
    ]
    on = "ON firefly_memory.memory_entries USING btree"
    documented = ("ON firefly_memory.memory_entries ", "firefly_memory_version")
    assert {name: index for name, index in indexes if any(table in index for table in documented)} == {
        "memory_entries_pkey": f"CREATE UNIQUE INDEX memory_entries_pkey {on} (entry_id)",
        "idx_namespace": f"CREATE INDEX idx_namespace {on} (namespace)",
        "idx_namespace_key": f"CREATE INDEX idx_namespace_key {on} (namespace, key) WHERE (key IS NOT NULL)",
        "idx_expires_at": f"CREATE INDEX idx_expires_at {on} (expires_at) WHERE (expires_at IS NOT NULL)",
        "idx_namespace_order": f'CREATE INDEX idx_namespace_order {on} (namespace COLLATE "C", created_at, entry_id COLLATE "C")',
        "idx_namespace_key_order": f'CREATE INDEX idx_namespace_key_order {on} (namespace COLLATE "C", key COLLATE "C", created_at, entry_id COLLATE "C") WHERE (key IS NOT NULL)',
        "firefly_memory_version_pkc": "CREATE UNIQUE INDEX firefly_memory_version_pkc ON firefly_memory.firefly_memory_version USING btree (version_num)",
    }
    check = "CHECK (((importance >= (0.0)::double precision) AND (importance <= (1.0)::double precision)))"
    assert ("memory_entries_importance_check", "c", check) in constraints


def test_sqlite_has_equivalent_tables_and_indexes(sqlite: str) -> None:
    done(sqlite, "upgrade", "head")
    objects = {name: sql for _, name, _, sql in catalogue(sqlite)}
    assert set(objects) >= {
        "memory_entries", "idx_namespace", "idx_namespace_key", "idx_expires_at", "idx_namespace_order",
        "idx_namespace_key_order", "firefly_memory_version",
    }  # fmt: skip
    table = objects["memory_entries"]
    for column in (
        "entry_id TEXT NOT NULL", "content TEXT NOT NULL", "metadata TEXT DEFAULT '{}' NOT NULL", "expires_at TEXT,",
        "importance FLOAT DEFAULT (0.5) NOT NULL", "PRIMARY KEY (entry_id)",
    ):  # fmt: skip
        assert column in table
    assert 'WHERE "key" IS NOT NULL' in objects["idx_namespace_key"]
    with sqlite3.connect(sqlite.removeprefix("sqlite:///")) as connection:
        insert = "INSERT INTO memory_entries (entry_id, namespace, scope, content, importance) VALUES (?, 'n', 'working', '1', ?)"
        connection.execute(insert, ("it", 0.7))
        for refused in (1.5, -0.1):
            with pytest.raises(sqlite3.IntegrityError, match="memory_entries_importance_check"):
                connection.execute(insert, ("bad", refused))
    connection.close()
    with SQLiteStore(sqlite.removeprefix("sqlite:///")) as store:
        (entry,) = store.load("n")
        assert (entry.entry_id, entry.content, entry.metadata) == ("it", 1, {}), "the defaults are ones we can read"


def test_the_code_knows_every_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    assert [script.revision for script in scripts.walk_revisions()][::-1] == list(REVISIONS)
    assert scripts.get_current_head() == HEAD


def test_upgrade_downgrade_and_upgrade_pass_the_check(url: str) -> None:
    empty = catalogue(url)
    assert "0001" not in done(url, "current")
    done(url, "upgrade", "head")
    whole = catalogue(url)
    assert f"{HEAD} (head)" in done(url, "current")
    assert "No new upgrade operations detected" in done(url, "check")
    done(url, "downgrade", "base")
    assert "memory_entries" not in str(catalogue(url))
    done(url, "upgrade", "head")
    assert catalogue(url) == whole != empty


def test_initialize_makes_the_same_schema_as_alembic(url: str, tmp_path: Path) -> None:
    done(url, "upgrade", "head")
    if url.startswith("sqlite"):
        with SQLiteStore(tmp_path / "other.db"):
            pass
        assert catalogue(f"sqlite:///{tmp_path}/other.db") == catalogue(url)
        return
    with PostgreSQLStore(url, schema_name="other"):
        pass
    renamed = str(catalogue(url, "other")).replace("other.", "firefly_memory.")
    assert renamed == str(catalogue(url))


def test_check_names_each_difference(url: str) -> None:
    done(url, "upgrade", "head")
    execute(
        url, "DROP INDEX idx_expires_at" if url.startswith("sqlite") else "DROP INDEX firefly_memory.idx_expires_at"
    )
    finished = alembic(url, "check")
    assert finished.returncode != 0
    assert "idx_expires_at" in finished.stderr + finished.stdout


def test_check_ignores_the_tables_of_the_application(url: str) -> None:
    execute(url, "CREATE TABLE alembic_version (version_num TEXT)")
    if url.startswith("sqlite"):
        execute(url, "CREATE TABLE orders (id INTEGER)")
    else:
        execute(url, "CREATE SCHEMA firefly_memory")
        execute(url, "CREATE TABLE firefly_memory.orders (id INTEGER)")
    done(url, "upgrade", "head")
    assert "No new upgrade operations detected" in done(url, "check")
    done(url, "downgrade", "base")
    assert "orders" in str(catalogue(url))


def test_the_offline_script_makes_the_same_schema(url: str, tmp_path: Path) -> None:
    script = done(url, "upgrade", "head", "--sql")
    if url.startswith("sqlite"):
        path = tmp_path / "offline.db"
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executescript(script)
        connection.close()
        done(url, "upgrade", "head")
        assert catalogue(f"sqlite:///{path}") == catalogue(url)
        with SQLiteStore(path, migrate=False) as store:
            store.save("n", MemoryEntry())
    else:
        execute(url, script)
        offline = catalogue(url)
        assert "No new upgrade operations detected" in done(url, "check")
        execute(url, done(url, "downgrade", f"{HEAD}:base", "--sql"))
        done(url, "upgrade", "head")
        assert catalogue(url) == offline
        with PostgreSQLStore(url, migrate=False) as store:
            store.save("n", MemoryEntry())


def test_data_of_an_older_revision_is_readable_after_an_upgrade(url: str) -> None:
    """With one revision there is nothing older than it; a row that only the schema knows stands in for the data."""
    done(url, "upgrade", REVISIONS[0])
    table = "memory_entries" if url.startswith("sqlite") else "firefly_memory.memory_entries"
    values = "('it', 'n', 'long_term', '{\"a\": [1, null]}')"
    execute(url, f"INSERT INTO {table} (entry_id, namespace, scope, content) VALUES {values}")
    done(url, "upgrade", "head")
    store: SQLiteStore | PostgreSQLStore
    store = SQLiteStore(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else PostgreSQLStore(url)
    (entry,) = store.load("n")
    store.close_sync()
    assert (entry.content, entry.metadata, entry.importance, entry.scope) == ({"a": [1, None]}, {}, 0.5, "long_term")

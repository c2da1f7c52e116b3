"""The schema: documented, the same as the sum of the migrations, on both dialects, there and back."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from firefly_memory import MemoryEntry, PostgreSQLStore, SQLiteStore, StoreTimeoutError
from firefly_memory.databases.sql.schema.metadata import HEAD, REVISIONS
from firefly_memory.databases.sql.schema.migrate import script_location
from tests.support.backends import Place

ROOT = Path(__file__).parents[2]


def alembic(url: str, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a platform team runs it, in a checkout."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
    given = ["-x", f"url={url}"] if url else []
    command = [sys.executable, "-m", "alembic", *given, *arguments]
    return subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, env=clean | (environment or {})
    )


def done(url: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    finished = alembic(url, *arguments, environment=environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def execute(url: str, sql: str) -> None:
    """Run a statement, or a script of them that ends at the first error."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.executescript(sql)
        connection.close()
        return
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(sql.encode())


@pytest.fixture
def postgresql(place: Place) -> Iterator[str]:
    """The URL of an empty database."""
    name = f"schema_{uuid4().hex[:12]}"
    with psycopg.connect(place.postgresql(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield re.sub(r"/[^/?]*(?=$|\?)", f"/{name}", place.postgresql())
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/memory.db"


@pytest.fixture(params=["postgresql", "sqlite"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


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


def test_sqlite_has_the_faithful_equivalents(sqlite: str) -> None:
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
    config.set_main_option("script_location", str(script_location()))
    scripts = ScriptDirectory.from_config(config)
    assert [script.revision for script in scripts.walk_revisions()][::-1] == list(REVISIONS)
    assert scripts.get_current_head() == HEAD


def test_up_down_up_and_check(url: str) -> None:
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


def test_initialize_makes_the_same_as_alembic(url: str, tmp_path: Path) -> None:
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


def test_check_names_what_differs(url: str) -> None:
    done(url, "upgrade", "head")
    execute(
        url, "DROP INDEX idx_expires_at" if url.startswith("sqlite") else "DROP INDEX firefly_memory.idx_expires_at"
    )
    finished = alembic(url, "check")
    assert finished.returncode != 0
    assert "idx_expires_at" in finished.stderr + finished.stdout


def test_check_leaves_the_tables_of_the_application_alone(url: str) -> None:
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


def test_the_url_and_the_schema_come_from_the_environment(postgresql: str) -> None:
    for variable in ("FIREFLY_AGENTIC_MEMORY_URL", "FIREFLY_AGENTIC_MEMORY_POSTGRES_URL"):
        environment = {variable: postgresql, "FIREFLY_AGENTIC_MEMORY_POSTGRES_SCHEMA": "named"}
        done("", "upgrade", "head", environment=environment)
        assert f"{HEAD} (head)" in done("", "current", environment=environment)
        done("", "downgrade", "base", environment=environment)
    done(postgresql, "-x", "schema=other", "upgrade", "head")
    with PostgreSQLStore(postgresql, schema_name="other", migrate=False) as store:
        store.save("n", MemoryEntry())


@pytest.mark.parametrize("command", ["current", "check"])
def test_alembic_only_looks_where_it_is_asked_to(command: str, tmp_path: Path) -> None:
    missing = alembic(f"sqlite:///{tmp_path}/memory.db", command)
    assert missing.returncode != 0
    assert "there is no file" in missing.stderr
    assert list(tmp_path.iterdir()) == []
    with SQLiteStore(tmp_path / "memory.db"):
        pass
    connection = sqlite3.connect(tmp_path / "memory.db")
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    before = (tmp_path / "memory.db").read_bytes()
    done(f"sqlite:///{tmp_path}/memory.db", command)
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]
    assert (tmp_path / "memory.db").read_bytes() == before


def test_alembic_goes_where_a_manager_goes(postgresql: str) -> None:
    left_over = {"FIREFLY_AGENTIC_MEMORY_POSTGRES_URL": postgresql}
    for variables, words in (
        ({"FIREFLY_AGENTIC_MEMORY_BACKEND": "file"}, "the store is files"),
        ({"FIREFLY_AGENTIC_MEMORY_URL": "mongodb://h/"}, "the store is MongoDB"),
        ({"FIREFLY_AGENTIC_MEMORY_BACKEND": "nonsense"}, "FIREFLY_AGENTIC_MEMORY_BACKEND: must be one of"),
    ):
        refused = alembic("", "upgrade", "head", environment=left_over | variables)
        assert refused.returncode != 0
        assert words in refused.stderr
        assert "Traceback" not in refused.stderr
    assert done(postgresql, "current") == "", "nobody has migrated it"
    done(postgresql.replace("postgresql", "PostgreSQL", 1), "upgrade", "head")
    assert f"{HEAD} (head)" in done(postgresql, "current")


@pytest.mark.parametrize(
    ("url_and_arguments", "words"),
    [
        (("", "upgrade", "head"), "set FIREFLY_AGENTIC_MEMORY_URL"),
        (("mysql://h/x", "upgrade", "head"), "no store has a URL that starts with 'mysql'"),
        (("postgresql://user:s3cret@127.0.0.1:1/x", "upgrade", "head"), "alembic failed"),
        (("sqlite:///x.db?mode=ro", "upgrade", "head"), "no parameters"),
        (("postgresql://h/x", "-x", "schema=a-b", "upgrade", "head"), "cannot be a schema"),
        (("", "-x", "url=", "upgrade", "head"), "-x url= is empty"),
        (("postgresql://127.0.0.1:1/x", "-x", "schema=", "upgrade", "head"), "-x schema= is empty"),
    ],
)
def test_bad_input_is_one_clear_line(url_and_arguments: tuple[str, ...], words: str) -> None:
    finished = alembic(*url_and_arguments)
    assert finished.returncode != 0
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert "s3cret" not in finished.stderr


@pytest.mark.parametrize("arguments", [["current"], ["check"], ["stamp", "head"], ["downgrade", "base"]], ids=" ".join)
def test_alembic_makes_a_missing_sqlite_file_to_upgrade_it_only(arguments: list[str], tmp_path: Path) -> None:
    finished = alembic(f"sqlite:///{tmp_path}/not-there.db", *arguments)
    assert finished.returncode != 0
    assert "there is no file" in finished.stderr
    assert list(tmp_path.iterdir()) == []


def test_many_starts_at_once_on_an_empty_database(postgresql: str, tmp_path: Path) -> None:
    """Threads with stores of their own, as replicas would be; processes are in test_processes.py."""

    def start(number: int) -> None:
        with PostgreSQLStore(postgresql) as store:
            store.save("n", MemoryEntry(content=number))
        with SQLiteStore(tmp_path / "shared.db") as sqlite:
            sqlite.save("n", MemoryEntry(content=number))

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(start, range(16)))
    with PostgreSQLStore(postgresql) as store, SQLiteStore(tmp_path / "shared.db") as other:
        assert store.count("n") == other.count("n") == 16


async def test_stores_that_start_at_once_in_one_process_do_not_mix_up_their_migrations(
    place: Place, tmp_path: Path
) -> None:
    """Alembic keeps what it works on in globals."""
    names = [f"at_once_{uuid4().hex[:8]}" for _ in range(4)]
    stores = [
        *[PostgreSQLStore(place.postgresql(), schema_name=name) for name in names],
        *[SQLiteStore(tmp_path / f"{name}.db") for name in names],
    ]
    async with asyncio.timeout(60):
        await asyncio.gather(*[store.async_save("n", MemoryEntry(content=repr(store))) for store in stores])
    for store in stores:
        assert [entry.content for entry in store.load("n")] == [repr(store)]
        await store.close()
    execute(place.postgresql(), "".join(f"DROP SCHEMA {name} CASCADE;" for name in names))


def test_a_migrator_that_never_ends_is_not_waited_for_for_ever(postgresql: str) -> None:
    from firefly_memory.databases.sql.schema.migration_lock import lock_key

    with psycopg.connect(postgresql, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (lock_key("firefly_memory"),))
        with (
            pytest.raises(StoreTimeoutError, match="still migrating") as caught,
            PostgreSQLStore(postgresql, timeout=0.5),
        ):
            pass
        assert caught.value.retryable
    with PostgreSQLStore(postgresql) as store:
        store.save("n", MemoryEntry())


def test_a_failed_migration_leaves_nothing_half_done(postgresql: str) -> None:
    """A table in the way of the second statement undoes the first."""
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA firefly_memory")
        connection.execute("CREATE TABLE firefly_memory.idx_namespace_order (id INTEGER)")
    finished = alembic(postgresql, "upgrade", "head")
    assert finished.returncode != 0
    assert "memory_entries" not in str(catalogue(postgresql))
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("DROP TABLE firefly_memory.idx_namespace_order")
    done(postgresql, "upgrade", "head")


@pytest.mark.parametrize("autogenerate", [[], ["--autogenerate"]], ids=["plain", "autogenerate"])
def test_no_revision_is_written_into_the_installed_package(autogenerate: list[str], tmp_path: Path) -> None:
    """Every store would refuse to start: two revisions would be the newest."""
    package = shutil.copytree(ROOT / "src" / "firefly_memory", tmp_path / "site" / "firefly_memory")
    shutil.copytree(ROOT / "migrations", package / "migrations")  # as the wheel has it
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = firefly_memory:migrations\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
    environment = {**clean, "PYTHONPATH": str(tmp_path / "site"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "alembic", "-x", f"url=sqlite:///{tmp_path}/memory.db", *arguments]
        return subprocess.run(command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert run("upgrade", "head").returncode == 0
    before = sorted(package.rglob("*"))
    refused = run("revision", "-m", "mine", *autogenerate)
    assert refused.returncode != 0
    assert "alembic init" in " ".join((refused.stdout + refused.stderr).split())
    assert "Traceback" not in refused.stderr
    assert sorted(package.rglob("*")) == before


def test_a_checkout_may_write_revisions_of_its_own(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "src", checkout / "src")
    versions = shutil.copytree(ROOT / "migrations", checkout / "migrations") / "versions"
    shutil.copy(ROOT / "alembic.ini", checkout)
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "alembic", "revision", "-m", "ours"]
    subprocess.run(command, check=True, cwd=checkout, env=environment, capture_output=True)
    assert len(list(versions.glob("*_ours.py"))) == 1


def test_the_wheel_carries_the_migrations_and_an_ini_of_two_lines_finds_them(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("firefly_memory-*.whl")
    site = tmp_path / "site"
    shutil.unpack_archive(wheel, site, "zip")
    names = {str(path.relative_to(site)) for path in site.rglob("*")}
    assert {"firefly_memory/migrations/env.py", "firefly_memory/migrations/versions/0001_memory_entries.py"} <= names
    assert "firefly_memory/py.typed" in names
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = firefly_memory:migrations\n")
    run = [sys.executable, "-m", "alembic", "-x", f"url=sqlite:///{tmp_path}/memory.db", "upgrade", "head"]
    environment = os.environ | {"PYTHONPATH": str(site)}
    subprocess.run(run, check=True, cwd=tmp_path, env=environment, capture_output=True)
    use = "import firefly_memory, sys; s = firefly_memory.SQLiteStore(sys.argv[1]); s.save('n', firefly_memory.MemoryEntry()); print(firefly_memory.__file__)"
    for name in ("memory.db", "new.db"):
        command = [sys.executable, "-c", use, str(tmp_path / name)]
        used = subprocess.run(command, check=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert str(site) in used.stdout

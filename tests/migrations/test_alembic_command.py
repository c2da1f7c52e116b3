"""``alembic`` in a checkout: its database, and its errors about wrong input."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from firefly_memory import MemoryEntry, PostgreSQLStore, SQLiteStore
from firefly_memory.schema import HEAD
from tests.support.alembic_command import alembic, done


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
def test_reading_alembic_commands_change_nothing(command: str, tmp_path: Path) -> None:
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


def test_alembic_uses_the_database_of_a_manager(postgresql: str) -> None:
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
def test_invalid_input_is_one_clear_line(url_and_arguments: tuple[str, ...], words: str) -> None:
    finished = alembic(*url_and_arguments)
    assert finished.returncode != 0
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert "s3cret" not in finished.stderr


@pytest.mark.parametrize("arguments", [["current"], ["check"], ["stamp", "head"], ["downgrade", "base"]], ids=" ".join)
def test_alembic_creates_a_missing_sqlite_file_only_to_upgrade_it(arguments: list[str], tmp_path: Path) -> None:
    finished = alembic(f"sqlite:///{tmp_path}/not-there.db", *arguments)
    assert finished.returncode != 0
    assert "there is no file" in finished.stderr
    assert list(tmp_path.iterdir()) == []

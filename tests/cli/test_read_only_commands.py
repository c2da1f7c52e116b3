"""Reading commands create no file, schema or index. If something is missing, they name the command that creates it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pymongo
import pytest

from firefly_memory import FileStore, MemoryEntry, MongoDBStore, PostgreSQLStore, SQLiteStore, connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from tests.support.backends import Place
from tests.support.databases import execute
from tests.support.revisions import migrations

ANYWHERE = [["export", "--quiet"], ["doctor"]]
WITH_REVISIONS = [
    *ANYWHERE,
    ["db", "current"],
    ["db", "check"],
    ["db", "history"],
    ["db", "sql"],
    ["db", "downgrade", "base", "--dry-run"],
]


def of_directory(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir() if path.is_file()}


def reading(url: str, actions: list[list[str]], *options: str) -> dict[str, int]:
    """What each command ends with; ``copy`` from there is one of them."""
    ended = {" ".join(action[:2]): main([*action, "--url", url, *options]) for action in actions}
    of_source = [option.replace("--", "--from-") for option in options]
    ended["copy"] = main(["copy", "--from", url, *of_source, "--to", "memory:", "--without-agent-history", "--quiet"])
    return ended


def use(url: str, **options: Any) -> None:
    with connect(url, **options) as store:
        store.save("n", MemoryEntry(content=1))


def at_rest(url: str) -> None:
    use(url)


def with_a_rollback_journal(url: str) -> None:
    use(url)
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()


def left_by_a_killed_writer(url: str) -> None:
    use(url)
    write = (
        "import os, signal, sys; from firefly_memory import MemoryEntry, connect; store = connect(sys.argv[1]); "
        "store.save('n', MemoryEntry(content=2)); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", write, url], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert Path(f"{url.removeprefix('sqlite:///')}-wal").stat().st_size > 0


def read_only(url: str) -> None:
    use(url)
    path = Path(url.removeprefix("sqlite:///"))
    path.chmod(0o444)


@pytest.mark.parametrize("made", [at_rest, with_a_rollback_journal, left_by_a_killed_writer, read_only])
def test_reading_commands_do_not_change_an_sqlite_file(made: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    made(url)
    before = of_directory(tmp_path)
    ended = reading(url, WITH_REVISIONS)
    after = of_directory(tmp_path)
    assert {name: after[name] for name in before if not name.endswith("-shm")} == {
        name: found for name, found in before.items() if not name.endswith("-shm")
    }
    assert after.keys() == before.keys()
    if made is read_only and os.geteuid():
        assert ended.pop("doctor") == Exit.DRIFT
    assert set(ended.values()) == {Exit.DONE}


@pytest.mark.parametrize("action", [*WITH_REVISIONS[2:4], *ANYWHERE], ids=" ".join)
def test_reading_commands_do_not_upgrade_an_older_schema(
    action: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with migrations(url, timeout=10) as database:
        database.upgrade("0001")
    before = of_directory(tmp_path)
    ended = main([*action, "--url", url])
    assert of_directory(tmp_path) == before
    said = "".join(capsys.readouterr())
    assert ended == (Exit.DRIFT if action == ["doctor"] else Exit.BEHIND)
    assert "0001" in said
    if action[0] != "db":
        assert f"firefly-memory db upgrade --url {url}" in said


@pytest.mark.parametrize("there", [False, True])
def test_a_dry_run_of_an_import_writes_nothing(there: bool, tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new"
    new.mkdir()
    connection = sqlite3.connect(old)
    connection.execute("CREATE TABLE memory (namespace TEXT, entry_id TEXT, content TEXT)")
    connection.close()
    url = f"sqlite:///{new}/memory.db"
    if there:
        with_a_rollback_journal(url)
    before = of_directory(new)
    assert main(["db", "import-legacy", "--from", f"sqlite:///{old}", "--url", url, "--dry-run"]) == Exit.DONE
    assert of_directory(new) == before


def test_reading_an_idle_file_fails_if_it_changes_meanwhile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from firefly_memory import DatabaseStoreError
    from firefly_memory.stores.read_only import read_only_store

    path = tmp_path / "memory.db"
    use(f"sqlite:///{path}")
    with (
        pytest.raises(DatabaseStoreError, match=r"somebody wrote to .* meanwhile") as caught,
        read_only_store(path) as store,
    ):
        assert store.count("n") == 1
        with SQLiteStore(path) as writer:
            writer.save_many("n", [MemoryEntry(content="x" * 10_000) for _ in range(100)])
    assert caught.value.retryable
    with read_only_store(path) as store:
        assert store.count("n") == 101


def test_an_export_of_a_changing_file_leaves_no_archive(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save_many("n", [MemoryEntry(content="x" * 1_000) for _ in range(5_000)])
    command = [sys.executable, "-m", "firefly_memory.cli", "export", "--url", "sqlite:///memory.db", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as exporting:
        while not any(partial.stat().st_size for partial in tmp_path.glob(".*.partial")):
            assert exporting.poll() is None
        exporting.send_signal(signal.SIGSTOP)
        use(f"sqlite:///{tmp_path}/memory.db")
        exporting.send_signal(signal.SIGCONT)
        said = exporting.communicate()[1]
    assert (exporting.returncode, "Traceback" in said) == (Exit.FAILED, False)
    assert "somebody wrote to" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["memory.db"]


def test_a_file_can_be_read_beside_an_open_writer(tmp_path: Path) -> None:
    from firefly_memory.stores.read_only import read_only_store

    path = tmp_path / "memory.db"
    with SQLiteStore(path) as writer:
        writer.save("n", MemoryEntry())
        with read_only_store(path) as store:
            assert store.count("n") == 1
            writer.save("n", MemoryEntry())
            assert store.count("n") == 2


def test_reading_commands_do_not_change_files(tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        store.save("n", MemoryEntry())
    before, there = of_directory(tmp_path), sorted(tmp_path.rglob("*"))
    assert set(reading(f"file:{tmp_path}", ANYWHERE).values()) == {Exit.DONE}
    assert (of_directory(tmp_path), sorted(tmp_path.rglob("*"))) == (before, there)


def test_a_read_only_role_is_enough(postgresql: str, admin: psycopg.Connection[Any]) -> None:
    role = f"reader_{uuid4().hex[:8]}"
    with PostgreSQLStore(postgresql) as store:
        store.save("n", MemoryEntry())
    admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'".encode())
    try:
        execute(postgresql, f"GRANT USAGE ON SCHEMA firefly_memory TO {role}")
        execute(postgresql, f"GRANT SELECT ON ALL TABLES IN SCHEMA firefly_memory TO {role}")
        execute(postgresql, f"ALTER ROLE {role} SET default_transaction_read_only = on")
        url = f"postgresql://{role}:secret@{postgresql.rpartition('@')[2]}"
        ended = reading(url, WITH_REVISIONS)
        assert ended.pop("doctor") == Exit.DRIFT, "a service has to write"
        assert set(ended.values()) == {Exit.DONE}
    finally:
        execute(postgresql, f"DROP OWNED BY {role}")
        admin.execute(f"DROP ROLE {role}".encode())


def test_no_schema_is_made_on_postgresql(postgresql: str) -> None:
    ended = reading(postgresql, WITH_REVISIONS)
    assert ended == {
        "export --quiet": Exit.BEHIND,
        "doctor": Exit.DRIFT,
        "db current": Exit.BEHIND,
        "db check": Exit.BEHIND,
        "db history": Exit.DONE,
        "db sql": Exit.DONE,
        "db downgrade": Exit.DONE,
        "copy": Exit.BEHIND,
    }
    assert execute(postgresql, "SELECT 1 FROM pg_namespace WHERE nspname = 'firefly_memory'") == []


@pytest.fixture
def mongodb(place: Place) -> Iterator[tuple[pymongo.MongoClient[Any], str]]:
    name = f"reading_{uuid4().hex[:12]}"
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(place.mongodb()) as client:
        yield client, name
        client.drop_database(name)


def test_no_collection_or_index_is_made_on_mongodb(place: Place, mongodb: Any) -> None:
    client, name = mongodb
    actions = [*ANYWHERE, ["db", "check"]]
    ended = reading(place.mongodb(), actions, "--database", name)
    assert ended == {"export --quiet": 3, "doctor": 5, "db check": 3, "copy": 3}
    assert name not in client.list_database_names()
    with MongoDBStore(place.mongodb(), database=name) as store:
        store.save("n", MemoryEntry())
    client[name].entries.drop_index("expires_at_1")
    indexes = {each: client[name][each].index_information() for each in client[name].list_collection_names()}
    assert reading(place.mongodb(), actions, "--database", name) == ended
    assert {each: client[name][each].index_information() for each in client[name].list_collection_names()} == indexes


def test_a_read_only_mongodb_user_is_enough(place: Place, mongodb: Any) -> None:
    client, name = mongodb
    with MongoDBStore(place.mongodb(), database=name) as store:
        store.save("n", MemoryEntry())
    client[name].command("createUser", "reader", pwd="secret", roles=[{"role": "read", "db": name}])
    server = place.mongodb().partition("://")[2].rpartition("@")[2].partition("?")[0]
    url = f"mongodb://reader:secret@{server}?directConnection=true&authSource={name}"
    ended = reading(url, [["export", "--quiet"], ["db", "check"]], "--database", name)
    client[name].command("dropUser", "reader")
    assert set(ended.values()) == {Exit.DONE}

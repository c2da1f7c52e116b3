"""Paths and URLs of SQLite stores: a path is resolved once, and an error shows no secret."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firefly_memory import (
    ConfigurationError,
    DatabaseConnectionError,
    MemoryEntry,
    MemoryManager,
    SchemaMismatchError,
    SQLiteStore,
    StoreClosedError,
    connect,
)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_relative_path_is_resolved_when_the_store_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(here)
    store = SQLiteStore(Path("data", "memory.db"))
    monkeypatch.chdir(elsewhere)  # before anything is opened
    with ThreadPoolExecutor(8) as threads:  # each opens a connection
        list(threads.map(lambda number: store.save("n", MemoryEntry(content=number)), range(40)))
    child = os.fork()  # and so do both sides of a fork
    if child == 0:
        os._exit(0 if store.count("n") == 40 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.count("n") == 40
    assert repr(store) == "SQLiteStore('data/memory.db')"
    store.close_sync()
    assert [path.name for path in (here / "data").iterdir()] == ["memory.db"]
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://:s3cretpass@/x.db",
        "sqlite+pysqlcipher://:s3cretpass@/x.db",
        "sqlite:///x.db?key=s3cretpass",
        "sqlite+aiosqlite:///x.db?key=s3cretpass",
    ],
)
def test_an_invalid_url_is_not_shown(url: str) -> None:
    for make in (connect, SQLiteStore):
        with pytest.raises(ConfigurationError) as caught:
            make(url)
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://ana:s3cretpass@db/x", "sqlite+aiosqlite:///x.db", "file:///x.db"])
def test_a_url_given_as_a_path_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"use firefly_memory\.connect") as caught:
        SQLiteStore(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("path", ["memory.db", "new/directory/memory.db"])
def test_a_missing_file_is_not_created_with_migrate_false(path: str, tmp_path: Path) -> None:
    there = tmp_path / path
    store = SQLiteStore(there, migrate=False)
    with pytest.raises(SchemaMismatchError, match=f"there is no file {there}, .*run: firefly-memory db upgrade$"):
        store.initialize_sync()
    with pytest.raises(SchemaMismatchError, match="there is no file"):
        store.load("n")
    with pytest.raises(SchemaMismatchError, match="there is no file"):
        asyncio.run(store.async_save("n", MemoryEntry()))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SchemaMismatchError, match="there is no file"):
        SQLiteStore(there).initialize_sync(migrate=False)
    assert list(tmp_path.iterdir()) == []
    store.initialize_sync(migrate=True)
    store.save("n", MemoryEntry())
    assert store.count("n") == 1
    store.close_sync()


def test_a_manager_with_migrate_false_creates_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL", f"sqlite:///{tmp_path}/new/memory.db")
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MIGRATE", "false")
    with pytest.raises(SchemaMismatchError, match="there is no file"):
        MemoryManager.from_config()
    assert list(tmp_path.iterdir()) == []


def test_an_in_memory_database_with_migrate_false_lacks_its_schema() -> None:
    store = SQLiteStore(":memory:", migrate=False)
    with pytest.raises(SchemaMismatchError, match="the schema is missing"):
        store.load("n")
    store.close_sync()


def test_an_error_of_the_directory_names_the_operation(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    store = SQLiteStore(tmp_path / "taken" / "memory.db")
    with pytest.raises(DatabaseConnectionError) as caught:
        store.save_many("n", [MemoryEntry()])
    assert caught.value.operation == "save_many"


def test_a_closed_store_creates_no_directory(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "new" / "memory.db")
    store.close_sync()
    with pytest.raises(StoreClosedError):
        store.count("n")
    assert not (tmp_path / "new").exists()

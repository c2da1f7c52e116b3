"""Import of the predecessors' data into stores of this library."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from firefly_memory import MemoryEntry, MongoDBStore, SQLiteStore, WorkingMemory, connect
from firefly_memory.transfer.importers.firefly_legacy.sources import Where, legacy_source
from firefly_memory.transfer.importers.importing import import_entries
from tests.support.backends import Place
from tests.support.command_line import run
from tests.support.legacy_databases import (
    COUNTS,
    EARLY,
    ENTRIES,
    NEW,
    PAST,
    PLACES,
    ROWS,
    Old,
    counts,
    dump_of,
    entries_of,
    entry,
    expected,
    fill_sqlite,
    imported,
    many,
    mongodb,
    new_database,
    old_directory,
    sqlite_whole,
)
from tests.support.ram_use import Work, assert_more_takes_no_more_memory
from tests.support.servers import pause
from tests.support.terminal import shown_on_a_terminal

pytestmark = pytest.mark.thorough


@pytest.fixture
def database(place: Place) -> Iterator[str]:
    with new_database(place) as url:
        yield url


@pytest.mark.parametrize("kind", PLACES)
def test_every_legacy_layout_is_imported_once(kind: str, place: Place, database: str) -> None:
    old = PLACES[kind](place, database)
    before = old.dump()
    first = COUNTS | ({"expired": 0} if kind.endswith("001") else {})
    again = first | {"taken": 0, "there_already": 4}
    for outcome in (first, again, again):
        assert counts(imported(old, "sqlite:///new.db", place.directory)) == outcome
        with SQLiteStore(place.directory / "new.db") as store:
            assert entries_of(store) == expected(kind)
            assert store.namespaces() == sorted(ENTRIES)
            keys = list(store.load("session:42")[0].content)
            assert keys == (["a", "z"] if kind.startswith("postgresql") and "text" not in kind else ["z", "a"])
    assert old.dump() == before


@pytest.mark.parametrize("kind", NEW)
def test_legacy_data_can_be_imported_into_every_store(kind: str, place: Place, database: str) -> None:
    old, url = sqlite_whole(place), NEW[kind](place, database)
    collection = f"legacy_{uuid4().hex}"
    variables = {"FIREFLY_AGENTIC_MEMORY_MONGODB_COLLECTION": collection}
    for outcome in (COUNTS, COUNTS | {"taken": 0, "there_already": 4}):
        assert counts(imported(old, url, place.directory, variables=variables)) == outcome
    if kind == "mongodb":
        with MongoDBStore(url, collection=collection) as store:
            assert entries_of(store) == expected("sqlite")
        with mongodb(place, "firefly_memory") as documents:
            documents.drop_collection(collection)
        return
    with connect(url.replace("new", f"{place.directory}/new")) as store:
        assert entries_of(store) == expected("sqlite")


def test_the_environment_names_the_new_store_and_files_name_both(place: Place, database: str) -> None:
    old = sqlite_whole(place)
    (place.directory / "from").write_text(f"{old.url}\n")
    (place.directory / "to").write_text(database)
    arguments = ["db", "import-legacy", "--from-file", "from"]
    settings = {"FIREFLY_AGENTIC_MEMORY_POSTGRES_URL": database, "FIREFLY_AGENTIC_MEMORY_POSTGRES_SCHEMA": "agents"}
    ended = run(*arguments, cwd=place.directory, **settings)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "table memory_entries: 4 taken, 0 there already, 2 expired, 0 superseded, 0 refused\n"
    ended = run(*arguments, "--url-file", "to", "--schema", "agents", cwd=place.directory)
    assert ended.stdout == (
        "table memory_entries: 0 taken, 4 there already, 2 expired, 0 superseded, 0 refused\nnothing to do\n"
    )
    with connect(database, schema_name="agents") as store:
        assert entries_of(store) == expected("sqlite")
    file_settings = {"FIREFLY_AGENTIC_MEMORY_BACKEND": "file", "FIREFLY_AGENTIC_MEMORY_FILE_DIR": "new"}
    assert run(*arguments, cwd=place.directory, **file_settings).returncode == 0
    assert (place.directory / "new").is_dir()


def test_the_new_store_may_be_a_mongodb_that_options_name(place: Place) -> None:
    old = sqlite_whole(place)
    name = f"legacy_{uuid4().hex}"
    options = ["--to-database", name, "--to-collection", "mine"]
    shouted = place.mongodb().replace("mongodb", "MONGODB", 1)
    assert counts(imported(old, shouted, place.directory, *options)) == COUNTS
    with MongoDBStore(shouted, database=name, collection="mine") as store:
        assert entries_of(store) == expected("sqlite")
    with mongodb(place, name) as documents:
        documents.client.drop_database(name)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_import_can_be_continued(kind: str, place: Place, database: str) -> None:
    total = 20_000
    fill_sqlite(place.directory / "old.db", many(total))
    url = NEW[kind](place, database).replace("///", f"///{place.directory}/")
    with connect(url) as store:
        store.initialize_sync()
    command = [
        sys.executable,
        "-m",
        "firefly_memory.cli",
        "db",
        "import-legacy",
        "--from",
        "sqlite:///old.db",
        "--url",
        url,
    ]
    with connect(url) as store, subprocess.Popen(command, cwd=place.directory, stdout=subprocess.DEVNULL) as child:
        while store.count("large") < 1000:
            assert child.poll() is None
            pause(0.001)
        child.kill()
        child.wait()
        half = store.count("large")
        assert 1000 <= half < total // 2
    result = imported(Old("sqlite:///old.db", dict), url, place.directory)
    assert result["taken"] + result["there_already"] == total
    assert result["there_already"] >= half
    assert counts(imported(Old("sqlite:///old.db", dict), url, place.directory))["there_already"] == total
    with connect(url) as store:
        assert store.count("large") == total // 2
        assert sum(store.count(each) for each in store.namespaces("small", 2000)) == total // 2


@contextmanager
def importing(rows: int, directory: Path) -> Iterator[Sequence[Work]]:
    fill_sqlite(directory / "old.db", many(rows))
    with (
        SQLiteStore(directory / "new.db") as store,
        legacy_source(f"sqlite:///{directory}/old.db", Where(), timeout=30) as source,
    ):
        store.initialize_sync()
        found = []
        yield [lambda: found.append(import_entries(source, store))]
        assert [counts.taken for counts in found] == [rows]


def test_the_memory_of_an_import_does_not_grow_with_the_source(tmp_path: Path) -> None:
    assert_more_takes_no_more_memory(importing, tmp_path, 2_000, 20_000)


@pytest.mark.parametrize("kind", NEW)
def test_a_dry_run_checks_everything_and_writes_nothing(kind: str, place: Place, database: str) -> None:
    rows = [(each["entry_id"], namespace, json.dumps(each)) for namespace, each in ROWS]
    fill_sqlite(place.directory / "old.db", [*rows, ("bad", "n", "{")])
    old = Old("sqlite:///old.db", dict)
    url = NEW[kind](place, database)
    variables = {"FIREFLY_AGENTIC_MEMORY_MONGODB_COLLECTION": f"legacy_{uuid4().hex}"}

    def everything() -> Any:
        with psycopg.connect(database) as connection:
            relations = connection.execute("SELECT oid FROM pg_class ORDER BY oid").fetchall()
        with mongodb(place, "firefly_memory") as documents:
            return dump_of(place.directory), relations, sorted(documents.list_collection_names())

    before = everything()
    result = imported(old, url, place.directory, "--dry-run", code=5, variables=variables)
    assert everything() == before
    assert counts(result) == COUNTS | {"refused": 1}
    assert result["dry_run"] is True
    imported(old, url, place.directory, code=5, variables=variables)
    result = imported(old, url, place.directory, "--dry-run", code=5, variables=variables)
    assert counts(result) == {"taken": 0, "there_already": 4, "expired": 2, "refused": 1}
    words = run("db", "import-legacy", "--from", old.url, "--url", "memory:", "--dry-run", cwd=place.directory)
    assert words.stdout.startswith("table memory_entries: 4 would be taken, 0 there already")
    with mongodb(place, "firefly_memory") as documents:
        documents.drop_collection(variables["FIREFLY_AGENTIC_MEMORY_MONGODB_COLLECTION"])


def test_an_import_never_replaces_entries_of_the_new_store(place: Place) -> None:
    old = sqlite_whole(place)
    in_use = {
        "one": MemoryEntry(entry_id="one", content="from elsewhere", created_at=EARLY - timedelta(days=1)),
        "two": MemoryEntry(entry_id="two", content="newer", created_at=EARLY),
    }
    with SQLiteStore(place.directory / "new.db") as store:
        store.save_many("session:42", in_use.values())
        store.save("elsewhere", MemoryEntry(entry_id="three"))
        in_use["three"] = store.load("elsewhere")[0]
    result = imported(old, "sqlite:///new.db", place.directory, code=5)
    assert {each["entry_id"] for reason in result["reasons"] for each in reason["examples"]} == in_use.keys()
    assert counts(result) == {"taken": 1, "there_already": 0, "expired": 2, "refused": 3}
    with SQLiteStore(place.directory / "new.db") as store:
        assert {name: each for name, each in entries_of(store).items() if name in in_use} == in_use


def test_imported_facts_of_working_memory_are_facts(place: Place) -> None:
    values = [("old", 1), ("newest", 3), ("older", 2)]
    facts = [
        entry(value, key="k", content=value, created_at=(EARLY + timedelta(days=day)).isoformat())
        for value, day in values
    ]
    facts += [entry("n", key="number", content=41), entry("gone", key="k", content="gone", expires_at=PAST.isoformat())]
    path = old_directory(place) / "old.db"
    fill_sqlite(path, [(each["entry_id"], "working:s", json.dumps(each)) for each in facts])
    old = Old(f"sqlite:///{path}", lambda: None)
    for taken in (2, 0):
        result = imported(old, "sqlite:///new.db", place.directory)
        assert (result["taken"], result["there_already"], result["superseded"], result["expired"]) == (
            taken,
            2 - taken,
            2,
            1,
        )
    with SQLiteStore(place.directory / "new.db") as store:
        memory = WorkingMemory(store=store, scope_id="s")
        assert memory.to_dict() == {"k": "newest", "number": 41}
        assert memory.increment("number") == 42
        assert memory.compare_and_set("k", "newest", "set")
        memory.delete("k")
        assert memory.get("k") is None


def test_a_terminal_shows_a_progress_bar(place: Place) -> None:
    fill_sqlite(place.directory / "old.db", many(5000))
    arguments = ["--from", "sqlite:///old.db", "--url", "sqlite:///new.db"]
    shown = shown_on_a_terminal("db", "import-legacy", *arguments, cwd=place.directory)
    assert b" taken, 0 refused" in shown

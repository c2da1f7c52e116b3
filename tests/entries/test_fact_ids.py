"""Ids of facts: nobody else can choose them, and existing facts get them by an upgrade."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pymongo
import pytest
from sqlalchemy import create_engine, insert

from firefly_memory import (
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    SchemaMismatchError,
    SQLiteStore,
    WorkingMemory,
)
from firefly_memory.archive import export_jsonl, import_jsonl
from firefly_memory.cli import main
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.copying import copy_store
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.entries.fact_ids import fact_id
from firefly_memory.entries.mongodb.documents import document_id as _id_of
from firefly_memory.entries.mongodb.fact_ids import _renamed
from firefly_memory.entries.record import Position
from firefly_memory.identifiers import original_name
from tests.support.backends import Place
from tests.support.earlier_facts import NOW, SCOPES, id_of_before, rows_of_before, rows_of_mallory
from tests.support.mongodb_commands import AtCommand
from tests.support.servers import EmbeddedMongoDB


def check_that_nothing_is_stuck(store: EntryStore, tmp_path: Path) -> None:
    """That the victim can set its facts, and whatever is there can be saved again, exported, imported and copied."""
    (name,) = store.load("working:victim")
    assert name.entry_id == fact_id("working:victim", "name")
    victim = WorkingMemory(scope_id="victim", store=store)
    for key in ("name", "secret", "role", "age"):
        victim.set(key, "of the victim")
        assert victim.get(key) == "of the victim"
    (own,) = [each for each in store.load("working:\x10mallory") if each.key == "own"]
    assert own.entry_id == fact_id("working:\x10mallory", "own")
    for namespace in store.namespaces():
        for entry in store.load(namespace):
            store.save(namespace, entry)
    assert sum(store.count(namespace) for namespace in store.namespaces()) == len(rows_of_mallory()) + 3 - of_files(
        store
    )
    (escape,) = [each for each in store.load("notes") if each.key == "escape"]
    assert escape.entry_id.endswith(":fact:" + "a" * 394)
    archive = io.StringIO()
    export_jsonl(store, archive)
    imported = InMemoryStore()
    import_jsonl(imported, io.StringIO(archive.getvalue()))
    assert copy_store(store, imported).equal
    import_jsonl(store, io.StringIO(archive.getvalue()), dry_run=True)
    with SQLiteStore(tmp_path / "copy.db") as copied:
        assert copy_store(store, copied).equal


def of_files(store: EntryStore) -> int:
    """The rows in namespaces of conversations: files have had none, but conversations themselves."""
    return 2 if isinstance(store, FileStore) else 0


def check(store: EntryStore) -> None:
    """That everything is there under the ids of today, and can be changed."""
    for scope in SCOPES:
        facts = WorkingMemory(scope_id=scope, store=store)
        for key in ("name", "age"):
            assert facts.get(key) == ascii(f"working:{scope} {key}")
            (entry,) = [each for each in store.load(facts.namespace) if each.key == key]
            assert entry.entry_id == fact_id(facts.namespace, key)
        facts.set("name", "another")
        assert facts.keys().count("name") == 1
        assert facts.get("name") == "another"
    assert {"mine", "no key"} < {entry.entry_id for entry in store.load("working:alice")}
    assert [entry.entry_id for entry in store.load("renamed:conv:c")] == ["of the application"]
    zeros, moved = sorted(entry.entry_id for entry in store.load("notes"))
    assert zeros == "0" * 64
    assert moved.startswith("renamed:")
    assert moved.endswith(f":{fact_id('working:alice', 'name')}")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, place: Place, name: str, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else place.postgresql()


@pytest.fixture
def db(url: str, name: str) -> Callable[..., None]:
    def run(*arguments: str) -> None:
        place = [] if url.startswith("sqlite") else ["--schema", name]
        assert main(["db", *arguments, "--url", url, *place]) == 0

    return run


def opened(url: str, name: str) -> EntryStore:
    if url.startswith("sqlite"):
        return SQLiteStore(url.removeprefix("sqlite:///"), migrate=False)
    return PostgreSQLStore(url, schema_name=name, migrate=False, pool_min_size=0)


def save_as_before(url: str, name: str, of_before: list[dict[str, Any]]) -> None:
    on_sqlite = url.startswith("sqlite")
    entries = schema.metadata(None if on_sqlite else name).tables[
        "memory_entries" if on_sqlite else f"{name}.memory_entries"
    ]
    engine = create_engine(url if on_sqlite else url.replace("postgresql://", "postgresql+psycopg://"))
    moment = NOW.isoformat(timespec="microseconds") if on_sqlite else NOW
    rows = (
        of_before
        if on_sqlite
        else [{**row, "content": json.loads(row["content"]), "metadata": {}} for row in of_before]
    )
    with engine.begin() as connection:
        connection.execute(insert(entries), [{**row, "created_at": moment} for row in rows])
    engine.dispose()


def test_an_upgrade_gives_existing_facts_their_ids(url: str, name: str, db: Callable[..., None]) -> None:
    db("upgrade", "0003")
    save_as_before(url, name, rows_of_before())
    with pytest.raises(SchemaMismatchError, match="is at 0003"), opened(url, name):
        pass
    db("upgrade")
    db("downgrade", "0003", "--yes")
    db("upgrade")
    db("downgrade", "0004", "--yes")
    db("stamp", "0003")
    db("upgrade")  # a second time changes nothing
    with opened(url, name) as store:
        check(store)


def test_ids_planted_before_an_upgrade_block_no_fact_after_it(
    url: str, name: str, db: Callable[..., None], tmp_path: Path
) -> None:
    db("upgrade", "0003")
    save_as_before(url, name, rows_of_mallory())
    db("upgrade")
    with opened(url, name) as store:
        before = {namespace: store.load(namespace) for namespace in store.namespaces()}
    db("downgrade", "0004", "--yes")
    db("stamp", "0003")
    db("upgrade")  # a second time changes nothing
    with opened(url, name) as store:
        assert {namespace: store.load(namespace) for namespace in store.namespaces()} == before
        check_that_nothing_is_stuck(store, tmp_path)
    db("downgrade", "0003", "--yes")
    db("upgrade")
    with opened(url, name) as store:
        assert [entry.entry_id for entry in store.load("renamed:conv:" + "x" * 499)] == ["longest"]


def test_a_downgrade_succeeds_although_a_former_id_is_taken(url: str, name: str, db: Callable[..., None]) -> None:
    db("upgrade")
    with opened(url, name) as store:
        WorkingMemory(scope_id="alice", store=store).set("name", "Alice")
        store.save("notes", MemoryEntry(entry_id=id_of_before("working:alice", "name"), content="in the way"))
    db("downgrade", "0003", "--yes")
    db("upgrade")
    with opened(url, name) as store:
        assert WorkingMemory(scope_id="alice", store=store).to_dict() == {"name": "Alice"}
        (moved,) = store.load("notes")
        assert moved.content == "in the way"
        assert moved.entry_id.endswith(id_of_before("working:alice", "name"))


@pytest.fixture(scope="module", params=["replica set", "standalone"])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedMongoDB]:
    server = EmbeddedMongoDB(replica_set=request.param == "replica set")
    server.start()
    yield server
    server.remove()


def save_in_mongodb_as_before(server: EmbeddedMongoDB, name: str, of_before: list[dict[str, Any]]) -> None:
    documents = [
        {
            **row,
            "_id": _id_of(Position(NOW, row["entry_id"])),
            "content": json.loads(row["content"]),
            "metadata": {},
            "created_at": NOW,
            "expires_at": None,
        }
        for row in of_before
    ]
    with pymongo.MongoClient[dict[str, Any]](server.url) as client:
        client[name].entries.insert_many(documents)
        client[name].memory_version.drop()


def test_mongodb_gives_existing_facts_their_ids_whoever_starts_first(server: EmbeddedMongoDB, name: str) -> None:
    with MongoDBStore(server.url, database=name):
        pass  # the indexes
    save_in_mongodb_as_before(server, name, rows_of_before())
    with (
        pytest.raises(
            SchemaMismatchError, match=r"where ids of facts begin with 'fact:' .*; run: firefly-memory db upgrade"
        ),
        MongoDBStore(server.url, database=name, migrate=False),
    ):
        pass

    def start(_: int) -> None:
        with MongoDBStore(server.url, database=name):
            pass

    with ThreadPoolExecutor(8) as processes:
        list(processes.map(start, range(8)))
    with MongoDBStore(server.url, database=name, migrate=False) as store:
        assert len(store.load("working:alice")) == 4
        check(store)
        places = [entry.entry_id for entry in store.load("working:bob")]
        assert [store.load_page("working:bob", 1).entries[0].entry_id] == places[:1]


def test_a_slow_process_does_not_rename_a_fact_under_a_reused_id(server: EmbeddedMongoDB, name: str) -> None:
    """The ``_id`` that a slow process still wants to rename may be that of a fact by then."""
    with MongoDBStore(server.url, database=name):
        pass  # the indexes
    save_in_mongodb_as_before(server, name, rows_of_before())
    with MongoDBStore(server.url, database=name) as store:
        store.initialize_sync()
        connection = store.database.blocking()
        planted = _id_of(Position(NOW, fact_id("working:alice", "name")))
        assert connection.entries.find_one({"_id": planted})["namespace"] == "working:alice"
        everything = [document["_id"] for document in connection.entries.find()]
        assert run_without_loop(_renamed(connection, everything, None)) == []


def test_mongodb_frees_ids_that_were_planted(server: EmbeddedMongoDB, name: str, tmp_path: Path) -> None:
    with MongoDBStore(server.url, database=name):
        pass  # the indexes
    save_in_mongodb_as_before(server, name, rows_of_mallory())
    with MongoDBStore(server.url, database=name) as store:
        check_that_nothing_is_stuck(store, tmp_path)


def test_mongodb_continues_an_interrupted_renaming_on_a_standalone_server(server: EmbeddedMongoDB, name: str) -> None:
    with MongoDBStore(server.url, database=name) as store:
        WorkingMemory(scope_id="alice", store=store).set("name", "Alice")
    with pymongo.MongoClient[dict[str, Any]](server.url) as client:
        (fact,) = client[name].entries.find()
        old = id_of_before("working:alice", "name")
        client[name].entries.insert_one({**fact, "_id": f"{fact['_id'].partition('/')[0]}/{old}", "entry_id": old})
        client[name].memory_version.drop()
    with MongoDBStore(server.url, database=name) as store:
        assert [entry.entry_id for entry in store.load("working:alice")] == [fact_id("working:alice", "name")]


def test_mongodb_needs_no_version_document_if_all_ids_are_present_ones(server: EmbeddedMongoDB, name: str) -> None:
    with MongoDBStore(server.url, database=name) as store:
        WorkingMemory(store=store).set("name", "Alice")
    with pymongo.MongoClient[dict[str, Any]](server.url) as client:
        client[name].memory_version.drop()
    with MongoDBStore(server.url, database=name, migrate=False) as store:
        assert WorkingMemory(store=store).get("name") == "Alice"


def test_files_give_facts_their_ids_on_reading_and_store_them_on_writing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    facts = WorkingMemory(scope_id="alice", store=store)
    facts.set("name", "Alice")
    facts.set("age", 42)
    (file,) = tmp_path.glob("*.json")
    file.write_text(file.read_text().replace('"fact:', '"'))
    assert id_of_before("working:alice", "name") in file.read_text()
    assert [entry.entry_id for entry in store.load("working:alice")] == [
        fact_id("working:alice", "name"),
        fact_id("working:alice", "age"),
    ]
    facts.set("name", "Anna")
    assert facts.to_dict() == {"name": "Anna", "age": 42}
    assert '"fact:' in file.read_text()
    assert f'"{id_of_before("working:alice", "age")}"' not in file.read_text()


def test_files_free_ids_that_were_planted(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "files")
    rows = [row for row in rows_of_mallory() if not row["namespace"].startswith("conversation:")]
    for number, row in enumerate(rows):
        store.save(original_name(row["namespace"]), MemoryEntry(entry_id=f"number {number}", key=row["key"], content=1))
    for file in (tmp_path / "files").glob("*.json"):
        document = json.loads(file.read_text())
        for entry in document["entries"]:
            entry["entry_id"] = rows[int(entry["entry_id"].removeprefix("number "))]["entry_id"]
        file.write_text(json.dumps(document))
    check_that_nothing_is_stuck(store, tmp_path)


def test_a_file_with_a_fact_under_both_ids_keeps_both(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    facts = WorkingMemory(scope_id="alice", store=store)
    facts.set("name", "of today")
    store.save(facts.namespace, MemoryEntry(entry_id="before", key="name", content="of before"))
    (file,) = tmp_path.glob("*.json")
    file.write_text(file.read_text().replace('"before"', f'"{id_of_before(facts.namespace, "name")}"'))
    found = {entry.entry_id: entry.content for entry in store.load(facts.namespace)}
    assert found.pop(fact_id(facts.namespace, "name")) == "of today"
    ((moved, content),) = found.items()
    assert moved.startswith("renamed:")
    assert content == "of before"
    archive = io.StringIO()
    export_jsonl(store, archive)
    target = InMemoryStore()
    import_jsonl(target, io.StringIO(archive.getvalue()))
    assert target.count(facts.namespace) == 2


def test_an_older_archive_is_imported_with_the_present_ids() -> None:
    source = InMemoryStore()
    WorkingMemory(scope_id="alice", store=source).set("name", "Alice")
    archive = io.StringIO()
    export_jsonl(source, archive)
    target = InMemoryStore()
    for _ in range(2):
        import_jsonl(target, io.StringIO(archive.getvalue().replace('"fact:', '"')))
        assert copy_store(source, target).equal


def test_every_archive_import_renames_an_entry_under_the_id_of_a_fact_alike() -> None:
    source = InMemoryStore()
    WorkingMemory(scope_id="alice", store=source).set("name", "Alice")
    source.save("renamed:conv:c", MemoryEntry(entry_id="of the application", content=1))
    archive = io.StringIO()
    export_jsonl(source, archive)
    text = archive.getvalue().replace("working:alice", "working:mallory").replace("renamed:conv:", "conversation:")
    target = InMemoryStore()
    for _ in range(2):
        import_jsonl(target, io.StringIO(text))
        assert target.namespaces() == ["renamed:conv:c", "working:mallory"]
        assert [entry.entry_id for entry in target.load("renamed:conv:c")] == ["of the application"]
        (moved,) = target.load("working:mallory")
        assert moved.content == "Alice"
        assert moved.entry_id.startswith("renamed:")
        assert moved.entry_id.endswith(f":{fact_id('working:alice', 'name')}")
    alice = WorkingMemory(scope_id="alice", store=target)
    alice.set("name", "of Alice")
    assert alice.get("name") == "of Alice"


@pytest.mark.parametrize("server", ["standalone"], indirect=True)
def test_a_standalone_mongodb_loses_no_fact_whenever_another_process_starts(server: EmbeddedMongoDB, name: str) -> None:
    between = AtCommand()
    with pymongo.MongoClient[dict[str, Any]](server.url, event_listeners=[between]) as client:
        commands = 1
        while True:
            with MongoDBStore(server.url, database=name):
                pass  # the indexes
            with pymongo.MongoClient[dict[str, Any]](server.url) as other:
                other[name].entries.delete_many({})
            save_in_mongodb_as_before(server, name, rows_of_before())
            began: list[int] = []

            def start(began: list[int] = began) -> None:
                began.append(1)
                with MongoDBStore(server.url, database=name):
                    pass

            between.arm(commands, start)
            with MongoDBStore(client=client, database=name) as store:
                assert len(store.load("working:alice")) == 4, f"at command {commands}"
            between.arm(0, lambda: None)
            if not began:
                break
            commands += 1
        assert commands > 20

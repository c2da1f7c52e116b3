"""The ids of facts: closed to whoever may choose an ``entry_id``, and given to the facts that were there before."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pymongo
import pytest
from sqlalchemy import create_engine, insert

from firefly_memory import (
    CorruptDataError,
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    SchemaMismatchError,
    SQLiteStore,
    WorkingMemory,
    schema,
)
from firefly_memory.archive import export_jsonl, import_jsonl
from firefly_memory.cli import main
from firefly_memory.copying import copy_store
from firefly_memory.facts import fact_id
from firefly_memory.names import stored_name
from firefly_memory.stores.mongodb.documents import place as _id_of
from firefly_memory.stores.records import Position
from tests.backends import Place
from tests.servers import EmbeddedMongoDB

NOW = datetime(2026, 1, 1, tzinfo=UTC)

SCOPES = ["alice", "bob", "with \x00, \x10 and \ud800"]


def id_of_before(namespace: str, key: str) -> str:
    return hashlib.sha256(f"{namespace}\x00{stored_name('key', key)}".encode("utf-8", "surrogatepass")).hexdigest()


def rows_of_before() -> list[dict[str, Any]]:
    """Facts, an entry of the application's own beside them, and what somebody has put in the way of alice's name."""
    facts = [
        (f"working:{scope}", key, id_of_before(f"working:{scope}", key)) for scope in SCOPES for key in ("name", "age")
    ]
    others = [
        ("working:alice", "mine", "mine"),
        ("working:alice", None, "no key"),
        ("conversation:c", "name", "of the application"),
        ("notes", "name", "0" * 64),
        ("notes", "name", fact_id("working:alice", "name")),
    ]
    return [
        {
            "entry_id": entry_id,
            "namespace": stored_name("namespace", namespace),
            "scope": "working",
            "key": key,
            "content": json.dumps(ascii(f"{namespace} {key}")),
            "metadata": "{}",
            "importance": 0.5,
        }
        for namespace, key, entry_id in [*facts, *others]
    ]


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
    assert [entry.entry_id for entry in store.load("renamed:conversation:c")] == ["of the application"]
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
    return PostgreSQLStore(url, schema_name=name, migrate=False)


def save_as_before(url: str, name: str) -> None:
    on_sqlite = url.startswith("sqlite")
    entries = schema.metadata(None if on_sqlite else name).tables[
        "memory_entries" if on_sqlite else f"{name}.memory_entries"
    ]
    engine = create_engine(url if on_sqlite else url.replace("postgresql://", "postgresql+psycopg://"))
    moment = NOW.isoformat(timespec="microseconds") if on_sqlite else NOW
    rows = (
        rows_of_before()
        if on_sqlite
        else [{**row, "content": json.loads(row["content"]), "metadata": {}} for row in rows_of_before()]
    )
    with engine.begin() as connection:
        connection.execute(insert(entries), [{**row, "created_at": moment} for row in rows])
    engine.dispose()


def test_an_upgrade_gives_the_facts_that_are_there_their_ids(url: str, name: str, db: Callable[..., None]) -> None:
    db("upgrade", "0003")
    save_as_before(url, name)
    with pytest.raises(SchemaMismatchError, match="is at 0003"), opened(url, name):
        pass
    db("upgrade")
    db("downgrade", "0003", "--yes")
    db("upgrade")
    db("stamp", "0003")
    db("upgrade")  # a second time changes nothing
    with opened(url, name) as store:
        check(store)


def test_a_downgrade_goes_on_where_somebody_has_taken_the_id_of_before(
    url: str, name: str, db: Callable[..., None]
) -> None:
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


def save_in_mongodb_as_before(server: EmbeddedMongoDB, name: str) -> None:
    documents = [
        {
            **row,
            "_id": _id_of(Position(NOW, row["entry_id"])),
            "content": json.loads(row["content"]),
            "metadata": {},
            "created_at": NOW,
            "expires_at": None,
        }
        for row in rows_of_before()
    ]
    with pymongo.MongoClient[dict[str, Any]](server.url) as client:
        client[name].entries.insert_many(documents)
        client[name].memory_version.drop()


def test_mongodb_gives_them_their_ids_whoever_starts_first(server: EmbeddedMongoDB, name: str) -> None:
    with MongoDBStore(server.url, database=name):
        pass  # the indexes
    save_in_mongodb_as_before(server, name)
    with (
        pytest.raises(
            SchemaMismatchError, match=r"the ids of facts begin with 'fact:', .*; run: firefly-memory db upgrade"
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


def test_mongodb_goes_on_where_a_standalone_server_stopped_in_between(server: EmbeddedMongoDB, name: str) -> None:
    with MongoDBStore(server.url, database=name) as store:
        WorkingMemory(scope_id="alice", store=store).set("name", "Alice")
    with pymongo.MongoClient[dict[str, Any]](server.url) as client:
        (fact,) = client[name].entries.find()
        old = id_of_before("working:alice", "name")
        client[name].entries.insert_one({**fact, "_id": f"{fact['_id'].partition('/')[0]}/{old}", "entry_id": old})
        client[name].memory_version.drop()
    with MongoDBStore(server.url, database=name) as store:
        assert [entry.entry_id for entry in store.load("working:alice")] == [fact_id("working:alice", "name")]


def test_mongodb_without_its_note_is_good_enough_where_no_fact_is_of_before(server: EmbeddedMongoDB, name: str) -> None:
    with MongoDBStore(server.url, database=name) as store:
        WorkingMemory(store=store).set("name", "Alice")
    with pymongo.MongoClient[dict[str, Any]](server.url) as client:
        client[name].memory_version.drop()
    with MongoDBStore(server.url, database=name, migrate=False) as store:
        assert WorkingMemory(store=store).get("name") == "Alice"


def test_files_have_them_when_they_are_read_and_keep_them_when_they_are_written(tmp_path: Path) -> None:
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


def test_an_archive_of_before_is_taken_with_the_ids_of_today() -> None:
    source = InMemoryStore()
    WorkingMemory(scope_id="alice", store=source).set("name", "Alice")
    archive = io.StringIO()
    export_jsonl(source, archive)
    target = InMemoryStore()
    for _ in range(2):
        import_jsonl(target, io.StringIO(archive.getvalue().replace('"fact:', '"')))
        assert copy_store(source, target).equal


def test_an_archive_cannot_give_the_id_of_a_fact_to_another_entry() -> None:
    source = InMemoryStore()
    WorkingMemory(scope_id="alice", store=source).set("name", "Alice")
    archive = io.StringIO()
    export_jsonl(source, archive)
    target = InMemoryStore()
    with pytest.raises(CorruptDataError, match=r"line 2 .*entry_id: begins with 'fact:'"):
        import_jsonl(target, io.StringIO(archive.getvalue().replace("working:alice", "working:mallory")))
    assert target.namespaces() == []

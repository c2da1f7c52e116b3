"""What the predecessors wrote, laid out by hand as their documents say, and the command that takes it over."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pymongo
from psycopg.types.json import Json

from firefly_memory import EntryStore, MemoryEntry
from tests.support.backends import Place
from tests.support.command_line import run

EARLY = datetime(2025, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
PAST, FUTURE = datetime(2025, 4, 1, tzinfo=UTC), datetime(2125, 4, 1, tzinfo=UTC)

Fields = dict[str, Any]


def entry(entry_id: str, **changes: Any) -> Fields:
    """As the predecessor serialised an entry."""
    return {
        "entry_id": entry_id,
        "scope": "long_term",
        "key": "vendor",
        "content": {"z": 1, "a": [True, None, 2.5, "ünï ☃ 🦋"]},
        "metadata": {"source": "crm"},
        "created_at": EARLY.isoformat(),
        "expires_at": None,
        "importance": 0.9,
    } | changes


ENTRIES: dict[str, list[Fields]] = {
    "session:42": [
        entry("one"),
        entry("two", key=None, content="text", metadata={}, expires_at=FUTURE.isoformat()),
        entry("gone", expires_at=PAST.isoformat()),
    ],
    "other ☃": [
        entry("three", content='{"looks": "like JSON"}', created_at="2025-03-01T12:30:15.123456"),
        entry("four", content=None, scope="conversation", importance=0),
        entry("lost", expires_at="2025-04-01T00:00:00"),
    ],
}
LEFT_BEHIND = {"gone", "lost"}  # they have expired
ROWS = [(namespace, each) for namespace, entries in ENTRIES.items() for each in entries]
COUNTS = {"taken": 4, "there_already": 0, "expired": 2, "refused": 0}


def expected(kind: str) -> dict[str, MemoryEntry]:
    """What is in the new store then."""
    found = {}
    for _, each in ROWS:
        if each["entry_id"] in LEFT_BEHIND:
            continue
        milliseconds = kind in ("mongodb-000-dates", "mongodb-001")  # where MongoDB's dates end
        fields = {**each, "created_at": EARLY.replace(microsecond=123000) if milliseconds else EARLY}
        if kind.endswith("001"):  # the first documents had neither scopes nor importance nor expiry
            fields |= {"scope": "working", "importance": 0.5, "expires_at": None}
        found[each["entry_id"]] = MemoryEntry(**fields)
    return found


@dataclass
class Old:
    """An old place: its URL, and what is in it, to the last byte."""

    url: str
    dump: Callable[[], Any]


@contextmanager
def new_database(place: Place) -> Iterator[str]:
    """The URL of a PostgreSQL database for as long as the block lasts."""
    name = f"legacy_{uuid4().hex}"
    with psycopg.connect(place.postgresql(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield urlsplit(place.postgresql())._replace(path=f"/{name}").geturl()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def execute(url: str, *statements: str, rows: list[tuple[Any, ...]] | None = None) -> None:
    """Statements, the last of them for each of the rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements[:-1] if rows is not None else statements:
            connection.execute(statement.encode())
        if rows is not None:
            connection.cursor().executemany(statements[-1].encode(), rows)


def dump(url: str, table: str) -> Any:
    with psycopg.connect(url) as connection:
        rows = connection.execute(f"SELECT ctid::text, xmin::text, t::text FROM {table} t ORDER BY ctid".encode())
        objects = connection.execute("SELECT relname, relnamespace FROM pg_class ORDER BY oid").fetchall()
        return rows.fetchall(), objects


def old_directory(place: Place) -> Path:
    directory = place.directory / "old"
    directory.mkdir()
    return directory


def dump_of(directory: Path) -> Any:
    return [(each.name, each.read_bytes()) for each in sorted(directory.iterdir())]


def sqlite_whole(place: Place, journal_mode: str = "DELETE") -> Old:
    directory = old_directory(place)
    path = directory / "old.sqlite3"
    fill_sqlite(path, [(each["entry_id"], namespace, json.dumps(each)) for namespace, each in ROWS], journal_mode)
    return Old(f"sqlite:///{path}", lambda: dump_of(directory))


def fill_sqlite(path: Path, rows: list[tuple[Any, ...]], journal_mode: str = "DELETE", *, has_key: bool = True) -> None:
    key = ", PRIMARY KEY (namespace, entry_id)" if has_key else ""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA journal_mode={journal_mode}")
        connection.execute(f"CREATE TABLE memory_entries (entry_id TEXT, namespace TEXT, content TEXT{key})")
        connection.executemany("INSERT INTO memory_entries VALUES (?, ?, ?)", rows)


OF_000 = """
CREATE SCHEMA IF NOT EXISTS firefly_memory;
CREATE TABLE IF NOT EXISTS firefly_memory.memory_entries (
entry_id TEXT PRIMARY KEY,
namespace TEXT NOT NULL,
scope TEXT NOT NULL,
key TEXT,
content JSONB NOT NULL,
metadata JSONB NOT NULL DEFAULT '{}',
created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
expires_at TIMESTAMPTZ,
importance FLOAT NOT NULL DEFAULT 0.5
CHECK (importance >= 0.0 AND importance <= 1.0)
);
CREATE INDEX idx_namespace ON firefly_memory.memory_entries(namespace);
CREATE INDEX idx_namespace_key ON firefly_memory.memory_entries(namespace, key)
WHERE key IS NOT NULL;
CREATE INDEX idx_expires_at ON firefly_memory.memory_entries(expires_at)
WHERE expires_at IS NOT NULL;
"""

OF_001 = """
CREATE TABLE IF NOT EXISTS firefly_memory (
    namespace VARCHAR(255) NOT NULL,
    entry_id VARCHAR(255) NOT NULL,
    key VARCHAR(255) NOT NULL,
    data JSONB NOT NULL,
    metadata JSONB,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (namespace, entry_id)
);
CREATE INDEX idx_namespace_key ON firefly_memory(namespace, key);
CREATE INDEX idx_created_at ON firefly_memory(created_at);
"""

INTO_000 = "INSERT INTO firefly_memory.memory_entries VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
INTO_001 = "INSERT INTO firefly_memory VALUES (%s, %s, %s, %s, %s, %s)"


def row_000(namespace: str, each: Fields, content: Any) -> tuple[Any, ...]:
    times = [
        each[name] and datetime.fromisoformat(each[name]).replace(tzinfo=UTC) for name in ("created_at", "expires_at")
    ]
    return (
        each["entry_id"], namespace, each["scope"], each["key"], content, Json(each["metadata"]), *times, each["importance"],
    )  # fmt: skip


def postgresql_000(content: Callable[[Fields], Any], text: bool = False) -> Callable[[Place, str], Old]:
    def fill(place: Place, database: str) -> Old:
        statements = OF_000.replace("content JSONB", "content TEXT") if text else OF_000
        rows = [row_000(namespace, each, content(each)) for namespace, each in ROWS]
        execute(database, statements, INTO_000, rows=rows)
        return Old(database, lambda: dump(database, "firefly_memory.memory_entries"))

    return fill


def postgresql_001(place: Place, database: str) -> Old:
    rows = [
        (namespace, each["entry_id"], each["key"] or "", Json(each["content"]), Json(each["metadata"]), EARLY.replace(tzinfo=None))
        for namespace, each in ROWS
        if each["entry_id"] not in LEFT_BEHIND
    ]  # fmt: skip
    execute(database, OF_001, "SET timezone TO 'Asia/Tokyo'", INTO_001, rows=rows)
    return Old(database, lambda: dump(database, "firefly_memory"))


@contextmanager
def mongodb(place: Place, name: str) -> Iterator[pymongo.database.Database[Any]]:
    with pymongo.MongoClient[Any](place.mongodb()) as client:
        yield client[name]


def fill_mongodb(place: Place, collection: str, documents: list[Any], unique: tuple[str, ...] = ()) -> Old:
    name = f"legacy_{uuid4().hex}"

    def drop() -> None:
        with mongodb(place, name) as database:
            database.client.drop_database(name)

    def dumped() -> Any:
        with mongodb(place, name) as database:
            return [
                (each, list(database[each].find()), database[each].index_information())
                for each in database.list_collection_names()
            ]

    place.later.callback(drop)
    with mongodb(place, name) as database:
        database[collection].create_index({"namespace": 1})
        if unique:
            database[collection].create_index(dict.fromkeys(unique, 1), unique=True)
        database[collection].insert_many(documents)
    return Old(urlsplit(place.mongodb())._replace(path=f"/{name}").geturl(), dumped)


def mongodb_000(place: Place, as_dates: bool) -> Old:
    documents = []
    for namespace, each in ROWS:
        document = {"namespace": namespace, **each}
        if as_dates:
            for name in ("created_at", "expires_at"):
                document[name] = each[name] and datetime.fromisoformat(each[name]).replace(tzinfo=None)
        documents.append(document)
    return fill_mongodb(place, "entries", documents, unique=("entry_id",))


def mongodb_001(place: Place) -> Old:
    documents = [
        {
            **{name: each[name] for name in ("entry_id", "key", "metadata")},
            "namespace": namespace,
            "data": each["content"],
            "created_at": EARLY,
            "updated_at": EARLY,
        }
        for namespace, each in ROWS
        if each["entry_id"] not in LEFT_BEHIND
    ]
    return fill_mongodb(place, "firefly_memory", documents, unique=("namespace", "entry_id"))


def files(place: Place) -> Old:
    directory = old_directory(place)
    for namespace, entries in ENTRIES.items():
        (directory / f"{namespace}.json").write_text(json.dumps(entries))
    return Old(f"file:{directory}", lambda: dump_of(directory))


PLACES: dict[str, Callable[[Place, str], Old]] = {
    "sqlite": lambda place, _: sqlite_whole(place),
    "sqlite-wal": lambda place, _: sqlite_whole(place, "WAL"),
    "postgresql-000": postgresql_000(lambda each: Json(each["content"])),
    "postgresql-000-whole": postgresql_000(Json),
    "postgresql-000-whole-as-text-in-jsonb": postgresql_000(lambda each: Json(json.dumps(each))),
    "postgresql-000-whole-as-text": postgresql_000(json.dumps, text=True),
    "postgresql-001": postgresql_001,
    "mongodb-000": lambda place, _: mongodb_000(place, as_dates=False),
    "mongodb-000-dates": lambda place, _: mongodb_000(place, as_dates=True),
    "mongodb-001": lambda place, _: mongodb_001(place),
    "files": lambda place, _: files(place),
}


def imported(
    old: Old, url: str, cwd: Path, *options: str, code: int = 0, variables: dict[str, str] | None = None
) -> dict[str, Any]:
    """What the command says, as JSON."""
    ended = run(
        "db", "import-legacy", "--from", old.url, "--url", url, "--json", *options, cwd=cwd, **(variables or {})
    )
    assert ended.returncode == code, ended
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def counts(result: dict[str, Any]) -> dict[str, int]:
    return {name: result[name] for name in COUNTS}


def entries_of(store: EntryStore) -> dict[str, MemoryEntry]:
    return {each.entry_id: each for namespace in store.namespaces() for each in store.load(namespace)}


NEW: dict[str, Callable[[Place, str], str]] = {
    "sqlite": lambda _place, _database: "sqlite:///new.db",
    "postgresql": lambda _place, database: database,
    "mongodb": lambda place, _database: place.mongodb(),
    "file": lambda _place, _database: "file:new",
}


def many(number: int) -> list[tuple[Any, ...]]:
    """Entries of one large namespace and of many small ones."""
    rows = []
    for each in range(number):
        made = EARLY + timedelta(seconds=each * 7919 % number)  # not in the order of their ids
        namespace = "large" if each % 2 else f"small {each // 20}"
        rows.append((f"id-{each}", namespace, json.dumps(entry(f"id-{each}", created_at=made.isoformat()))))
    return rows

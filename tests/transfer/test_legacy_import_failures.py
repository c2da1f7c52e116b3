"""Import of damaged, hostile or misplaced data of the predecessors."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import bson
import pytest
from bson.raw_bson import RawBSONDocument
from psycopg.types.json import Json

from firefly_memory import MemoryEntry, MemoryScope, SQLiteStore, connect
from tests.support import databases
from tests.support.backends import Place
from tests.support.command_line import run
from tests.support.legacy_databases import (
    COUNTS,
    EARLY,
    FUTURE,
    OF_000,
    OF_001,
    PAST,
    ROWS,
    Old,
    counts,
    dump,
    dump_of,
    entries_of,
    entry,
    execute,
    expected,
    files,
    fill_mongodb,
    fill_sqlite,
    imported,
    many,
    mongodb_000,
    new_database,
    postgresql_000,
    sqlite_whole,
)

pytestmark = pytest.mark.thorough


@pytest.fixture
def database(place: Place) -> Iterator[str]:
    with new_database(place) as url:
        yield url


DEEP = json.loads("[" * 600 + "]" * 600)


HOSTILE: list[tuple[Any, Any, Any, str | None]] = [
    ("good", "n", json.dumps(entry("good")), None),
    ("nul", "n\x00", json.dumps(entry("nul", content="a\x00b", key="k\x00")), None),
    ("surrogate", "n", json.dumps(entry("surrogate", content={"\ud800": "\udc80"})), None),
    ("numbers", "n", json.dumps(entry("numbers", content=[-0.0, 1e22, 2**70, 1, 1.0])), None),
    ("naive", "n", json.dumps(entry("naive", created_at="2025-01-01T00:00:00", expires_at="2125-01-01 00:00:00")), None),
    ("other zone", "n", json.dumps(entry("other zone", created_at="2025-01-01T05:30:00+05:30")), None),
    ("null", "n", json.dumps(entry("null", content=None, metadata=None)), None),
    ("bad", "n", '{"entry_id": "bad", ', "content is not JSON"),
    ("empty", "n", "", "content is not JSON"),
    ("nothing", "n", None, "content is not JSON"),
    ("bytes", "n", b"{}", "content is not JSON"),
    ("latin", "n", None, "content is not UTF-8"),  # has its bytes from the test
    ("NaN", "n", json.dumps(entry("NaN", content=float("nan"))), "content is not JSON"),
    ("huge", "n", json.dumps(entry("huge", content=0)).replace('"content": 0', '"content": 1e999'), "content inf is not a JSON value; store None or text instead"),
    ("long", "n", json.dumps(entry("long", content=0)).replace('"content": 0', '"content": ' + "9" * 5000), "content is not JSON"),
    ("deep", "n", json.dumps(entry("deep", content=DEEP)), "content is nested deeper than 500 levels, or contains itself"),
    ("deeper", "n", "[" * 100_000 + "]" * 100_000, "content is nested too deeply"),
    ("someone", "n", json.dumps(entry("else")), "content is not an entry with the row's entry_id"),
    ("text", "n", '"text"', "content is not an entry with the row's entry_id"),
    (None, "n", json.dumps(entry("missing")), "entry_id is missing"),
    (b"7", "n", json.dumps(entry("7")), "entry_id is not text"),
    ("", "n", json.dumps(entry("")), "entry_id must not be empty"),
    ("x" * 513, "n", json.dumps(entry("x" * 513)), "entry_id is 513 characters long; at most 512 are allowed"),
    ("homeless", None, json.dumps(entry("homeless")), "namespace is missing"),
    ("no key", "n", json.dumps(entry("no key", key="")), "key must not be empty"),
    ("number as key", "n", json.dumps(entry("number as key", key=7)), "key is not text"),
    ("seven", "n", json.dumps(entry("seven", importance=7)), "importance: Input should be less than or equal to 1"),
    ("yes", "n", json.dumps(entry("yes", importance=True)), "importance is not a number"),
    ("scope", "n", json.dumps(entry("scope", scope="eternal")), "scope: Input should be 'conversation', 'working' or 'long_term'"),
    ("metadata", "n", json.dumps(entry("metadata", metadata=[1])), "metadata: Value error, must be a dict, not list"),
    ("timeless", "n", json.dumps(entry("timeless", created_at=None)), "created_at is missing"),
    ("epoch", "n", json.dumps(entry("epoch", created_at=1740000000)), "created_at is not an instant"),
    ("word", "n", json.dumps(entry("word", expires_at="tomorrow")), "expires_at is not an instant"),
    ("year 0", "n", json.dumps(entry("year 0", created_at="0001-01-01T00:00:00+05:00")), "created_at: Value error, 0001-01-01T00:00:00+05:00 lies outside the years 1 to 9999 in UTC"),
    ("good", "m", json.dumps(entry("good")), None),  # which comes first
    ("again", "n", json.dumps(entry("again", content=1)), None),
    ("again", "n", json.dumps(entry("again", content=2)), "its entry_id is there twice in the same namespace, with different entries"),
]  # fmt: skip


TAKEN_BEFORE = "its entry_id belongs to another entry of the store, which was left as it is"


def test_hostile_rows_are_refused_with_a_reason_and_do_not_stop_the_others(place: Place) -> None:
    fill_sqlite(place.directory / "old.db", [each[:3] for each in HOSTILE if each[0] != "latin"], has_key=False)
    with closing(sqlite3.connect(place.directory / "old.db")) as connection, connection:
        connection.execute("INSERT INTO memory_entries VALUES ('latin', 'n', CAST(X'7b22e9227d' AS TEXT))")
    old = Old("sqlite:///old.db", (place.directory / "old.db").read_bytes)
    before = old.dump()
    result = imported(old, "sqlite:///new.db", place.directory, code=5)
    found = {(one["entry_id"], each["reason"]) for each in result["reasons"] for one in each["examples"]}
    wanted = {(repr(each[0]) if each[0] == b"7" else each[0], each[3]) for each in HOSTILE if each[3] is not None}
    assert {each for each in found if each[1] not in ("content is not JSON", TAKEN_BEFORE)} == {
        each for each in wanted if each[1] != "content is not JSON"
    }
    assert [each["count"] for each in result["reasons"] if each["reason"] == "content is not JSON"] == [6]
    assert ("good", TAKEN_BEFORE) in found
    good = {each[0] for each in HOSTILE if each[3] is None}
    assert (result["taken"], result["refused"]) == (len(good), len(HOSTILE) - len(good))
    with SQLiteStore(place.directory / "new.db") as store:
        there = {**entries_of(store)}
        assert store.namespaces() == ["m", "n", "n\x00"]
        assert [each.entry_id for each in store.load("m")] == ["good"]
    assert there.keys() == good
    assert there["nul"].content == "a\x00b"
    assert there["surrogate"].content == {"\ud800": "\udc80"}
    assert repr(there["numbers"].content) == repr([-0.0, 1e22, 2**70, 1, 1.0])
    assert there["naive"].created_at == there["other zone"].created_at == datetime(2025, 1, 1, tzinfo=UTC)
    assert there["null"].metadata == {}
    again = imported(old, "sqlite:///new.db", place.directory, code=5)
    assert (again["taken"], again["there_already"], again["refused"]) == (0, len(good), result["refused"])
    assert old.dump() == before
    words = run("db", "import-legacy", "--from", old.url, "--url", "sqlite:///new.db", cwd=place.directory)
    assert (words.returncode, words.stderr) == (5, "")
    assert "refused 6: content is not JSON\n  'bad' in 'n'\n" in words.stdout


def test_hostile_rows_of_postgresql_are_refused_with_a_reason(place: Place, database: str) -> None:
    """What SQLite lets in and PostgreSQL does not is not here, what only PostgreSQL has is."""
    statements = OF_001.replace("PRIMARY KEY (namespace, entry_id)", "expires_at TIMESTAMPTZ, importance FLOAT8")
    data = Json(entry("x")["content"])
    nested = Json(DEEP)
    rows: list[tuple[Any, ...]] = [
        ("a", "twice", "k", data, None, "2025-01-01", None, None),
        ("b", "twice", "k", data, None, "2025-01-01", None, None),
        ("b", "infinite", "k", data, None, "infinity", None, None),
        ("b", "ancient", "k", data, None, "0044-03-15 BC", None, None),
        ("b", "far", "k", data, None, "20000-01-01", None, None),
        ("b", "timeless", "k", data, None, None, None, None),
        ("b", "nan", "k", data, None, "2025-01-01", None, "NaN"),
        ("b", "seven", "k", data, None, "2025-01-01", None, 7),
        ("b", "deep", "k", nested, None, "2025-01-01", None, None),
        ("b", "long", "k", "9" * 5000, None, "2025-01-01", None, None),
        ("b", "gone", "k", data, None, "2025-01-01", PAST, None),
        ("b", "good", "k", data, Json({"m": 1}), "2025-01-01", FUTURE, 1),
    ]
    insert = "INSERT INTO firefly_memory (namespace, entry_id, key, data, metadata, created_at, expires_at, importance)"
    execute(database, statements, f"{insert} VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", rows=rows)
    old = Old(database, lambda: dump(database, "firefly_memory"))
    before = old.dump()
    result = imported(old, "sqlite:///new.db", place.directory, code=5)
    reasons = {each["reason"]: [one["entry_id"] for one in each["examples"]] for each in result["reasons"]}
    assert reasons == {
        TAKEN_BEFORE: ["twice"],
        "created_at is not an instant": ["ancient", "far", "infinite"],
        "created_at is missing": ["timeless"],
        "importance is not a number": ["nan"],
        "importance: Input should be less than or equal to 1": ["seven"],
        "content is nested deeper than 500 levels, or contains itself": ["deep"],
        "the row is not JSON": ["long"],
    }
    assert counts(result) == {"taken": 2, "there_already": 0, "expired": 1, "refused": 9}
    with SQLiteStore(place.directory / "new.db") as store:
        (good,) = store.load("b")
        assert (good.entry_id, good.metadata, good.expires_at, good.importance) == ("good", {"m": 1}, FUTURE, 1.0)
        assert good.scope is MemoryScope.WORKING
    assert old.dump() == before


def test_hostile_documents_of_mongodb_are_refused_with_a_reason(place: Place) -> None:
    damaged = bson.encode({"namespace": "n", "entry_id": "damaged", "content": "XX"}).replace(b"XX", b"\xff\xfe")
    documents: list[Any] = [
        RawBSONDocument(damaged),
        {"namespace": "n", **entry("good", content={"when": EARLY, "n": bson.Int64(7)}, metadata={})},
        {"namespace": "n", **entry("id", content=bson.ObjectId())},
        {"namespace": "n", **entry("money", content=bson.Decimal128("1.5"))},
        {"namespace": "n", **entry("far", created_at=bson.DatetimeMS(2**60))},
        {"namespace": "n", "entry_id": "empty"},
        {"whatever": 1},
        {"namespace": "n", **entry("whole"), "content": entry("whole", importance=0.25), "importance": 0.75},
    ]
    result = imported(fill_mongodb(place, "entries", documents), "sqlite:///new.db", place.directory, code=5)
    reasons = {each["reason"]: [one["entry_id"] for one in each["examples"]] for each in result["reasons"]}
    assert reasons == {
        "namespace is missing": [None],
        "the document is damaged": [None],
        "content is missing": ["empty"],
        "content values of type bson.objectid.ObjectId cannot be stored; convert it to a JSON value first": ["id"],
        "content values of type bson.decimal128.Decimal128 cannot be stored; convert it to a JSON value first": [
            "money"
        ],
        "created_at is not an instant": ["far"],
    }
    with SQLiteStore(place.directory / "new.db") as store:
        there = {each.entry_id: each for each in store.load("n")}
    assert there["good"].content == {"when": "2025-03-01T12:30:15.123000+00:00", "n": 7}
    assert there["whole"].importance == 0.25


def test_an_import_into_the_schema_of_the_old_table_is_refused(place: Place, database: str) -> None:
    old = postgresql_000(lambda each: Json(each["content"]))(place, database)
    before = old.dump()
    for options in ((), ("--dry-run",)):
        ended = run("db", "import-legacy", "--from", database, "--url", database, *options, cwd=place.directory)
        assert ended.returncode == 2
        assert "ALTER SCHEMA firefly_memory RENAME TO firefly_memory_old" in ended.stderr
        assert "--schema" in ended.stderr
    assert old.dump() == before
    other = imported(old, database, place.directory, "--schema", "agents")
    assert counts(other) == COUNTS
    assert old.dump()[0] == before[0]
    execute(database, "ALTER SCHEMA firefly_memory RENAME TO firefly_memory_old")
    assert counts(imported(old, database, place.directory)) == COUNTS
    assert counts(imported(old, database, place.directory)) == COUNTS | {"taken": 0, "there_already": 4}
    with connect(database) as store:
        assert entries_of(store) == expected("postgresql-000")


def test_an_import_into_the_old_file_or_collection_is_refused(place: Place) -> None:
    old = sqlite_whole(place)
    before = old.dump()
    ended = run("db", "import-legacy", "--from", old.url, "--url", old.url, cwd=place.directory)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert "has memory_entries already" in ended.stderr
    assert old.dump() == before
    old = mongodb_000(place, as_dates=False)
    name = urlsplit(old.url).path[1:]
    variables = {"FIREFLY_AGENTIC_MEMORY_MONGODB_DATABASE": name}
    before = old.dump()
    ended = run("db", "import-legacy", "--from", old.url, "--url", old.url, cwd=place.directory, **variables)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert f"the collection {name}.entries has documents already" in ended.stderr
    assert old.dump() == before
    beside = variables | {"FIREFLY_AGENTIC_MEMORY_MONGODB_COLLECTION": "firefly_memory"}
    assert counts(imported(old, old.url, place.directory, variables=beside)) == COUNTS
    assert counts(imported(old, old.url, place.directory, variables=beside))["there_already"] == 4


def test_the_table_or_collection_may_be_named(place: Place, database: str) -> None:
    execute(database, OF_001, OF_000, "CREATE TABLE other (n int)")
    ended = run("db", "import-legacy", "--from", database, "--url", "memory:", cwd=place.directory)
    assert ended.returncode == 2
    assert "firefly_memory.memory_entries, public.firefly_memory; choose one with --table" in ended.stderr
    old = Old(database, dict)
    for name in ("firefly_memory", "public.firefly_memory", "memory_entries", "firefly_memory.memory_entries"):
        assert imported(old, "memory:", place.directory, "--table", name)["from"].endswith(name)
    for name, words in (("missing", "public.other"), ("other", "its columns are n")):
        ended = run("db", "import-legacy", "--from", database, "--table", name, "--url", "memory:", cwd=place.directory)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
        assert words in ended.stderr
    old = fill_mongodb(place, "archive", [{"namespace": namespace, **each} for namespace, each in ROWS])
    ended = run("db", "import-legacy", "--from", old.url, "--url", "memory:", cwd=place.directory)
    assert (ended.returncode, ended.stderr.rstrip().rpartition(".")[2]) == (2, "archive")
    name = urlsplit(old.url).path[1:]
    named = Old(place.mongodb(), dict)
    assert counts(imported(named, "memory:", place.directory, "--database", name, "--collection", "archive")) == COUNTS


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--from", "postgresql://user:secret@127.0.0.1:1/x", "--url", "sqlite:///new.db"], 6, "127.0.0.1"),
        (
            ["--from", "mongodb://user:secret@127.0.0.1:1/x", "--url", "sqlite:///new.db", "--timeout", "1"],
            6,
            "127.0.0.1",
        ),
        (["--from", "sqlite:///mistyped.db", "--url", "sqlite:///new.db"], 6, "mistyped.db"),
        (["--from", "file:mistyped", "--url", "sqlite:///new.db"], 6, "mistyped"),
        (["--from", "file:.", "--url", "sqlite:///new.db"], 2, "no *.json"),
        (["--from", "sqlite:///noise.db", "--url", "sqlite:///new.db"], 1, "noise.db"),
        (["--from", "sqlite:///ours.db", "--url", "sqlite:///new.db"], 2, "no table of a predecessor was found"),
        (["--from", "redis://user:secret@host", "--url", "sqlite:///new.db"], 2, "sqlite:///, postgresql://"),
        (["--from", "sqlite:///good.db", "--url", "postgresql://user:secret@127.0.0.1:1/x"], 6, "127.0.0.1"),
        (["--from", "sqlite:///good.db"], 2, "pass --url"),
        (["--from", "sqlite:///good.db", "--collection", "c", "--url", "memory:"], 2, "are for MongoDB"),
        (["--from", "file:.", "--table", "t", "--url", "memory:"], 2, "for SQL"),
    ],
    ids=str,
)
def test_an_error_is_one_line_and_an_exit_code(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    fill_sqlite(tmp_path / "good.db", [])
    (tmp_path / "noise.db").write_bytes(hashlib.sha512(b"noise").digest() * 20)
    with SQLiteStore(tmp_path / "ours.db") as store:
        store.save("n", MemoryEntry())
    before = dump_of(tmp_path)
    ended = run("db", "import-legacy", *arguments, cwd=tmp_path)
    assert ended.returncode == code, ended
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert "secret" not in ended.stderr
    assert dump_of(tmp_path) == before


def test_the_import_needs_exactly_the_right_to_read(place: Place, database: str) -> None:
    postgresql_000(lambda each: Json(each["content"]))(place, database)
    role = f"legacy_{uuid4().hex}"
    execute(database, f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    host = database.rpartition("@")[2]
    old = Old(f"postgresql://{role}:secret@{host}", dict)
    try:
        arguments = ["--from", old.url, "--url", "sqlite:///new.db"]
        ended = run("db", "import-legacy", *arguments, cwd=place.directory)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
        assert "the role lacks a privilege" in ended.stderr
        execute(database, f"GRANT USAGE ON SCHEMA firefly_memory TO {role}")
        execute(database, f"GRANT SELECT ON firefly_memory.memory_entries TO {role}")
        assert counts(imported(old, "sqlite:///new.db", place.directory)) == COUNTS
        denied = run("db", "import-legacy", "--from", "sqlite:///new.db", "--url", old.url, cwd=place.directory)
        assert denied.returncode == 2
    finally:
        execute(database, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_policy_of_a_table_neither_runs_as_the_reader_nor_hides_rows(place: Place, database: str) -> None:
    reader = f"reads_{uuid4().hex[:8]}"
    databases.execute(
        database,
        f"CREATE ROLE {reader} LOGIN PASSWORD 'secret'; CREATE SEQUENCE ran; GRANT USAGE ON SEQUENCE ran TO {reader};"
        "CREATE TABLE old (namespace text, entry_id text, scope text, content jsonb, created_at timestamptz);"
        "CREATE FUNCTION hides() RETURNS bool LANGUAGE plpgsql COST 0.1 AS "
        "$$ BEGIN PERFORM pg_catalog.nextval('public.ran'); RETURN false; END $$;"
        "ALTER TABLE old ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON old USING (public.hides());"
        f"GRANT SELECT ON old TO {reader}; INSERT INTO old VALUES ('n', '1', 'working', '{{}}', now())",
    )
    try:
        command = ["db", "import-legacy", "--table", "old", "--url", "memory:", "--dry-run", "--from"]
        ended = run(*command, f"postgresql://{reader}:secret@{database.rpartition('@')[2]}", cwd=place.directory)
        assert ended.returncode == 1
        assert "row-level security" in ended.stderr
        assert databases.execute(database, "SELECT is_called FROM ran") == [(False,)]
        assert run(*command, database, cwd=place.directory).returncode == 0
    finally:
        databases.execute(database, f"DROP OWNED BY {reader}; DROP ROLE {reader}")


def test_files_that_are_no_lists_of_entries_are_refused(place: Place) -> None:
    old = files(place)
    directory = place.directory / "old"
    (directory / "broken.json").write_text("[{")
    (directory / "latin.json").write_bytes(b'["\xe9"]')
    (directory / "dict.json").write_text("{}")
    (directory / "ours.json").write_text('{"format": "firefly-memory/1"}')
    (directory / "items.json").write_text('[1, {"entry_id": "e"}]')
    result = imported(old, "sqlite:///new.db", place.directory, code=5)
    assert counts(result) == COUNTS | {"refused": 6}
    reasons = {one["namespace"]: each["reason"] for each in result["reasons"] for one in each["examples"]}
    assert reasons["broken"] == "the file is not JSON"
    assert reasons["latin"] == "the file is not UTF-8"
    assert reasons["dict"] == "the file is not a list of entries"
    assert "`firefly-memory export`" in reasons["ours"]


def test_entries_with_reserved_names_are_renamed(place: Place) -> None:
    rows = [("e", "conversation:x", json.dumps(entry("e"))), ("fact:f", "notes", json.dumps(entry("fact:f")))]
    fill_sqlite(place.directory / "reserved.db", rows)
    old = Old("sqlite:///reserved.db", dict)
    nothing = dict.fromkeys(COUNTS, 0)
    for target in ("file:new", "sqlite:///new.db"):
        assert counts(imported(old, target, place.directory)) == nothing | {"taken": 2}
        assert counts(imported(old, target, place.directory)) == nothing | {"there_already": 2}
    with SQLiteStore(place.directory / "new.db") as store:
        assert store.namespaces() == ["notes", "renamed:conv:x"]
        (moved,) = store.load("notes")
        assert moved.entry_id.startswith("renamed:")
        assert moved.entry_id.endswith(":fact:f")


def test_a_repeated_id_is_reported(place: Place) -> None:
    rows = many(1000)
    again = entry("id-3", created_at=FUTURE.isoformat(), content="another")
    fill_sqlite(place.directory / "old.db", [*rows, ("id-3", rows[3][1], json.dumps(again))], has_key=False)
    old = Old("sqlite:///old.db", dict)
    result = imported(old, "sqlite:///new.db", place.directory, code=5)
    assert counts(result) == {"taken": 1000, "there_already": 0, "expired": 0, "refused": 1}
    assert result["reasons"][0]["reason"] == TAKEN_BEFORE
    with SQLiteStore(place.directory / "new.db") as store:
        (kept,) = [each for each in store.load("large") if each.entry_id == "id-3"]
    assert kept.content == entry("id-3")["content"]

"""``firefly-memory db check`` finds what is not as the code needs it, and names the statements that mend it; the SQL
that ``db sql`` prints makes the same schema as ``db upgrade``."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymongo
import pytest
from pymongo.database import Database

from firefly_memory import MongoDBStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.schema import REVISIONS
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute
from tests.support.servers import EmbeddedPostgreSQL

pytestmark = pytest.mark.thorough

E = "firefly_memory.memory_entries"
T = "firefly_memory.memory_turns"
Documents = Database[dict[str, Any]]


class Command:
    """``firefly-memory db … --json``, and what it answered."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> dict[str, Any]:
        code = main(["db", *arguments, "--json"])
        answer: dict[str, Any] = json.loads(self._capture.readouterr().out)
        return {"code": code, **answer}


@pytest.fixture
def db(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def is_found_and_mended(db: Command, url: str, damage: str, what: str, found: str) -> None:
    db("upgrade", "--url", url)
    execute(url, damage)
    answer = db("check", "--url", url)
    assert answer["code"] == Exit.DRIFT
    (difference,) = answer["differences"]
    assert difference["what"] == what
    assert found in difference["found"]
    execute(url, difference["mend"])
    assert db("check", "--url", url)["differences"] == []


@pytest.mark.parametrize(
    ("damage", "what", "found"),
    [
        (f"ALTER TABLE {E} ALTER metadata DROP DEFAULT", "default of column metadata of memory_entries", "missing"),
        (f"ALTER TABLE {E} ALTER importance SET DEFAULT 0.7", "default of column importance of memory_entries", "0.7"),
        (f"ALTER TABLE {E} ALTER namespace DROP NOT NULL", "column namespace of memory_entries", "NULL"),
        (f"ALTER TABLE {E} ALTER scope TYPE varchar(10)", "column scope of memory_entries", "VARCHAR(10)"),
        (f"ALTER TABLE {T} DROP messages_format", "column messages_format of memory_turns", "missing"),
        (f"ALTER TABLE {E} ADD tenant TEXT NOT NULL", "column tenant of memory_entries", "NOT NULL without a default"),
        (
            f"ALTER TABLE {E} DROP CONSTRAINT memory_entries_importance_check",
            "check memory_entries_importance_check of memory_entries",
            "missing",
        ),
        (
            (
                f"ALTER TABLE {E} DROP CONSTRAINT memory_entries_importance_check, "
                "ADD CONSTRAINT memory_entries_importance_check CHECK (importance >= 0.0 AND importance <= 10.0)"
            ),
            "check memory_entries_importance_check of memory_entries",
            "10.0",
        ),
        ("DROP INDEX firefly_memory.idx_turns_tokens", "index idx_turns_tokens of memory_turns", "missing"),
        (
            (
                "DROP INDEX firefly_memory.idx_namespace_order;"
                f"CREATE INDEX idx_namespace_order ON {E} (namespace, created_at, entry_id)"
            ),
            "index idx_namespace_order of memory_entries",
            "(namespace, created_at, entry_id)",
        ),
        (
            (
                "DROP INDEX firefly_memory.idx_turns_idempotency;"
                f"CREATE INDEX idx_turns_idempotency ON {T} (conversation_id, idempotency_key) "
                "WHERE idempotency_key IS NOT NULL"
            ),
            "index idx_turns_idempotency of memory_turns",
            "(conversation_id, idempotency_key)",
        ),
        (
            (
                "DROP INDEX firefly_memory.idx_expires_at;"
                f"CREATE INDEX idx_expires_at ON {E} (expires_at) WHERE expires_at IS NULL"
            ),
            "index idx_expires_at of memory_entries",
            "IS NULL",
        ),
        (f"ALTER TABLE {T} DROP CONSTRAINT memory_turns_pkey", "primary key of memory_turns", "missing"),
        (f"DROP TABLE {T}", "table memory_turns", "missing"),
    ],
    ids=str,
)
def test_db_check_finds_each_difference_on_postgresql(
    damage: str, what: str, found: str, postgresql: str, db: Command
) -> None:
    is_found_and_mended(db, postgresql, damage, what, found)


def test_db_check_finds_an_invalid_index(postgresql: str, db: Command) -> None:
    db("upgrade", "--url", postgresql)
    execute(postgresql, "DROP INDEX firefly_memory.idx_expires_at")
    execute(
        postgresql,
        f"INSERT INTO {E} (entry_id, namespace, scope, content, expires_at) "
        "SELECT n, 'n', 'working', '1', now() FROM generate_series(1, 2) n",
    )
    with pytest.raises(psycopg.errors.UniqueViolation):  # breaks off, and leaves what it had
        execute(
            postgresql,
            f"CREATE UNIQUE INDEX CONCURRENTLY idx_expires_at ON {E} (scope) WHERE expires_at IS NOT NULL",
        )
    answer = db("check", "--url", postgresql)
    assert answer["code"] == Exit.DRIFT
    (difference,) = answer["differences"]
    assert difference["found"] == "invalid, after a build that broke off"
    execute(postgresql, difference["mend"])
    assert db("check", "--url", postgresql)["code"] == Exit.DONE


@pytest.mark.parametrize(
    ("damage", "what", "found"),
    [
        ("DROP INDEX idx_turns_tokens", "index idx_turns_tokens of memory_turns", "missing"),
        (
            "DROP INDEX idx_expires_at; CREATE INDEX idx_expires_at ON memory_entries (expires_at);",
            "index idx_expires_at of memory_entries",
            "(expires_at)",
        ),
        ("DROP TABLE memory_turns", "table memory_turns", "missing"),
        ("ALTER TABLE memory_turns DROP COLUMN messages", "column messages of memory_turns", "missing"),
    ],
    ids=str,
)
def test_db_check_finds_each_difference_on_sqlite(
    damage: str, what: str, found: str, tmp_path: Path, db: Command
) -> None:
    is_found_and_mended(db, f"sqlite:///{tmp_path}/memory.db", damage, what, found)


def test_db_check_names_differences_that_sqlite_cannot_repair(tmp_path: Path, db: Command) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    db("upgrade", "--url", url)
    execute(
        url,
        "DROP TABLE memory_conversations; CREATE TABLE memory_conversations (conversation_id TEXT, turns TEXT,"
        "tokens BIGINT NOT NULL, evicted_turns BIGINT NOT NULL, evicted_tokens BIGINT DEFAULT 0 NOT NULL, summary TEXT,"
        "claim TEXT, claimed_until TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, owner TEXT,"
        "dropped_turns BIGINT DEFAULT 0 NOT NULL, flush_id TEXT, marks TEXT);"
        "CREATE INDEX idx_conversations_order ON memory_conversations (created_at, conversation_id);"
        "CREATE INDEX idx_conversations_activity ON memory_conversations (updated_at, conversation_id);"
        "CREATE INDEX idx_conversations_owner_order"
        " ON memory_conversations (owner, created_at, conversation_id) WHERE owner IS NOT NULL;"
        "CREATE INDEX idx_conversations_owner_activity"
        " ON memory_conversations (owner, updated_at, conversation_id) WHERE owner IS NOT NULL;",
    )
    differences = db("check", "--url", url)["differences"]
    assert {each["what"].partition(" of memory")[0] for each in differences} == {
        "column conversation_id", "column turns", "default of column evicted_turns", "primary key",
    }  # fmt: skip
    assert {each["mend"][:26] for each in differences} == {"-- SQLite cannot change thi"[:26]}


@pytest.mark.parametrize("extra", [f"ALTER TABLE {E} ADD note TEXT", f"CREATE INDEX of_the_team ON {E} (scope)"])
def test_harmless_additions_are_no_difference(extra: str, postgresql: str, db: Command) -> None:
    db("upgrade", "--url", postgresql)
    execute(postgresql, extra)
    assert db("check", "--url", postgresql)["code"] == Exit.DONE


def test_db_check_needs_only_read_rights(postgresql: str, db: Command) -> None:
    db("upgrade", "--url", postgresql)
    execute(postgresql, "DROP ROLE IF EXISTS looks_only; CREATE ROLE looks_only LOGIN;")
    for statement in db("grants", "looks_only", "--url", postgresql)["statements"]:
        execute(postgresql, statement)
    try:
        assert db("check", "--url", postgresql.replace("postgres@", "looks_only@"))["code"] == Exit.DONE
    finally:
        execute(postgresql, "DROP OWNED BY looks_only; DROP ROLE looks_only;")


# MongoDB


@pytest.fixture
def mongodb(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Documents]:
    """The database that commands work on, with the indexes of this version."""
    name = "firefly_memory"
    with pymongo.MongoClient[dict[str, Any]](place.mongodb()) as client:
        client.drop_database(name)
        with MongoDBStore(place.mongodb()):
            yield client[name]
        client.drop_database(name)


@pytest.mark.parametrize(
    ("collection", "index", "instead", "found"),
    [
        ("entries", "namespace_1_key_1", {"key": {"namespace": 1, "key": 1}}, '{"namespace": 1, "key": 1}'),
        (
            "entries",
            "expires_at_1",
            {"key": {"expires_at": 1}, "expireAfterSeconds": 60},
            '{"expires_at": 1} with expireAfterSeconds 60',
        ),
        ("entries", "namespace_1", {"key": {"scope": 1}}, '{"scope": 1}'),
        ("entries", "entry_id_1", {"key": {"entry_id": 1}}, '{"entry_id": 1}'),
        ("entries", "namespace_1__id_1", {"key": {"_id": 1, "namespace": 1}}, '{"_id": 1, "namespace": 1}'),
        ("memory_conversations", "place_1", {"key": {"place": 1}}, '{"place": 1}'),
        (
            "memory_agent_history_entries",
            "holders_1",
            {"key": {"holders": 1}, "name": "by_hand"},
            '{"holders": 1}, under the name by_hand',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_db_check_finds_each_difference_on_mongodb(
    collection: str, index: str, instead: dict[str, Any], found: str, mongodb: Documents, place: Place, db: Command
) -> None:
    mongodb[collection].drop_index(index)
    mongodb.command("createIndexes", collection, indexes=[{"name": index, **instead}])
    mongodb[collection].create_index("of_the_team", sparse=True)
    answer = db("check", "--url", place.mongodb())
    assert answer["code"] == Exit.DRIFT
    (difference,) = answer["differences"]
    assert (difference["what"], difference["found"]) == (f"index {index} of {collection}", found)
    for command in difference["mend"].splitlines():
        written = command.partition('db.getSiblingDB("firefly_memory").runCommand(')[2].removesuffix(")")
        mongodb.command(json.loads(written))
    mended = db("check", "--url", place.mongodb())
    assert (mended["code"], mended["state"], mended["differences"]) == (Exit.DONE, "current", [])
    assert "of_the_team_1" in mongodb[collection].index_information()


def test_a_missing_mongodb_index_is_behind_or_drift(mongodb: Documents, place: Place, db: Command) -> None:
    mongodb.entries.drop_index("namespace_1")
    behind = db("check", "--url", place.mongodb())
    assert (behind["code"], [each["found"] for each in behind["differences"]]) == (Exit.BEHIND, ["missing"])
    mongodb.entries.drop_index("entry_id_1")
    mongodb.entries.create_index("entry_id")
    drifted = db("check", "--url", place.mongodb())
    assert (drifted["code"], len(drifted["differences"])) == (Exit.DRIFT, 2)


# Offline scripts

PATHS = [("base", revision) for revision in REVISIONS] + [
    (start, end) for start in REVISIONS for end in ("base", *REVISIONS) if start != end
]


@cache
def program(name: str) -> str:
    """One of PostgreSQL's, from where the tests' server is."""
    server = EmbeddedPostgreSQL()
    server.remove()
    return str(server.bin / name)


def dump(url: str) -> str:
    """The catalogue, object by object, as SQL; without what a new dump has anew."""
    command = [program("pg_dump"), "--schema-only", "--no-owner", url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"(?m)^(--|\\).*\n|^\n", "", text)


@pytest.fixture(scope="module")
def upgraded_to(servers_of_the_session: dict[str, Callable[[], str]]) -> Iterator[Callable[[str], str]]:
    """The name of a database that ``db upgrade`` has brought to a revision, to be copied."""
    with ExitStack() as later:

        def upgraded(revision: str) -> str:
            url = later.enter_context(empty_postgresql(servers_of_the_session["postgresql"]()))
            with redirect_stdout(io.StringIO()):
                assert main(["db", "upgrade", revision, "--url", url]) == Exit.DONE
            return urlsplit(url).path[1:]

        yield cache(upgraded)


@pytest.mark.parametrize(("start", "end"), PATHS, ids=str)
def test_a_script_for_psql_makes_the_same_schema(
    start: str, end: str, place: Place, db: Command, upgraded_to: Callable[[str], str]
) -> None:
    script = db("sql", f"{start}:{end}", "--dialect", "postgresql")["sql"]
    server, template = place.postgresql(), upgraded_to(start)
    with empty_postgresql(server, template) as online, empty_postgresql(server, template) as offline:
        up = ("base", *REVISIONS).index(start) < ("base", *REVISIONS).index(end)
        db(*(["upgrade"] if up else ["downgrade", "--yes"]), end, "--url", online)
        command = [program("psql"), "-v", "ON_ERROR_STOP=1", "-q", offline]
        ran = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert dump(offline) == dump(online)
        assert db("current", "--url", offline) == db("current", "--url", online)


@pytest.mark.parametrize(("start", "end"), PATHS, ids=str)
def test_a_script_for_sqlite_makes_the_same_schema(start: str, end: str, tmp_path: Path, db: Command) -> None:
    script = db("sql", f"{start}:{end}", "--dialect", "sqlite")["sql"]
    schemas = []
    for name in ("online", "offline"):
        url = f"sqlite:///{tmp_path}/{name}.db"
        db("upgrade", start, "--url", url)
        if name == "offline":
            execute(url, script)
        else:
            up = ("base", *REVISIONS).index(start) < ("base", *REVISIONS).index(end)
            db(*(["upgrade"] if up else ["downgrade", "--yes"]), end, "--url", url)
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            schemas.append(connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall())
            schemas.append(connection.execute("SELECT * FROM firefly_memory_version").fetchall() if schemas[-1] else [])
        connection.close()
    assert schemas[:2] == schemas[2:]


def test_a_script_that_fails_changes_nothing(postgresql: str, db: Command) -> None:
    db("upgrade", "--url", postgresql)
    before = dump(postgresql)
    script = db("sql", "base:head")["sql"]
    command = [program("psql"), "-v", "ON_ERROR_STOP=1", "-q", postgresql]
    ran = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "already exists" in ran.stderr
    assert dump(postgresql) == before

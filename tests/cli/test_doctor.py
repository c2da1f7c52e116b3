"""``firefly-memory doctor`` finds problems of real servers and files, suggests repairs, and changes nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pymongo
import pytest

from firefly_memory import ConversationMemory, FileStore, MemoryEntry, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.databases.diagnostics import Level, clock_skew
from firefly_memory.databases.files.diagnosis import by_others, file_system, free_space
from firefly_memory.schema import REVISIONS
from firefly_memory.testing.clock import stopped
from firefly_memory.urls import without_password
from tests.support.backends import Place
from tests.support.command_line import run
from tests.support.earlier_conversation_list import earlier_list
from tests.support.pgbouncer import PgBouncer
from tests.support.servers import EmbeddedMongoDB


@dataclass(frozen=True)
class Report:
    code: int
    findings: list[dict[str, str]]
    error: str

    def of(self, level: str) -> dict[str, str]:
        return {each["what"]: f"{each['found']} -> {each['do']}" for each in self.findings if each["level"] == level}


def doctor(*arguments: str, cwd: Path, **variables: str) -> Report:
    ended = run("doctor", *arguments, "--json", cwd=cwd, **variables)
    assert "Traceback" not in ended.stderr, ended.stderr
    return Report(ended.returncode, json.loads(ended.stdout).get("findings", []), ended.stderr)


@pytest.fixture
def named(admin: psycopg.Connection[Any]) -> Iterator[str]:
    """The name of a new schema, of a role and of a database, for whoever makes them."""
    name = f"doctor_{uuid4().hex[:8]}"
    with ExitStack() as later:
        later.callback(lambda: admin.execute(f"DROP ROLE IF EXISTS {name}".encode()))
        later.callback(lambda: admin.execute(f"DROP DATABASE IF EXISTS {name}".encode()))
        later.callback(lambda: admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode()))
        yield name


@pytest.fixture
def mongodb_name(place: Place) -> Iterator[str]:
    name = f"doctor_{uuid4().hex[:8]}"
    yield name
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(place.mongodb()) as client:
        client.drop_database(name)


def test_a_healthy_file_has_no_problem_and_is_left_as_it_is(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.db") as store:
        store.save("n", MemoryEntry())
        in_use = {path: path.read_bytes() for path in tmp_path.iterdir()}
        assert doctor("--url", "sqlite:///a.db", cwd=tmp_path).code == Exit.DONE
        assert {path: path.read_bytes() for path in tmp_path.iterdir() if "shm" not in path.name} == {
            path: text for path, text in in_use.items() if "shm" not in path.name
        }
    at_rest = {path: path.read_bytes() for path in tmp_path.iterdir()}
    report = doctor("--url", "sqlite:///a.db", cwd=tmp_path)
    assert (report.code, report.of("problem"), report.of("warning")) == (Exit.DONE, {}, {})
    assert report.of("ok").keys() >= {"SQLite", "file", "disk", "journal", "integrity", "schema"}
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == at_rest
    settings = {"FIREFLY_AGENTIC_MEMORY_BACKEND": "sqlite", "FIREFLY_AGENTIC_MEMORY_SQLITE_PATH": "a.db"}
    words = run("doctor", cwd=tmp_path, **settings)
    assert (words.returncode, words.stderr, words.stdout.splitlines()[-1]) == (0, "", "all is well")


def test_doctor_names_each_problem_of_an_sqlite_file(tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    empty.chmod(0o666)
    report = doctor("--url", "sqlite:///empty.db", cwd=tmp_path)
    assert report.code == Exit.DRIFT
    missing = (
        f"there is none; missing: {', '.join(REVISIONS)} -> run: firefly-memory db upgrade --url sqlite:///empty.db"
    )
    assert report.of("problem") == {"schema": missing}
    assert report.of("warning").keys() == {"permissions", "journal"}
    assert empty.read_bytes() == b""
    with SQLiteStore(tmp_path / "bad.db") as store:
        store.save_many("n", [MemoryEntry(content="x" * 1000) for _ in range(100)])
    with (tmp_path / "bad.db").open("r+b") as file:
        file.seek(20 * 4096)
        file.write(os.urandom(8 * 4096))
    report = doctor("--url", "sqlite:///bad.db", cwd=tmp_path)
    assert report.code == Exit.DRIFT
    assert "integrity" in report.of("problem")
    (tmp_path / "text.db").write_text("this is no database " * 100)
    assert "not a database" in doctor("--url", "sqlite:///text.db", cwd=tmp_path).of("problem")["integrity"]


def test_doctor_names_each_problem_of_files(tmp_path: Path) -> None:
    with FileStore(tmp_path / "files") as store:
        for namespace in ("good", "bad", "open"):
            store.save(namespace, MemoryEntry())
    assert doctor("--url", "file:files", cwd=tmp_path).of("problem") == {}
    (tmp_path / "files" / "bad.json").write_text('{"format": "firefly-memory/1", "namespace": "bad", "entries": [1]}')
    (tmp_path / "files" / "cut.json").write_text('{"format"')
    (tmp_path / "files" / "good.json.tmp").touch()
    (tmp_path / "files" / "open.json").chmod(0o666)
    before = {path: path.read_bytes() for path in (tmp_path / "files").glob("*.json*")}
    settings = {"FIREFLY_AGENTIC_MEMORY_BACKEND": "file", "FIREFLY_AGENTIC_MEMORY_FILE_DIR": "files"}
    report = doctor(cwd=tmp_path, **settings)
    assert report.code == Exit.DRIFT
    problems = [each["found"] for each in report.findings if each["level"] == "problem"]
    assert len(problems) == 2
    assert "bad.json" in problems[0]
    assert "cut.json" in problems[1]
    assert "chmod o-rwx" in report.of("warning")["permissions"]
    assert "good.json.tmp" in report.of("warning")["file"]
    assert {path: path.read_bytes() for path in (tmp_path / "files").glob("*.json*")} == before


def test_files_with_conversations_are_healthy(tmp_path: Path) -> None:
    earlier_list(tmp_path / "files", "listed by an earlier version")
    report = doctor("--url", "file:files", cwd=tmp_path)
    assert (report.code, report.of("problem")) == (Exit.DONE, {})
    with FileStore(tmp_path / "files") as store:
        store.save("\x10\x00", MemoryEntry())
        memory = ConversationMemory(store=store)
        for name in ("of a model", "\x10\x00", "x" * 512):
            memory.add_turn(name, "p", "a")
            memory.add_turn(name, "p", "a")
        memory.new_conversation("empty")
    report = doctor("--url", "file:files", cwd=tmp_path)
    assert (report.code, report.of("problem")) == (Exit.DONE, {})
    assert "each of 4 can be read; 7 live entries and turns" in report.of("ok")["files"]
    path = tmp_path / "files" / "conversation%3aof%20a%20model.json"
    path.write_text(path.read_text().replace('"turn_id', '"turn_di'))
    report = doctor("--url", "file:files", cwd=tmp_path)
    assert report.code == Exit.DRIFT
    assert path.name in report.of("problem")["file"]


def test_variables_without_effect_are_listed(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir(0o700)
    block = {
        "BACKEND": "file",
        "FILE_DIR": "files",
        "POSTGRES_URL": "postgresql://u:secret@h/x",
        "MONGODB_POOL_SIZE": "3",
    }
    settings = {f"FIREFLY_AGENTIC_MEMORY_{name}": value for name, value in block.items()}
    report = doctor(cwd=tmp_path, **settings)
    assert (report.code, report.of("warning")) == (Exit.DONE, {})
    assert report.of("ok")["settings"] == (
        "the store is files, so these are not used: FIREFLY_AGENTIC_MEMORY_MONGODB_POOL_SIZE, "
        "FIREFLY_AGENTIC_MEMORY_POSTGRES_URL -> "
    )


@pytest.mark.parametrize("backend", ["postgres", "mongodb"])
def test_a_server_that_a_manager_does_not_use_is_a_warning(backend: str, place: Place) -> None:
    url = place.postgresql() if backend == "postgres" else place.mongodb()
    settings = {f"FIREFLY_AGENTIC_MEMORY_{backend.upper()}_URL": url}
    needed = f"FIREFLY_AGENTIC_MEMORY_BACKEND={backend}"
    alone = doctor(cwd=place.directory, **settings)
    warned = f"MemoryManager.from_config() keeps everything in memory unless {needed} is set -> set {needed}"
    assert alone.of("warning")["settings"] == warned
    used = doctor(cwd=place.directory, **settings, FIREFLY_AGENTIC_MEMORY_BACKEND=backend)
    assert "settings" not in used.of("warning")


def test_doctor_names_problems_of_a_disk(tmp_path: Path) -> None:
    assert [finding.level for finding in free_space(tmp_path, 2**60)] == [Level.WARNING]
    assert all(finding.level is Level.OK for finding in [*file_system(tmp_path), *free_space(tmp_path, 0)])
    assert list(by_others([tmp_path])) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--url", "sqlite:///mistyped.db"], Exit.BEHIND, "there is no file"),
        (["--url", "file:mistyped"], Exit.UNREACHABLE, "there is no directory"),
        (["--url", "postgresql://u:secret@127.0.0.1:1/x"], Exit.UNREACHABLE, "127.0.0.1"),
        (["--url", "mongodb://u:secret@127.0.0.1:1/", "--timeout", "1"], Exit.UNREACHABLE, "127.0.0.1"),
        (["--url", "redis://u:secret@h"], Exit.USAGE, "no store has a URL that starts with 'redis'"),
        ([], Exit.USAGE, "pass --url"),
    ],
    ids=str,
)
def test_an_unreachable_store_has_an_exit_code_and_is_not_created(
    arguments: list[str], code: int, words: str, tmp_path: Path
) -> None:
    report = doctor(*arguments, cwd=tmp_path)
    assert (report.code, report.findings) == (code, [])
    assert words in report.error
    assert "secret" not in report.error
    assert list(tmp_path.iterdir()) == []


def test_a_healthy_postgresql_database_has_no_problem(place: Place, named: str) -> None:
    with PostgreSQLStore(place.postgresql(), schema_name=named):
        report = doctor("--url", place.postgresql(), "--schema", named, cwd=place.directory)
    assert (report.code, report.of("problem"), report.of("warning")) == (Exit.DONE, {}, {})
    seen = {
        "server",
        "encoding",
        "time zone",
        "writing",
        "clock",
        "connections",
        "pooler",
        "rights",
        "creating",
        "schema",
    }
    assert report.of("ok").keys() == seen
    crowded = doctor(
        "--url", place.postgresql(), "--schema", named, cwd=place.directory, FIREFLY_AGENTIC_MEMORY_POSTGRES_POOL_SIZE="999"
    )  # fmt: skip
    assert crowded.code == Exit.DONE
    assert "pool_size is 999 -> lower pool_size" in crowded.of("warning")["connections"]


def test_a_missing_or_drifted_schema_is_found(place: Place, admin: psycopg.Connection[Any], named: str) -> None:
    arguments = ["--url", place.postgresql(), "--schema", named]
    missing = doctor(*arguments, cwd=place.directory)
    assert missing.code == Exit.DRIFT
    shown = without_password(place.postgresql())
    advice = f"run: firefly-memory db upgrade --url {shlex.quote(shown)} --schema {named}"
    assert missing.of("problem")["schema"].endswith(advice)
    (place.directory / "url").write_text(place.postgresql())
    from_file = doctor("--url-file", "url", "--schema", named, cwd=place.directory)
    assert from_file.of("problem")["schema"].endswith(f"firefly-memory db upgrade --url-file url --schema {named}")
    settings = {"FIREFLY_AGENTIC_MEMORY_URL_FILE": "url", "FIREFLY_AGENTIC_MEMORY_POSTGRES_SCHEMA": named}
    configured = doctor(cwd=place.directory, **settings)
    assert configured.of("problem")["schema"].endswith(f"firefly-memory db upgrade --schema {named}")
    assert admin.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [named]).fetchall() == []
    with PostgreSQLStore(place.postgresql(), schema_name=named) as store:
        store.save_many("n", [MemoryEntry(), MemoryEntry()])
    admin.execute(f"DROP INDEX {named}.idx_expires_at".encode())
    broken = f"CREATE UNIQUE INDEX CONCURRENTLY left_over ON {named}.memory_entries (namespace)".encode()
    with pytest.raises(psycopg.errors.UniqueViolation):
        admin.execute(broken)
    drifted = doctor(*arguments, cwd=place.directory)
    assert drifted.code == Exit.DRIFT
    assert f"CREATE INDEX idx_expires_at ON {named}.memory_entries" in drifted.of("problem")["schema"]
    assert f"DROP INDEX {named}.left_over" in drifted.of("warning")["index"]
    admin.execute(f"UPDATE {named}.firefly_memory_version SET version_num = '9999'".encode())
    ahead = doctor(*arguments, cwd=place.directory)
    assert "9999; this version knows revisions up to" in ahead.of("problem")["schema"]


def test_a_role_without_rights_is_found(place: Place, admin: psycopg.Connection[Any], named: str) -> None:
    with PostgreSQLStore(place.postgresql(), schema_name=named):
        pass
    url = f"postgresql://{named}:secret@{place.postgresql().rpartition('@')[2]}"
    arguments = ["--url", url, "--schema", named]
    admin.execute(f"CREATE ROLE {named} LOGIN PASSWORD 'secret'".encode())
    nothing = doctor(*arguments, cwd=place.directory)
    assert nothing.code == Exit.DRIFT
    assert "secret" not in str(nothing)
    advice = nothing.of("problem")["rights"]
    assert f"{named} has no USAGE on schema {named} -> GRANT USAGE" in advice
    (advised,) = re.findall(r"firefly-memory (db grants .*?)(?: prints |$)", advice)
    assert run(*shlex.split(advised), cwd=place.directory).returncode == Exit.DONE
    admin.execute(f"GRANT USAGE ON SCHEMA {named} TO {named}".encode())
    admin.execute(f"GRANT SELECT ON {named}.memory_entries, {named}.firefly_memory_version TO {named}".encode())
    some = doctor(*arguments, cwd=place.directory)
    assert (
        "INSERT on memory_entries, UPDATE on memory_entries, DELETE on memory_entries" in some.of("problem")["rights"]
    )
    assert "SELECT on firefly_memory_version" not in some.of("problem")["rights"]
    admin.execute(f"REVOKE ALL ON {named}.firefly_memory_version FROM {named}".encode())
    assert "may not see" in doctor(*arguments, cwd=place.directory).of("warning")["schema"]
    for statement in json.loads(run("db", "grants", named, "--schema", named, "--json", cwd=place.directory).stdout)[
        "statements"
    ]:
        admin.execute(statement.encode())
    enough = doctor(*arguments, cwd=place.directory)
    assert (enough.code, enough.of("problem")) == (Exit.DONE, {})
    assert "cannot migrate" in enough.of("ok")["rights"]
    admin.execute(f"DROP OWNED BY {named}".encode())


def test_a_read_only_database_and_a_small_encoding_are_found(
    place: Place, admin: psycopg.Connection[Any], named: str
) -> None:
    admin.execute(
        f"CREATE DATABASE {named} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0".encode()
    )
    url = f"{place.postgresql().rpartition('/')[0]}/{named}"
    report = doctor("--url", f"{url}?options=-c%20default_transaction_read_only=on", cwd=place.directory)
    assert report.code == Exit.DRIFT
    assert report.of("problem").keys() == {"encoding", "writing", "schema"}
    assert "SQL_ASCII" in report.of("problem")["encoding"]


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_connection_pooler_is_found(mode: str, place: Place, named: str) -> None:
    with PostgreSQLStore(place.postgresql(), schema_name=named):
        pass
    pooler = PgBouncer(place.postgresql(), mode)
    try:
        pooler.start()
        arguments = ["--url", pooler.url, "--schema", named]
        report = doctor(*arguments, cwd=place.directory)
        told = doctor(*arguments, cwd=place.directory, FIREFLY_AGENTIC_MEMORY_POSTGRES_POOLER="transaction")
    finally:
        pooler.remove()
    if mode == "transaction":
        assert 'pooler="transaction"' in report.of("warning")["pooler"]
        assert "as the store is told" in told.of("ok")["pooler"]
    else:
        assert "gives each session a connection" in report.of("ok")["pooler"]
    assert (report.code, told.code) == (Exit.DONE, Exit.DONE)


def test_a_replica_set_has_no_problem_once_the_indexes_are_there(place: Place, mongodb_name: str) -> None:
    arguments = ["--url", place.mongodb(), "--database", mongodb_name]
    missing = doctor(*arguments, cwd=place.directory)
    assert missing.code == Exit.DRIFT
    assert "run: firefly-memory db upgrade --url " in missing.of("problem")["indexes"]
    assert f" --database {mongodb_name}, as a user" in missing.of("problem")["indexes"]
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(place.mongodb()) as client:
        assert mongodb_name not in client.list_database_names()
    with MongoDBStore(place.mongodb(), database=mongodb_name):
        report = doctor(*arguments, cwd=place.directory)
    assert (report.code, report.of("problem"), report.of("warning")) == (Exit.DONE, {}, {})
    assert report.of("ok").keys() == {"server", "clock", "topology", "majority", "rights", "indexes"}


def test_an_index_of_mongodb_that_drifted_is_found(place: Place, mongodb_name: str) -> None:
    client: pymongo.MongoClient[Any]
    with MongoDBStore(place.mongodb(), database=mongodb_name), pymongo.MongoClient(place.mongodb()) as client:
        client[mongodb_name].entries.drop_index("expires_at_1")
        client[mongodb_name].entries.create_index("expires_at", expireAfterSeconds=0)
    report = doctor("--url", place.mongodb(), "--database", mongodb_name, cwd=place.directory)
    assert report.code == Exit.DRIFT
    said = report.of("problem")["indexes"]
    assert 'index expires_at_1 of entries is {"expires_at": 1} with expireAfterSeconds 0; it should be' in said
    assert f'db.getSiblingDB("{mongodb_name}").runCommand' in said


def test_a_mongodb_user_without_rights_is_found(place: Place, mongodb_name: str) -> None:
    client: pymongo.MongoClient[Any]
    with MongoDBStore(place.mongodb(), database=mongodb_name), pymongo.MongoClient(place.mongodb()) as client:
        client[mongodb_name].command("createUser", "reader", pwd="secret", roles=[{"role": "read", "db": mongodb_name}])
        server = place.mongodb().partition("://")[2].rpartition("@")[2].partition("?")[0]
        url = f"mongodb://reader:secret@{server}?directConnection=true&authSource={mongodb_name}"
        report = doctor("--url", url, "--database", mongodb_name, cwd=place.directory)
        client[mongodb_name].command("dropUser", "reader")
    assert report.code == Exit.DRIFT
    assert "reader lacks insert on entries, remove on entries, update on entries" in report.of("problem")["rights"]


def test_a_standalone_mongod_is_found(tmp_path: Path) -> None:
    server = EmbeddedMongoDB(replica_set=False)
    try:
        server.start()
        with MongoDBStore(server.url):
            pass
        report = doctor("--url", server.url, cwd=tmp_path)
    finally:
        server.remove()
    assert (report.code, report.of("problem")) == (Exit.DONE, {})
    assert "--replSet" in report.of("warning")["topology"]


def test_different_clocks_are_found(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    now, second = datetime(2024, 1, 1, tzinfo=UTC), timedelta(seconds=1)
    levels: Callable[[float], Level] = lambda skew: clock_skew(now, now + skew * second, now + 0 * second).level  # noqa: E731
    assert [levels(skew) for skew in (0, 0.9, -0.9, 2, -59, 61, -3600)] == [
        "ok",
        "ok",
        "ok",
        "warning",
        "warning",
        "problem",
        "problem",
    ]
    assert clock_skew(now, now + 5 * second, now + 10 * second).level is Level.OK
    with stopped(datetime.now(UTC) - timedelta(hours=1)):
        for url in (place.postgresql(), place.mongodb()):
            assert main(["doctor", "--url", url]) == Exit.DRIFT
            assert "s ahead of the one here" in capsys.readouterr().out

"""``firefly-memory db``: what a pipeline runs, and what it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pymongo
import pytest

from firefly_memory import MemoryEntry, connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.databases.sql.schema.metadata import HEAD, REVISIONS
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute
from tests.support.servers import EmbeddedPostgreSQL

LATER = REVISIONS[1:]

SECRET = "correct-horse"


@pytest.fixture
def postgresql(place: Place) -> Iterator[str]:
    with empty_postgresql(place.postgresql()) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/memory.db"
    found: str = request.getfixturevalue("postgresql")
    return found


class Db:
    """The command, and what it said."""

    def __init__(self, capture: pytest.CaptureFixture[str], *given: str) -> None:
        self._capture = capture
        self._given = given
        self.out = self.err = ""

    def __call__(self, action: str, *arguments: str) -> int:
        try:
            code = main(["db", action, *arguments, *self._given])
        except SystemExit as ended:  # argparse
            code = int(ended.code or 0)
        self.out, self.err = self._capture.readouterr()
        assert "Traceback" not in self.err
        assert SECRET not in self.out + self.err
        return code

    def json(self, action: str, *arguments: str) -> dict[str, Any]:
        self(action, *arguments, "--json")
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture
def db(url: str, capsys: pytest.CaptureFixture[str]) -> Db:
    return Db(capsys, "--url", url)


@pytest.fixture
def anywhere(capsys: pytest.CaptureFixture[str]) -> Db:
    return Db(capsys)


def test_up_and_down_and_what_the_codes_say(db: Db, url: str) -> None:
    assert db("upgrade") == Exit.DONE
    assert db.out == f"ran {', '.join(REVISIONS)}\nat {HEAD}\n"
    assert db("upgrade") == Exit.DONE
    assert db.out == f"nothing to do\nat {HEAD}\n"
    assert db("current") == Exit.DONE
    assert db.out == f"{HEAD} (head)\n"
    assert db("check") == Exit.DONE
    with connect(url, migrate=False) as store:
        store.save("n", MemoryEntry(content="kept"))
    assert db("downgrade", "0001", "--yes") == Exit.DONE
    assert db.out.startswith(f"undid {', '.join(reversed(LATER))}\n")
    assert db("current") == Exit.BEHIND
    assert db.out == f"0001; missing: {', '.join(LATER)}\n"
    assert db("check") == Exit.BEHIND
    assert db("upgrade", "head") == Exit.DONE
    assert db.out.startswith(f"ran {', '.join(LATER)}\n")
    with connect(url, migrate=False) as store:
        assert [entry.content for entry in store.load("n")] == ["kept"]
    assert db("downgrade", "base", "--yes") == Exit.DONE
    assert db("downgrade", "base") == Exit.DONE, "nothing is left to lose"
    assert db.out == "nothing to do\nat base\n"
    assert db("current") == Exit.BEHIND
    assert db("upgrade", "0001") == Exit.DONE
    assert db.out.endswith("at 0001\n")
    assert db("upgrade", "base") == Exit.DONE
    assert db.out == "nothing to do\nat 0001\n"


def test_machines_are_told_the_same(db: Db) -> None:
    assert db.json("upgrade") == {"ran": list(REVISIONS), "revision": HEAD}
    assert db.json("downgrade", "0001", "--yes") == {"undone": list(reversed(LATER)), "revision": "0001"}
    expected = {"revision": "0001", "head": HEAD, "state": "behind", "pending": list(LATER)}
    assert db.json("current") == expected
    assert db.json("check") == {**expected, "differences": []}
    assert db.json("stamp", "base") == {"revision": None}
    assert [each["revision"] for each in db.json("history")["revisions"]] == list(REVISIONS)
    assert db.json("upgrade", "0009") == {"error": db.err.removeprefix("firefly-memory: ").rstrip(), "exit_code": 2}


def test_a_database_that_is_ahead_is_left_alone(db: Db, url: str) -> None:
    db("upgrade")
    table = "firefly_memory_version" if url.startswith("sqlite") else "firefly_memory.firefly_memory_version"
    execute(url, f"UPDATE {table} SET version_num = '9999'")
    for action in (["current"], ["check"], ["upgrade"], ["downgrade", "base"]):
        assert db(*action) == Exit.AHEAD
        assert "9999" in db.out + db.err
    assert db.json("current")["state"] == "ahead"


def test_a_table_made_by_hand_is_adopted_by_a_stamp(db: Db, url: str) -> None:
    db("upgrade")
    db("stamp", "base")
    assert db("upgrade") == Exit.FAILED
    assert "memory_entries is there already, but no revision is recorded" in db.err
    assert "firefly-memory db stamp 0003 --url " in db.err  # the last one that makes a table
    assert f"firefly-memory db check --url {url}" in db.err.replace("'", "")
    assert db("stamp", "0003") == Exit.DONE
    assert db("upgrade") == Exit.DONE
    assert db("check") == Exit.DONE


@pytest.mark.parametrize(
    ("there", "recorded"), [("0003", "0002"), ("0003", "0001"), ("0002", "0001"), ("0001", "base")]
)
def test_a_revision_that_is_recorded_wrongly_is_named_with_the_one_to_record(there: str, recorded: str, db: Db) -> None:
    db("upgrade", there)
    db("stamp", recorded)
    assert db("upgrade") == Exit.FAILED
    assert ("no revision is recorded" if recorded == "base" else f"the recorded revision is {recorded}") in db.err
    (first,) = {"0002": ["memory_dialogues"], "0001": ["memory_conversations"], "base": ["memory_entries"]}[recorded]
    assert f"the table {first} is there already" in db.err
    assert f"firefly-memory db stamp {there} --url" in db.err
    assert db("stamp", there) == Exit.DONE
    assert db("upgrade") == Exit.DONE
    assert db("check") == Exit.DONE


def test_no_stamp_is_advised_that_would_change_nothing(db: Db, url: str) -> None:
    db("upgrade")
    place = "" if url.startswith("sqlite") else "firefly_memory."
    execute(url, f"DROP TABLE {place}memory_dialogue_entries")
    db("stamp", "0002")
    assert db("upgrade") == Exit.FAILED
    assert "the table memory_dialogues is there already, but the recorded revision is 0002" in db.err
    assert "stamp" not in db.err
    assert "restore a backup" in db.err


def test_the_history_has_a_line_for_each_revision(anywhere: Db) -> None:
    assert anywhere("history") == Exit.DONE
    lines = anywhere.out.splitlines()
    assert [line[:4] for line in lines] == list(REVISIONS)
    assert lines[-1].endswith("(head)")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["upgrade", "0009", "--url", "sqlite:///a.db"], 2, "no revision '0009'; there are base, 0001"),
        (["sql", "0002"], 2, "write FROM:TO"),
        (["sql", "nothing:head"], 2, "no revision 'nothing'"),
        (["current"], 2, "pass --url"),
        (
            ["current", "--url", "sqlite:///a.db", "--schema", "s"],
            2,
            "--schema is for PostgreSQL, and the store is SQLite",
        ),
        (["upgrade", "--url", "sqlite:///a.db", "--database", "d"], 2, "--database is for MongoDB"),
        (["current", "--url", "redis://user:correct-horse@h"], 2, "redis"),
        (["current", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["check", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["downgrade", "base", "--yes", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["stamp", "head", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["stamp", "base", "--url", "sqlite:///not-there.db"], 3, "there is no file"),
        (["current", "--url", "postgresql://u:correct-horse@127.0.0.1:1/x"], 6, "127.0.0.1"),
        (["current", "--url-file", "not-there"], 2, "cannot be read from the file not-there"),
        (["current", "--url-file", "empty"], 2, "must have a URL in it"),
        (["current", "--url", "sqlite:///a.db", "--url-file", "empty"], 2, "not allowed with"),
        (["upgrade", "--url", "postgresql://h/x", "--schema", "pg_mine"], 2, "pg_mine"),
        (["grants", "role", "--url", "sqlite:///a.db"], 2, "only PostgreSQL has roles"),
        (["grants", ""], 2, "no name of a role"),
        (["grants", "public"], 2, "for all roles"),
        (["grants", "none"], 2, "no name of a role"),
        (["grants", "r" * 64], 2, "more than 63 bytes"),
        (["downgrade", "--url", "sqlite:///a.db"], 2, "revision"),
        (["fly"], 2, "invalid choice"),
    ],
    ids=str,
)
def test_what_goes_wrong_is_one_line_and_a_code(
    arguments: list[str], code: int, words: str, anywhere: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n")
    assert anywhere(*arguments) == code
    assert words in anywhere.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"], "nothing is made"


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "-1", "0", "soon", ""])
@pytest.mark.parametrize(
    "arguments",
    [
        ["upgrade", "--timeout"],
        ["upgrade", "--lock-timeout"],
        ["downgrade", "base", "--yes", "--timeout"],
        ["downgrade", "base", "--yes", "--lock-timeout"],
        ["current", "--timeout"],
        ["check", "--timeout"],
        ["stamp", "head", "--timeout"],
        ["import-legacy", "--from", "sqlite:///old.db", "--timeout"],
    ],
    ids=" ".join,
)
def test_a_time_out_is_a_finite_number_above_0(
    arguments: list[str], seconds: str, anywhere: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert anywhere(*arguments[:-1], f"{arguments[-1]}={seconds}", "--url", "sqlite:///a.db") == Exit.USAGE
    assert f"argument {arguments[-1]}: must be a number of seconds above 0" in anywhere.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_a_time_out_of_doctor_is_checked_in_the_same_way(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--url", "memory:", f"--timeout={seconds}"])
    assert ended.value.code == Exit.USAGE
    assert "must be a number of seconds above 0" in capsys.readouterr().err


def test_a_long_time_out_is_no_trouble(url: str, anywhere: Db) -> None:
    for seconds in ("1e7", "1e300"):
        for action in (["upgrade", "--lock-timeout", seconds], ["check"], ["downgrade", "base", "--yes"]):
            assert anywhere(*action, "--url", url, "--timeout", seconds) == Exit.DONE, anywhere.err


def test_a_server_that_refuses_the_login_or_hangs(anywhere: Db) -> None:
    server = EmbeddedPostgreSQL(password=SECRET)
    server.start()
    try:
        wrong = server.url.replace(SECRET, "wrong")
        assert anywhere("current", "--url", wrong) == Exit.UNREACHABLE
        assert "refused the login" in anywhere.err
        assert "wrong" not in anywhere.err
        assert anywhere("current", "--url", server.url) == Exit.BEHIND
        server.freeze()
        assert anywhere("current", "--url", server.url, "--timeout", "1") in (Exit.UNREACHABLE, Exit.BUSY)
        server.thaw()
    finally:
        server.remove()


def test_the_url_comes_from_a_file_or_the_environment(
    url: str, anywhere: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "url"
    secret.write_text(f"{url}\n")
    assert anywhere("upgrade", "--url-file", str(secret)) == Exit.DONE
    with monkeypatch.context() as patch:
        patch.setenv("FIREFLY_AGENTIC_MEMORY_URL_FILE", str(secret))
        assert anywhere("current") == Exit.DONE
    with monkeypatch.context() as patch:
        patch.setenv("FIREFLY_AGENTIC_MEMORY_URL", url)
        assert anywhere("current") == Exit.DONE
        patch.setenv("FIREFLY_AGENTIC_MEMORY_POSTGRES_SCHEMA", "elsewhere")
        assert anywhere("current") == (Exit.DONE if url.startswith("sqlite") else Exit.BEHIND)
    with monkeypatch.context() as patch:
        if url.startswith("sqlite"):
            patch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "sqlite")
            patch.setenv("FIREFLY_AGENTIC_MEMORY_SQLITE_PATH", url.removeprefix("sqlite:///"))
        else:
            patch.setenv("FIREFLY_AGENTIC_MEMORY_POSTGRES_URL", url)
        assert anywhere("current") == Exit.DONE


@pytest.mark.parametrize(
    "arguments",
    [
        ["db", "downgrade", "base", "--yes", "--url", ""],
        ["db", "downgrade", "base", "--yes", "--url", " "],
        ["db", "downgrade", "base", "--yes", "--url-file", ""],
        ["db", "downgrade", "base", "--yes", "--schema", ""],
        ["db", "upgrade", "--database", ""],
        ["db", "upgrade", "--collection", ""],
        ["db", "check", "--url="],
        ["doctor", "--url", ""],
        ["export", "--url", ""],
        ["export", "--url-file", ""],
        ["export", ""],
        ["import", "--url", ""],
        ["import", ""],
        ["copy", "--from", "", "--to", "memory:"],
        ["copy", "--from", "memory:", "--to", ""],
        ["copy", "--from-file", "", "--to", "memory:"],
        ["copy", "--from", "memory:", "--to-file", ""],
        ["copy", "--from", "memory:", "--to", "memory:", "--to-schema", ""],
        ["copy", "--from", "memory:", "--to", "memory:", "--from-database", ""],
        ["copy", "--from", "memory:", "--to", "memory:", "--from-collection", ""],
        ["db", "import-legacy", "--from", ""],
        ["db", "import-legacy", "--from-file", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--url", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--table", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--database", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--collection", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--schema", ""],
        ["db", "import-legacy", "--from", "sqlite:///old.db", "--to-database", ""],
    ],
    ids=str,
)
def test_an_option_that_names_nothing_is_refused_and_the_environment_is_not_used(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a script has it whose variable is not set: ``--url "$URL"``."""
    monkeypatch.chdir(tmp_path)
    with connect("sqlite:///kept.db") as store:
        store.save("n", MemoryEntry(content="kept"))
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL", "sqlite:///kept.db")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    assert "is empty" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture
def mongodb(place: Place) -> Iterator[tuple[pymongo.MongoClient[Any], str]]:
    """A client, and the name of a database of the test's own."""
    name = f"db_command_{uuid4().hex[:12]}"
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(place.mongodb()) as client:
        yield client, name
        client.drop_database(name)


@pytest.mark.parametrize("by", ["variables", "url", "options", "capitals"])
def test_indexes_of_mongodb_are_made_and_checked_where_the_store_is(
    by: str, place: Place, mongodb: Any, anywhere: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, name = mongodb
    before = set(client.list_database_names())
    given: list[str] = []
    beside, separator, query = place.mongodb().partition("?")
    if by == "variables":
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "mongodb")
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MONGODB_URL", place.mongodb())
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MONGODB_DATABASE", name)
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MONGODB_COLLECTION", "memories")
    elif by == "url":
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_MONGODB_COLLECTION", "memories")
        given = ["--url", f"{beside.rstrip('/')}/{name}{separator}{query}"]
    else:
        url = place.mongodb().replace("mongodb", "MONGODB") if by == "capitals" else place.mongodb()
        given = ["--url", url, "--database", name, "--collection", "memories"]
    assert anywhere("check", *given) == Exit.BEHIND
    assert anywhere("current", *given) == Exit.BEHIND
    assert "indexes are missing; run `firefly-memory db upgrade" in anywhere.out
    for action in ("check", "current"):
        found = anywhere.json(action, *given)
        assert (found["state"], found["revision"], found["head"], found["pending"]) == ("behind", None, None, [])
    assert set(client.list_database_names()) == before, "looking makes nothing"
    assert anywhere("upgrade", *given) == Exit.DONE
    for action in ("check", "current"):
        assert anywhere(action, *given) == Exit.DONE
        assert anywhere.json(action, *given)["state"] == "current"
    assert set(client.list_database_names()) - before == {name}
    assert "entry_id_1" in client[name].memories.index_information()
    for refused in (["downgrade", "base"], ["grants", "role"], ["sql"]):
        assert anywhere(*refused, *given) == Exit.USAGE
        assert "MongoDB" in anywhere.err


@pytest.mark.parametrize("backend", ["file", "in_memory"])
def test_a_store_without_a_schema_has_nothing_to_migrate_and_no_other_is_touched(
    backend: str, postgresql: str, anywhere: Db, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", backend)
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_POSTGRES_URL", postgresql)  # left over
    for action in ("upgrade", "current", "check"):
        assert anywhere(action) == Exit.DONE
        assert "has no schema" in anywhere.out
    assert anywhere.json("upgrade") == {"ran": [], "revision": None}
    assert anywhere.json("check")["state"] == "no schema"
    for refused in (["sql"], ["grants", "role"], ["downgrade", "base"], ["stamp", "base"]):
        assert anywhere(*refused) == Exit.USAGE
    assert anywhere("sql", "--dialect", "sqlite") == Exit.DONE, "which says for what it is"
    assert anywhere("current", "--url", postgresql) == Exit.BEHIND, "nobody has migrated it"
    assert list(tmp_path.iterdir()) == []


def test_a_url_and_a_variable_that_contradicts_it_are_an_error(
    anywhere: Db, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL", "sqlite:///a.db")
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "file")
    for action in ("upgrade", "current", "check", "sql"):
        assert anywhere(action) == Exit.USAGE
        assert "FIREFLY_AGENTIC_MEMORY_BACKEND contradicts FIREFLY_AGENTIC_MEMORY_URL" in anywhere.err
    assert anywhere("upgrade", "--url", "sqlite:///b.db") == Exit.DONE
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_schemes_in_capitals_are_the_same(dialect: str, tmp_path: Path, place: Place, anywhere: Db) -> None:
    with empty_postgresql(place.postgresql()) as postgresql:
        url = f"sqlite:///{tmp_path}/memory.db" if dialect == "sqlite" else postgresql
        scheme, separator, rest = url.partition(":")
        for shouted in (f"{scheme.upper()}{separator}{rest}", f"{scheme.title()}{separator}{rest}"):
            assert anywhere("upgrade", "--url", shouted) == Exit.DONE
            assert anywhere("check", "--url", shouted) == Exit.DONE
            with connect(shouted, migrate=False) as store:
                store.save("n", MemoryEntry())


def test_a_migration_that_is_blocked_gives_up_and_changes_nothing(postgresql: str, anywhere: Db) -> None:
    given = "--url", postgresql
    anywhere("upgrade", *given)
    with psycopg.connect(postgresql) as reader:  # a transaction that is left open, as a report may
        reader.execute("SELECT count(*) FROM firefly_memory.memory_turns")
        assert anywhere("downgrade", "0001", "--yes", *given, "--lock-timeout", "0.2") == Exit.BUSY
        assert "another transaction has held a table for 0.2 seconds; nothing has been changed" in anywhere.err
        # And nobody who came after it had to wait behind it.
        execute(postgresql, "SELECT count(*) FROM firefly_memory.memory_turns")
    assert anywhere("current", *given) == Exit.DONE
    assert anywhere("downgrade", "0001", "--yes", *given) == Exit.DONE


_CROWD = """
import multiprocessing, sys, io, contextlib
from firefly_memory.cli import main
import firefly_memory.databases.sql.schema.commands, alembic.command, psycopg

def one(_):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(["db", "upgrade", "--url", sys.argv[1]])
    return code, said.getvalue().splitlines()[0]

with multiprocessing.get_context("fork").Pool(32) as pool:
    for code, line in pool.map(one, range(32), chunksize=1):
        print(code, line)
"""


def test_of_32_processes_one_migrates_and_all_succeed(url: str) -> None:
    crowd = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _CROWD, url],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert crowd.returncode == 0, crowd.stderr
    assert sorted(crowd.stdout.splitlines()) == ["0 nothing to do"] * 31 + [f"0 ran {', '.join(REVISIONS)}"]


def test_a_migrator_killed_in_the_middle_frees_the_others(postgresql: str, anywhere: Db) -> None:
    given = "--url", postgresql
    anywhere("upgrade", *given)
    with psycopg.connect(postgresql) as reader:
        reader.execute("SELECT count(*) FROM firefly_memory.memory_turns")
        command = [
            sys.executable,
            "-m",
            "firefly_memory.cli",
            "db",
            "downgrade",
            "base",
            "--yes",
            *given,
            "--lock-timeout",
            "60",
        ]
        with subprocess.Popen(command) as migrator:
            while not execute(postgresql, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                assert migrator.poll() is None
            assert anywhere("upgrade", *given, "--timeout", "0.5") == Exit.BUSY
            assert "still migrating" in anywhere.err
            migrator.kill()
    assert anywhere("downgrade", "0001", "--yes", *given) == Exit.DONE
    assert anywhere.out.startswith(f"undid {', '.join(reversed(LATER))}\n"), "the killed one changed nothing"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("firefly-memory 0.")


def test_the_help_explains_itself(anywhere: Db) -> None:
    for action in ("upgrade", "downgrade", "current", "history", "check", "sql", "grants", "stamp"):
        assert anywhere(action, "--help") == Exit.DONE
        assert "exit codes:" in anywhere.out
        assert "--url-file" in anywhere.out

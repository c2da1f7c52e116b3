"""``firefly-memory index enable`` and ``disable``, and what the other commands say of accelerators."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import psycopg
import pytest

from firefly_memory import NotSupportedError, PostgreSQLStore, SQLiteStore, connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.databases.sql.schema.commands import grants
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.search.embedders import default
from firefly_memory.service import accelerators, enable_accelerator
from tests.support import alembic_command
from tests.support.accelerated import COLUMN, found, knowledge_in, of_numbers, small_limit, texts, url, wheel
from tests.support.backends import Place
from tests.support.databases import execute
from tests.support.host_project import PROJECT, done
from tests.support.knowledge_stores import Letters
from tests.support.servers import EmbeddedPostgreSQL

__all__ = ["small_limit", "url", "wheel"]

VECTORS = "firefly_memory.memory_chunks_vectors"
INDEX = f"firefly_memory.idx_chunks_{COLUMN}"
ENABLE = ["index", "enable", "pgvector", "--embedder-name", "letters"]


@pytest.fixture
def filled(url: str) -> str:
    """The URL of a database whose chunks have vectors."""
    with knowledge_in(url):
        return url


@pytest.fixture
def enabled(filled: str) -> str:
    """The same, with pgvector switched on."""
    assert main([*ENABLE, "--quiet", "--url", filled]) == Exit.DONE
    return filled


def state_of(url: str, capsys: pytest.CaptureFixture[str], name: str = "pgvector") -> dict[str, Any]:
    capsys.readouterr()
    main(["index", "status", "--json", "--url", url])
    states = json.loads(capsys.readouterr().out)["accelerators"]
    found: dict[str, Any] = next(each for each in states if each["name"] == name)
    return found


def test_it_is_switched_on_shown_and_switched_off(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    functions = "SELECT proname FROM pg_proc WHERE pronamespace = 'firefly_memory'::regnamespace ORDER BY proname"
    before = execute(filled, functions)
    assert state_of(filled, capsys)["state"] == "disabled"
    assert main([*ENABLE, "--url", filled]) == Exit.DONE
    assert execute(filled, functions) != before
    assert "pgvector is enabled for chunks" in capsys.readouterr().out
    assert main(["index", "status", "--url", filled]) == Exit.DONE
    said = capsys.readouterr().out
    assert "chunks: pgvector is enabled for the embedder letters\n" in said
    assert "chunks: pg_trgm is not offered: the server does not offer the extension\n" in said
    assert main(["db", "check", "--url", filled]) == Exit.DONE
    assert main(["doctor", "--url", filled]) == Exit.DONE
    assert main([*ENABLE, "--url", filled]) == Exit.DONE  # again: there is nothing to do
    assert main(["index", "disable", "pgvector", "--json", "--url", filled]) == Exit.DONE
    assert state_of(filled, capsys) == {
        "kind": "chunks",
        "name": "pgvector",
        "state": "disabled",
        "embedder": None,
        "problem": None,
    }
    assert main(["index", "disable", "pgvector", "--url", filled]) == Exit.DONE
    assert main(["db", "check", "--url", filled]) == Exit.DONE
    assert execute(filled, functions) == before


def test_only_the_embedder_that_is_named_is_switched_off(enabled: str, capsys: pytest.CaptureFixture[str]) -> None:
    with PostgreSQLStore(enabled) as store:
        KnowledgeStore(store, embedder=of_numbers(lambda _: [1.0, 2.0], 2)).add("notes", "x")
        enable_accelerator(store, "pgvector", embedder="numbers")
        assert main(["index", "disable", "pgvector", "--embedder-name", "letters", "--url", enabled]) == Exit.DONE
        of_chunks = [each for each in accelerators(store) if (each.kind, each.name) == ("chunks", "pgvector")]
        assert [each.embedder for each in of_chunks] == ["numbers"]


BROKEN = {
    "its index was not built to its end": (
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{INDEX}'::regclass",
        "without a complete index",
    ),
    "it has no index": (f"DROP INDEX {INDEX}", "without a complete index"),
    "it has no trigger": (f"DROP TRIGGER {COLUMN} ON {VECTORS}", "without its trigger"),
    "its trigger is switched off": (f"ALTER TABLE {VECTORS} DISABLE TRIGGER {COLUMN}", "without its trigger"),
}


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize(("damage", "problem"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_one_is_reported_not_used_and_completed(
    damage: str, problem: str, enabled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(enabled, damage)
    with PostgreSQLStore(enabled) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        knowledge.add("notes", "written meanwhile")
        with pytest.raises(NotSupportedError):
            found(knowledge)
    assert state_of(enabled, capsys)["problem"] == problem
    assert main(["index", "status", "--url", enabled]) == Exit.DRIFT
    advice = "firefly-memory index enable pgvector --kind chunks --embedder-name letters"
    assert advice in capsys.readouterr().out
    for command in (["db", "check"], ["doctor"]):
        assert main([*command, "--url", enabled]) == Exit.DRIFT
        said = capsys.readouterr().out
        assert said.count(problem) == 1
        assert advice in said
    assert main([*ENABLE, "--url", enabled]) == Exit.DONE
    assert main(["db", "check", "--url", enabled]) == Exit.DONE
    assert execute(enabled, f"SELECT count(*) - count({COLUMN}) FROM {VECTORS}") == [(0,)]
    with PostgreSQLStore(enabled) as store:
        assert "written meanwhile" in dict(found(KnowledgeStore(store, embedder=Letters()), "written meanwhile"))


@pytest.mark.thorough
def test_an_interrupted_build_is_resumed(enabled: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A transaction that has read the table holds the build up, until the server ends the build."""
    filled = enabled
    with psycopg.connect(filled) as holder, psycopg.connect(filled, autocommit=True) as admin:
        admin.execute(f"DROP INDEX {INDEX}".encode())
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM firefly_memory.memory_chunks_vectors")
        results: list[int] = []
        building = threading.Thread(target=lambda: results.append(main([*ENABLE, "--quiet", "--url", filled])))
        building.start()
        builds = "FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'"
        while not (pids := admin.execute(f"SELECT pid {builds}".encode()).fetchall()):
            assert building.is_alive()
        admin.execute("SELECT pg_terminate_backend(%s)", pids[0])
        building.join()
        assert results == [Exit.UNREACHABLE]
    assert state_of(filled, capsys)["state"] == "broken"
    assert main([*ENABLE, "--url", filled]) == Exit.DONE
    assert state_of(filled, capsys)["state"] == "enabled"


def test_two_that_switch_it_on_at_once_make_one(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    results: list[int] = []
    both = [threading.Thread(target=lambda: results.append(_enable(filled))) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert results == [1, 1]
    assert execute(filled, "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'idx_chunks_vector%'") == [(1,)]


def _enable(url: str) -> int:
    with PostgreSQLStore(url) as store:
        enable_accelerator(store, "pgvector", embedder="letters")
        return sum(each.state == "enabled" for each in accelerators(store))


def test_vectors_that_are_too_long_are_refused(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    with PostgreSQLStore(filled) as store:
        for dimensions in (2_001, 4_001):
            embedder = of_numbers(lambda text, size=dimensions: [float(len(text))] * size, dimensions, f"e{dimensions}")  # type: ignore[misc]
            KnowledgeStore(store, embedder=embedder).add("notes", texts(3))
    assert main(["index", "enable", "pgvector", "--embedder-name", "e4001", "--url", filled]) == Exit.FAILED
    assert "at most 4,000 dimensions, and these have 4,001" in capsys.readouterr().err
    assert main(["index", "enable", "pgvector", "--embedder-name", "e2001", "--url", filled]) == Exit.DONE
    halves = f"SELECT count(*) FROM pg_attribute WHERE attrelid = '{VECTORS}'::regclass"
    assert execute(filled, f"{halves} AND format_type(atttypid, atttypmod) LIKE '%halfvec(2001)'") == [(1,)]


@pytest.mark.usefixtures("small_limit")
def test_half_vectors_find_what_vectors_find(url: str) -> None:
    def numbers(text: str) -> list[float]:
        return [float(100_000 * text.count(letter)) for letter in "abcdefghij"] * 201

    embedder = of_numbers(numbers, 2_010)
    with PostgreSQLStore(url) as store:
        knowledge = KnowledgeStore(store, embedder=embedder)
        knowledge.add("notes", [text.replace(" ", "") for text in texts(40)])
        enable_accelerator(store, "pgvector", embedder=embedder)
        assert len(knowledge.search("notes", "abcabc", 10, "semantic")) == 10


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["enable", "pg_trgm"], "the server does not offer the extension pg_trgm", Exit.FAILED),
        (["enable", "pgvektor"], "there is no accelerator 'pgvektor'; there are pgvector, pg_trgm", Exit.USAGE),
        (["enable", "pgvector", "--kind", "entries"], "there are no accelerators for 'entries'", Exit.USAGE),
        (["enable", "pgvector", "--embedder-name", "x"], "no chunks have vectors of an embedder 'x'", Exit.USAGE),
        (["disable", "pg_trgm", "--embedder-name", "x"], "leave the embedder out", Exit.USAGE),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str], said: str, code: Exit, filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", *arguments, "--url", filled]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("embedder", ["there", "not installed"])
def test_other_stores_have_exact_search_only(
    embedder: str,
    place: Place,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if embedder == "not installed":
        monkeypatch.setattr(default, "_PACKAGES", ("a package that nobody has",))
    sqlite = f"sqlite:///{tmp_path}/memory.db"
    with connect(sqlite):
        pass
    stores = {place.mongodb(): "MongoDB", "memory:": "memory", f"file:{tmp_path}": "files", sqlite: "SQLite"}
    for other, name in stores.items():
        assert main([*ENABLE, "--url", other]) == Exit.USAGE
        assert f"{name} has exact search only" in capsys.readouterr().err
    for other, name in (("memory:", "InMemoryStore"), (sqlite, "SQLiteStore")):
        with connect(other) as store, pytest.raises(NotSupportedError, match=f"{name} has exact search only"):
            enable_accelerator(store, "pgvector")
    with SQLiteStore(tmp_path / "memory.db"):
        pass
    assert main([*ENABLE, "--url", f"sqlite:///{tmp_path}/memory.db"]) == Exit.USAGE


# Rights


@pytest.fixture
def service(filled: str) -> Iterator[str]:
    """The URL for a role that was granted what ``db grants`` prints, and nothing else."""
    execute(filled, "DROP ROLE IF EXISTS service; CREATE ROLE service LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC")
    execute(filled, f"REVOKE CREATE ON DATABASE {filled.rpartition('/')[2]} FROM PUBLIC")
    for statement in grants("service", "firefly_memory"):
        execute(filled, statement)
    yield filled.replace("postgres@", "service@")
    execute(filled, "DROP OWNED BY service; DROP ROLE service")


@pytest.mark.usefixtures("small_limit")
def test_a_role_that_may_create_nothing_writes_and_searches(
    filled: str, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ENABLE, "--url", service]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "this role may not create the extension vector" in said
    assert "CREATE EXTENSION vector;" in said
    execute(filled, "CREATE SCHEMA extensions; CREATE EXTENSION vector SCHEMA extensions")
    assert main([*ENABLE, "--url", service]) == Exit.FAILED
    assert "must be owner of table memory_chunks_vectors" in capsys.readouterr().err
    assert main([*ENABLE, "--quiet", "--url", filled]) == Exit.DONE
    with PostgreSQLStore(service, migrate=False) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        knowledge.add("notes", "written by the service")
        with pytest.raises(NotSupportedError):  # it may not use the schema of the extension
            found(knowledge)
        execute(filled, "GRANT USAGE ON SCHEMA extensions TO service")
        assert "written by the service" in dict(found(knowledge, "written by the service"))
    assert execute(filled, f"SELECT count(*) - count({COLUMN}) FROM {VECTORS}") == [(0,)]


# Neighbours


def test_the_schema_goes_down_and_up_again(enabled: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["db", "downgrade", "0007_0005", "--yes", "--url", enabled]) == Exit.DONE
    assert main(["db", "upgrade", "--url", enabled]) == Exit.DONE
    assert main(["db", "check", "--url", enabled]) == Exit.DONE
    with knowledge_in(enabled):
        assert state_of(enabled, capsys)["state"] == "disabled"
        assert main([*ENABLE, "--url", enabled]) == Exit.DONE


@pytest.mark.usefixtures("small_limit")
def test_chunks_go_into_an_archive_and_another_store_and_back(enabled: str, tmp_path: Path) -> None:
    archive, target = tmp_path / "all.jsonl", f"sqlite:///{tmp_path}/memory.db"
    assert main(["export", str(archive), "--url", enabled]) == Exit.DONE
    assert main(["db", "upgrade", "--url", target]) == Exit.DONE
    assert main(["copy", "--from", enabled, "--to", target]) == Exit.DONE
    with PostgreSQLStore(enabled) as store:
        KnowledgeStore(store, embedder=Letters()).delete("notes")
    assert main(["import", str(archive), "--url", enabled]) == Exit.DONE
    with PostgreSQLStore(enabled) as store:
        knowledge = KnowledgeStore(store, embedder=Letters())
        knowledge.embed_missing()
        assert len(found(knowledge)) == 10


@pytest.mark.thorough
def test_alembic_finds_no_difference(enabled: str) -> None:
    alembic_command.done(enabled, "check")


@pytest.mark.thorough
def test_the_application_s_autogenerate_proposes_nothing(enabled: str, tmp_path: Path) -> None:
    project = copytree(PROJECT, tmp_path / "project")
    done(project, enabled, "upgrade", "head")
    done(project, enabled, "check")


@pytest.mark.thorough
@pytest.mark.usefixtures("small_limit")
def test_a_dump_brings_it_to_another_database(enabled: str, wheel: EmbeddedPostgreSQL) -> None:
    execute(enabled, "CREATE DATABASE restored")
    restored = f"{enabled.rpartition('/')[0]}/restored"
    dump = subprocess.run([str(wheel.bin / "pg_dump"), "-d", enabled], check=True, capture_output=True, text=True)
    subprocess.run(
        [str(wheel.bin / "psql"), "-v", "ON_ERROR_STOP=1", "-d", restored],
        check=True, capture_output=True, input=dump.stdout, text=True,
    )  # fmt: skip
    try:
        with PostgreSQLStore(restored) as store:
            knowledge = KnowledgeStore(store, embedder=Letters())
            knowledge.add("notes", "zzzz")
            assert found(knowledge, "zzzz")[0][0] == "zzzz"
        assert main(["db", "check", "--url", restored]) == Exit.DONE
    finally:
        execute(enabled, "DROP DATABASE restored WITH (FORCE)")

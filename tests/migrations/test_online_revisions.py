"""Revisions that build an index ``CONCURRENTLY``: readers and writers continue, and a broken index is rebuilt."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from firefly_memory import MemoryEntry, connect, schema
from firefly_memory.cli import main
from firefly_memory.databases.sql.schema.commands import script
from firefly_memory.databases.sql.schema.revisions import revision_named
from firefly_memory.facets import registered
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute
from tests.support.facet_package import environment, run
from tests.support.facets import facet_of_revisions, unregistered
from tests.support.revisions import migrations

LAST = schema.HEAD
NEXT = f"""
from alembic import op
from firefly_memory.databases.sql.schema.alembic_env import create_index_online, target_schema

revision = "9000"
down_revision = "{LAST}"
branch_labels = None
depends_on = None
online = True

def upgrade():
    create_index_online("idx_scope", "memory_entries", ["scope"])

def downgrade():
    op.drop_index("idx_scope", "memory_entries", schema=target_schema())
"""


@pytest.fixture
def next_release(tmp_path: Path) -> Iterator[None]:
    """A release with one revision more."""
    (tmp_path / "revisions").mkdir()
    (tmp_path / "revisions" / "9000_scope.py").write_text(NEXT)
    with registered([facet_of_revisions("next release", tmp_path / "revisions")]):
        yield


def indexes(url: str) -> list[bool]:
    """Whether each index of that name is valid."""
    if url.startswith("sqlite"):
        return [True for _ in execute(url, "SELECT 1 FROM sqlite_master WHERE name = 'idx_scope'")]
    return [valid for (valid,) in execute(url, _VALID)]


INSERT = (
    "INSERT INTO firefly_memory.memory_entries (entry_id, namespace, scope, content) VALUES ('a', 'b', 'working', '1')"
)
_VALID = "SELECT indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname = 'idx_scope'"


@pytest.mark.usefixtures("next_release")
def test_an_online_revision_runs_alone_after_the_others(url: str) -> None:
    with migrations(url, timeout=20) as database:
        assert database.upgrade() == list(schema.REVISIONS)
        assert database.status().revision == "9000"
        assert indexes(url) == [True]
        assert database.upgrade() == []
        assert database.downgrade(LAST) == ["9000"]
        assert indexes(url) == []


FACET = """
from pathlib import Path

from tests.support.facets import facet_of_revisions

FACET = facet_of_revisions("next release", Path(__file__).with_name("revisions"))
"""


def test_alembic_runs_an_online_revision_too(next_release: None, url: str, tmp_path: Path) -> None:
    (tmp_path / "next_facet.py").write_text(FACET)
    variables = environment(tmp_path / "package", FIREFLY_AGENTIC_MEMORY_FACETS="next_facet:FACET")
    for target, revision, found in (("head", "9000", [True]), (LAST, LAST, []), ("+1", "9000", [True])):
        step = "downgrade" if target == LAST else "upgrade"
        finished = run(["alembic", "-x", f"url={url}", step, target], variables, tmp_path)
        assert finished.returncode == 0, finished.stderr
        with migrations(url, timeout=20) as database:
            assert database.status().revision == revision
        assert indexes(url) == found


@pytest.mark.usefixtures("next_release")
def test_a_store_runs_an_online_revision_too(url: str) -> None:
    with connect(url) as store:
        store.save("n", MemoryEntry())
    assert indexes(url) == [True]


@pytest.mark.usefixtures("next_release")
def test_the_sql_script_has_an_online_revision_outside_the_transaction() -> None:
    text = script("postgresql", "firefly_memory", LAST, "head")
    order = [text.index(words) for words in ("COMMIT;", "CREATE INDEX CONCURRENTLY idx_scope", "BEGIN;\n\nUPDATE")]
    assert order == sorted(order)


@pytest.mark.usefixtures("next_release")
def test_writers_continue_and_only_one_migrator_builds_the_index(place: Place) -> None:
    with empty_postgresql(place.postgresql()) as url:
        with migrations(url, timeout=20) as database:
            database.upgrade(LAST)
            with unregistered():  # of the release before, which goes on
                store = connect(url, migrate=False)
                store.initialize_sync()
        written, stop = 0, threading.Event()

        def write() -> None:
            nonlocal written
            while not stop.is_set():
                store.save("n", MemoryEntry(content=written))
                written += 1

        def upgrade(_: int) -> list[str]:
            with migrations(url, timeout=60) as database:
                return database.upgrade()

        # A transaction that the build has to wait for, so that it takes a while.
        with store, psycopg.connect(url) as reader, ThreadPoolExecutor(9) as pool:
            reader.execute(INSERT)
            try:
                writing = pool.submit(write)
                migrators = [pool.submit(upgrade, number) for number in range(8)]
                while not execute(url, "SELECT 1 FROM pg_stat_progress_create_index"):
                    assert not any(each.done() for each in migrators)
                before = written
                while written < before + 20:
                    assert not writing.done()
                assert not any(each.done() for each in migrators)
            finally:
                stop.set()
                reader.commit()
            ran = [each.result(60) for each in migrators]
            writing.result(60)
        assert sorted(ran) == [[]] * 7 + [["9000"]]
        assert indexes(url) == [True]


@pytest.mark.usefixtures("next_release")
def test_an_invalid_index_of_a_broken_build_is_built_anew(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with empty_postgresql(place.postgresql()) as url:
        with migrations(url, timeout=20) as database:
            database.upgrade(LAST)
        with psycopg.connect(url) as reader, ThreadPoolExecutor(1) as pool:
            reader.execute(INSERT)
            upgrading = pool.submit(main, ["db", "upgrade", "--url", url])
            while not execute(url, "SELECT 1 FROM pg_stat_progress_create_index"):
                assert not upgrading.done()
            execute(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_progress_create_index")
            assert upgrading.result(60) != 0
        assert indexes(url) == [False]
        assert "connection" in capsys.readouterr().err
        assert main(["db", "current", "--url", url]) == 3
        assert main(["db", "upgrade", "--url", url]) == 0
        assert indexes(url) == [True]


def test_every_online_revision_is_marked() -> None:
    for revision in map(revision_named, schema.REVISIONS):
        assert ("create_index_online(" in revision.path.read_text()) == revision.online

"""Progress bars have a total, and a remaining time, if the database can estimate it without counting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymongo
import pytest

from firefly_memory import ConversationMemory, MemoryEntry, connect
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.settings import MemorySettings
from firefly_memory.target import Given, Target, target
from firefly_memory.transfer.estimates import estimated_items
from tests.support.backends import Place
from tests.support.databases import empty_postgresql, execute
from tests.support.legacy_databases import fill_sqlite, many
from tests.support.terminal import shown_on_a_terminal

ITEMS = 8
"""Five entries, a conversation and its two turns."""

BAR = re.compile(rb"(?P<step>\w+): +\d+%\|.*\| *(?P<done>[\d.]+[kM]?)/(?P<total>[\d.]+[kM]?) \[\d\d:\d\d<[\d:?]+, ")
"""The parts done and to do, the time it has taken and the time that is left."""


def filled(url: str, **options: Any) -> None:
    with connect(url, **options) as store:
        store.save_many("n", [MemoryEntry() for _ in range(5)])
        for _ in range(2):
            ConversationMemory(store=store).add_turn("chat", "p", "a")


def named(url: str, database: str | None = None) -> Target:
    found = target(MemorySettings(), Given(url, database=database))
    assert found is not None
    return found


def bars(shown: bytes) -> set[tuple[bytes, bytes]]:
    """Each step, and its total."""
    return {(found["step"], found["total"]) for found in BAR.finditer(shown)}


@pytest.fixture
def mongodb_name(place: Place) -> Iterator[str]:
    name = f"progress_{uuid4().hex[:12]}"
    yield name
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(place.mongodb()) as client:
        client.drop_database(name)


def test_a_database_estimates_its_size_without_counting(place: Place, mongodb_name: str, tmp_path: Path) -> None:
    sqlite = f"sqlite:///{tmp_path}/memory.db"
    filled(sqlite)
    assert estimated_items(named(sqlite)) == ITEMS
    filled(place.mongodb(), database=mongodb_name)
    assert estimated_items(named(place.mongodb(), database=mongodb_name)) == ITEMS
    with empty_postgresql(place.postgresql()) as postgresql:
        filled(postgresql)
        until_statistics_have_come(postgresql)
        execute(postgresql, "ANALYZE")
        assert estimated_items(named(postgresql)) == ITEMS


def until_statistics_have_come(postgresql: str) -> None:
    """Connections report what they wrote after they have ended; a report after ANALYZE would count it twice."""
    tables = "('memory_entries', 'memory_conversations', 'memory_turns')"
    written = f"SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables WHERE relname IN {tables}"
    while execute(postgresql, written)[0][0] < ITEMS:
        pass


def test_a_bar_without_an_estimate_has_no_total(tmp_path: Path) -> None:
    with connect(f"file:{tmp_path}/files") as store:
        store.save("n", MemoryEntry())
    for url in (f"file:{tmp_path}/files", "memory:", f"sqlite:///{tmp_path}/missing.db", "postgresql://127.0.0.1:1/x"):
        assert estimated_items(named(url)) is None
    assert not (tmp_path / "missing.db").exists()


def test_export_import_and_copy_show_their_progress(tmp_path: Path) -> None:
    filled(f"sqlite:///{tmp_path}/a.db")
    shown = shown_on_a_terminal("export", "--url", "sqlite:///a.db", "out", cwd=tmp_path)
    assert bars(shown) == {(b"exported", b"8")}
    shown = shown_on_a_terminal("import", "--url", "sqlite:///b.db", "out", cwd=tmp_path)
    size = (tmp_path / "out").stat().st_size
    assert bars(shown) == {(b"imported", f"{size / 1000:.2f}k".encode())}
    shown = shown_on_a_terminal("copy", "--from", "sqlite:///a.db", "--to", "sqlite:///b.db", cwd=tmp_path)
    assert {total for _, total in bars(shown)} == {b"8"}
    assert {b"copying", b"looking", b"comparing"} >= {step for step, _ in bars(shown)} >= {b"copying"}


def test_prune_shows_its_progress_and_the_total_it_has_counted(tmp_path: Path) -> None:
    filled(f"sqlite:///{tmp_path}/a.db")
    with connect(f"sqlite:///{tmp_path}/a.db") as store:
        ConversationMemory(store=store).add_turn("newer", "p", "a")
    arguments = ["prune", "--keep-last", "1", "--yes", "--url", "sqlite:///a.db"]
    shown = shown_on_a_terminal(*arguments, cwd=tmp_path)
    assert bars(shown) == {(b"pruning", b"3.00")}


def test_an_import_from_a_predecessor_shows_its_progress(tmp_path: Path) -> None:
    fill_sqlite(tmp_path / "old.db", many(200))
    arguments = ["--from", "sqlite:///old.db", "--url", "sqlite:///new.db"]
    shown = shown_on_a_terminal("db", "import-legacy", *arguments, cwd=tmp_path)
    assert bars(shown) == {(b"imported", b"200")}


def test_a_file_store_has_a_counter(tmp_path: Path) -> None:
    filled(f"file:{tmp_path}/files")
    shown = shown_on_a_terminal("export", "--url", "file:files", "out", cwd=tmp_path)
    assert b"exported: " in shown
    assert bars(shown) == set()


def test_without_a_terminal_there_is_no_bar(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    filled(url)
    assert main(["export", "--url", url, str(tmp_path / "out")]) == Exit.DONE
    assert capfd.readouterr().err.splitlines() == ["exported 5 entries, 1 conversations with 2 turns"]

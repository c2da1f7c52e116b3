"""Each backend's own histories are strictly serializable: with kills, and over connections that break."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    FileStore,
    InMemoryStore,
    SQLiteStore,
)
from firefly_memory.testing import HistoryReport, Mode, Weather, check_histories
from tests.support import history_stores as stores
from tests.support.backends import Place
from tests.support.servers import EmbeddedPostgreSQL
from tests.support.workers import start_server

pytestmark = pytest.mark.thorough

WEATHER = Weather(lost_reply=0.03, cut=0.02, stall=0.02)


SERVERS: dict[str, Any] = {
    "postgresql-psycopg": partial(stores.postgresql, "psycopg"),
    "postgresql-asyncpg": partial(stores.postgresql, "asyncpg"),
    "mongodb": stores.mongodb,
}
MODES = {"postgresql-psycopg": Mode.BLOCKING, "postgresql-asyncpg": Mode.SUSPENDING, "mongodb": Mode.SUSPENDING}


def check(*arguments: Any, **options: Any) -> HistoryReport:
    """In processes that have imported everything when they start, and do no more than a test needs."""
    start_server()
    return check_histories(*arguments, **{"start_method": "forkserver", "processes": 2, "steps": 30, **options})


def url_of(name: str, place: Place) -> str:
    return place.mongodb() if name == "mongodb" else place.postgresql()


def something_was_done(report: HistoryReport) -> bool:
    return report.done > 60


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("kind", [FileStore, SQLiteStore])
def test_a_history_on_files_is_right_also_if_processes_are_killed(
    kind: type[FileStore | SQLiteStore], mode: Mode, tmp_path: Path
) -> None:
    report = check(partial(kind, tmp_path / "data"), mode=mode, kills=1)
    assert something_was_done(report)
    assert report.kills == 1


@pytest.mark.parametrize("name", SERVERS)
def test_a_history_on_a_server_is_right_also_if_processes_are_killed(name: str, place: Place) -> None:
    report = check(SERVERS[name], url_of(name, place), mode=MODES[name], kills=1)
    assert something_was_done(report)
    assert report.kills == 1


@pytest.mark.parametrize("name", SERVERS)
def test_a_history_over_connections_that_break_is_right(name: str, place: Place) -> None:
    report = check(SERVERS[name], url_of(name, place), mode=MODES[name], through=WEATHER)
    assert something_was_done(report)
    assert report.lost_replies > 0


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", ["memory", "five methods"])
def test_clients_of_one_process_check_a_store_that_is_not_shared(name: str, mode: Mode, tmp_path: Path) -> None:
    open_store = InMemoryStore if name == "memory" else partial(stores.folder, tmp_path)
    report = check(open_store, mode=mode, processes=0, clients=4)
    assert report.done > 100
    assert report.unknown == 0


def test_processes_that_share_no_data_are_found_out() -> None:
    with pytest.raises(AssertionError) as raised:
        check(InMemoryStore, seed=4711)
    said = str(raised.value)
    assert said.startswith("seed=4711: ")
    assert "there is no such turn" in said
    directory = Path(said.rpartition("The history is in ")[2])
    assert len(list(directory.glob("process-*.jsonl"))) == 4
    shutil.rmtree(directory)


def test_a_process_that_cannot_open_its_store_says_why(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the store cannot be opened here") as raised:
        check(stores.OpensOnlyHere(tmp_path / "memory.db"), processes=1)
    shutil.rmtree(str(raised.value).rpartition("The history is in ")[2])


def test_a_store_that_refuses_everything_does_not_pass(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"each of \d+ operations append failed.*the disk is full") as raised:
        check(partial(stores.refusing, tmp_path), processes=0)
    shutil.rmtree(str(raised.value).rpartition("The history is in ")[2])


def test_a_call_that_never_returns_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match=r"(?s)do not end.*has no known outcome|has not opened its store"
    ) as raised:
        check(partial(stores.waiting_for_ever, tmp_path), timeout=3)
    shutil.rmtree(str(raised.value).rpartition("The history is in ")[2])


def test_kill_is_called_in_place_of_killing_a_process(tmp_path: Path) -> None:
    killed: list[int] = []
    report = check(partial(SQLiteStore, tmp_path / "memory.db"), kills=2, kill=lambda: killed.append(1))
    assert (len(killed), report.kills, report.unknown) == (2, 2, 0)


def test_a_history_is_right_also_if_the_server_is_killed_and_starts_again() -> None:
    server = EmbeddedPostgreSQL()

    def kill() -> None:
        server.kill()
        server.start()

    try:
        server.start()
        report = check(SERVERS["postgresql-psycopg"], server.url, kills=2, kill=kill, steps=40)
    finally:
        server.remove()
    assert something_was_done(report)
    assert report.kills == 2


@pytest.mark.parametrize(
    "options",
    [
        {"through": WEATHER},
        {"through": WEATHER, "url": "sqlite:///memory.db"},
        {"through": WEATHER, "url": "mongodb://one:1,two:2/"},
        {"through": WEATHER, "url": "postgresql://localhost/name", "processes": 0},
        {"kills": 4},
        {"kills": -1},
        {"clients": 0},
        {"steps": 0},
        {"processes": -1},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        check(InMemoryStore, **options)

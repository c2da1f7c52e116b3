"""Every rule of the contract, on every backend, in both modes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from firefly_memory import MongoDBStore
from firefly_memory.databases.mongodb.clients import MongoDatabase
from firefly_memory.testing import Check, Mode, checks
from tests.support.backends import BACKENDS, Backend, Place

_OF_STARTS = ("R9", "R12")
"""The stores make their own tables and indexes in the checks of these rules, and find them there in those of others."""


_COVERED_BY_OTHERS = {"sqlite-memory", "postgresql-psycopg", "mongodb-motor"} | {
    backend.name for backend in BACKENDS if "engine" in backend.name or "aiosqlite" in backend.name
}
"""Their lines run on other backends as well. Coverage doubles the time of a check, and counts a line once."""

_QUICK_IN_ONE_MODE = {
    "sqlite-memory",
    "sqlite-engine",
    "postgresql-engine",
    "postgresql-psycopg2-engine",
    "mongodb-motor",
}
"""The quick part runs each check once on them, and in both modes on a store of the same database that opens by URL."""

_LONG_TERM_IN_TURNS = {
    "sqlite-memory": 0,
    "sqlite-aiosqlite": 1,
    "sqlite-engine": 2,
    "postgresql-engine": 0,
    "postgresql-psycopg2-engine": 1,
    "postgresql-async-engine": 2,
    "mongodb-motor": 0,
}
"""The quick part runs one in three checks of long-term memory on them: the flows are those of the same database's store."""

_DRIVERS = ("postgresql-asyncpg", "postgresql-psycopg")
"""They take turns at the suspending checks of long-term memory in the quick part."""


@pytest.fixture(scope="module")
def engine_of_the_module() -> Iterator[Callable[[str], Engine]]:
    """Engines whose connections last: a new connection costs PostgreSQL several milliseconds."""
    with ExitStack() as later:

        @cache
        def engine(url: str) -> Engine:
            made = create_engine(url)
            later.callback(made.dispose)
            return made

        yield engine


@pytest.fixture(scope="module")
def looked_at(servers_of_the_session: dict[str, Callable[[], str]]) -> Callable[[str], MongoDatabase]:
    @cache
    def looked(collection: str) -> MongoDatabase:
        with MongoDBStore(servers_of_the_session["mongodb"](), collection=collection) as store:
            return store.database

    return looked


def _marks(backend: Backend, check: Check, number: int, mode: Mode) -> list[pytest.MarkDecorator]:
    """``number`` is the check's: the modes of the quick part take turns, and so do backends."""
    marks = [pytest.mark.no_cover] if backend.name in _COVERED_BY_OTHERS else []
    in_other_mode = backend.name in _QUICK_IN_ONE_MODE and mode is not list(Mode)[number % 2]
    if in_other_mode or (check.rule.startswith("L") and _is_second_look(backend.name, number, mode)):
        marks.append(pytest.mark.thorough)
    return marks


def _is_second_look(backend: str, number: int, mode: Mode) -> bool:
    if backend in _DRIVERS and mode is Mode.SUSPENDING:
        return backend != _DRIVERS[number % 2]
    if backend == "mongodb":  # the slowest: its modes take turns
        return mode is not list(Mode)[number % 2]
    return number % 3 != _LONG_TERM_IN_TURNS.get(backend, number % 3)


@pytest.mark.parametrize(
    ("backend", "check", "mode"),
    [
        pytest.param(backend, check, mode, marks=_marks(backend, check, number, mode))
        for backend in BACKENDS
        for number, check in enumerate(checks(backend.capabilities))
        for mode in backend.modes
    ],
    ids=str,
)
def test_conformance(
    backend: Backend,
    check: Check,
    mode: Mode,
    place: Place,
    new_sqlite_file: Path,
    engine_of_the_module: Callable[[str], Engine],
    looked_at: Callable[[str], MongoDatabase],
) -> None:
    if check.rule not in _OF_STARTS:
        place = replace(place, engine=engine_of_the_module, looked_at=looked_at)
    if backend.name.startswith("sqlite") and check.rule not in _OF_STARTS:
        (place.directory / "new").mkdir()
        for name in ("new/memory.db", "own.db"):
            shutil.copy(new_sqlite_file, place.directory / name)
    check.run(lambda: backend.open(place), mode)

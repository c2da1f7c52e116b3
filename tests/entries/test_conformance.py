"""Every rule of the contract, on every backend, in both modes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firefly_memory.testing import Check, Mode, checks
from tests.support.backends import BACKENDS, Backend, Place

_OF_STARTS = ("R9", "R12")
"""The stores make their own tables in the checks of these rules, and find them there in those of others."""


_COVERED_BY_OTHERS = {"sqlite-memory", "postgresql-psycopg", "mongodb-motor"} | {
    backend.name for backend in BACKENDS if "engine" in backend.name or "aiosqlite" in backend.name
}
"""Their lines run on other backends as well. Coverage doubles the time of a check, and counts a line once."""


@pytest.mark.parametrize(
    ("backend", "check", "mode"),
    [
        pytest.param(
            *(backend, check, mode), marks=[pytest.mark.no_cover] if backend.name in _COVERED_BY_OTHERS else []
        )
        for backend in BACKENDS
        for check in checks(backend.capabilities)
        for mode in backend.modes
    ],
    ids=str,
)
def test_conformance(backend: Backend, check: Check, mode: Mode, place: Place, new_sqlite_file: Path) -> None:
    if backend.name.startswith("sqlite") and check.rule not in _OF_STARTS:
        (place.directory / "new").mkdir()
        for name in ("new/memory.db", "own.db"):
            shutil.copy(new_sqlite_file, place.directory / name)
    check.run(lambda: backend.open(place), mode)

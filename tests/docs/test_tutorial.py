"""The tutorial runs step by step, as its reader types it, on a real PostgreSQL with two workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import tutorial
from tests.support.backends import Place

pytestmark = pytest.mark.thorough


def test_the_files_of_the_page_are_those_of_the_example() -> None:
    folder = tutorial.EXAMPLE
    kept = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.*") if path.suffix != ".pyc"}
    assert tutorial.files() == kept


def test_the_tutorial_runs_as_its_reader_types_it(place: Place, tmp_path: Path) -> None:
    tutorial.walk_through(place.postgresql(), tmp_path)

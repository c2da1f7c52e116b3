"""``firefly-memory db``, and stores that are named by options, for the tests of the command line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.backends import Place
from tests.support.db_command import Db
from tests.support.spare_places import lent_database, lent_schema
from tests.support.stores_by_options import Options


@pytest.fixture
def db(url: str, capsys: pytest.CaptureFixture[str]) -> Db:
    """On an empty database."""
    return Db(capsys, "--url", url)


@pytest.fixture
def anywhere(capsys: pytest.CaptureFixture[str]) -> Db:
    """On no database but what its arguments and the environment name."""
    return Db(capsys)


KINDS = ["file", "sqlite", "postgresql", "mongodb"]


@pytest.fixture(params=KINDS)
def options(request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path) -> Iterator[Options]:
    """The options that name an empty store of the test's own."""
    match request.param:
        case "file":
            yield ["--url", f"file:{place.directory}/files"]
        case "sqlite":
            yield ["--url", f"sqlite:///{shutil.copy(new_sqlite_file, place.directory / 'memory.db')}"]
        case "postgresql":
            with lent_schema(place.postgresql()) as own:
                yield ["--url", place.postgresql(), "--schema", own]
        case _:
            with lent_database(place.mongodb()) as own:
                yield ["--url", place.mongodb(), "--database", own]


@pytest.fixture(params=KINDS)
def options_of_nothing(request: pytest.FixtureRequest, place: Place) -> Options:
    """The options that name a store that is not there, and must not be made."""
    own = f"options_{uuid4().hex[:12]}"
    match request.param:
        case "file":
            return ["--url", f"file:{place.directory}/files"]
        case "sqlite":
            return ["--url", f"sqlite:///{place.directory}/memory.db"]
        case "postgresql":
            return ["--url", place.postgresql(), "--schema", own]
        case _:
            return ["--url", place.mongodb(), "--database", own]

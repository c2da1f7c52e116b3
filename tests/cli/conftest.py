"""``firefly-memory db``, and stores that are named by options, for the tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pymongo
import pytest

from tests.support.backends import Place
from tests.support.db_command import Db
from tests.support.stores_by_options import Options


@pytest.fixture
def db(url: str, capsys: pytest.CaptureFixture[str]) -> Db:
    """On an empty database."""
    return Db(capsys, "--url", url)


@pytest.fixture
def anywhere(capsys: pytest.CaptureFixture[str]) -> Db:
    """On no database but what its arguments and the environment name."""
    return Db(capsys)


@pytest.fixture(params=["file", "sqlite", "postgresql", "mongodb"])
def options(request: pytest.FixtureRequest, place: Place) -> Iterator[Options]:
    """The options that name a store of the test's own, which is not there yet."""
    own = f"options_{uuid4().hex[:12]}"
    match request.param:
        case "file":
            yield ["--url", f"file:{place.directory}/files"]
        case "sqlite":
            yield ["--url", f"sqlite:///{place.directory}/memory.db"]
        case "postgresql":
            yield ["--url", place.postgresql(), "--schema", own]
            with psycopg.connect(place.postgresql(), autocommit=True) as admin:
                admin.execute(f"DROP SCHEMA IF EXISTS {own} CASCADE".encode())
        case _:
            yield ["--url", place.mongodb(), "--database", own]
            with pymongo.MongoClient[dict[str, Any]](place.mongodb()) as client:
                client.drop_database(own)

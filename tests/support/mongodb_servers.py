"""Databases of MongoDB, on a replica set and on a standalone server: fixtures for the ``conftest`` of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.backends import Place
from tests.support.mongodb_tombstones import Somewhere
from tests.support.servers import EmbeddedMongoDB
from tests.support.spare_places import dropped_at_the_end


@pytest.fixture(scope="package")
def standalone() -> Iterator[EmbeddedMongoDB]:
    """A server without transactions."""
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    with dropped_at_the_end(server.url):
        yield server
    server.remove()


@pytest.fixture(params=["replica set", "standalone"])
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def somewhere(server: str, request: pytest.FixtureRequest, place: Place) -> Iterator[Somewhere]:
    """A database of the test's own."""
    url = place.mongodb() if server == "replica set" else request.getfixturevalue("standalone").url
    with ExitStack() as later:
        yield Somewhere(url, later, lent=True)


__all__ = ["server", "somewhere", "standalone"]

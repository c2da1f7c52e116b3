"""Chunks in databases of MongoDB, on a replica set and on a standalone server, in both modes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.knowledge_stores import make, new_store
from tests.support.mongodb_chunks import Chunks
from tests.support.mongodb_servers import server, somewhere, standalone
from tests.support.mongodb_tombstones import Somewhere


@pytest.fixture(params=["blocking", "suspending"])
async def chunks(request: pytest.FixtureRequest, somewhere: Somewhere) -> AsyncIterator[Chunks]:
    """The chunks of a store on it, in one mode."""
    async with somewhere.store() as store:
        yield Chunks(somewhere, store, request.param)


__all__ = ["make", "new_store", "server", "somewhere", "standalone"]

"""Services of long-term memory on each kind of store, in both modes: ``@IN_EACH`` and the fixture ``service``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.long_term_stores import in_turns, make, service
from tests.support.mongodb_long_term import (
    database_of_replica_set,
    database_of_standalone,
    replica_set,
    server,
    server_and_mode,
    somewhere,
    stored,
)
from tests.support.mongodb_servers import standalone


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    in_turns([item for item in items if item.path.is_relative_to(Path(__file__).parent)])


__all__ = [
    "database_of_replica_set",
    "database_of_standalone",
    "make",
    "pytest_collection_modifyitems",
    "replica_set",
    "server",
    "server_and_mode",
    "service",
    "somewhere",
    "standalone",
    "stored",
]

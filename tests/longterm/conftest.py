"""Services of long-term memory on each kind of store, in both modes: ``@IN_EACH`` and the fixture ``service``."""

from __future__ import annotations

from tests.support.long_term_stores import make, service
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

__all__ = [
    "database_of_replica_set",
    "database_of_standalone",
    "make",
    "replica_set",
    "server",
    "server_and_mode",
    "service",
    "somewhere",
    "standalone",
    "stored",
]

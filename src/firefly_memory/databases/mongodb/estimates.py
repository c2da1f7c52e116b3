"""About how many documents a store has: from the metadata of its collections, without counting."""

from __future__ import annotations

from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.mongodb.clients import DEFAULTS, OwnClients
from firefly_memory.databases.mongodb.collections import collections_of
from firefly_memory.databases.mongodb.errors import translated


def estimated_documents(url: str, options: dict[str, Any]) -> dict[str, int]:
    """By collection."""
    server = OwnClients(url, **{**DEFAULTS, **options})
    try:
        with translated("estimate", server.db_name):
            found = collections_of(server.blocking())
            return {each.name: int(each.estimated_document_count()) for each, _ in found}
    finally:
        run_without_loop(server.close_blocking())

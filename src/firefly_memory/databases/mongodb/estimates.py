"""About how many documents a store has: from the metadata of its collections, without counting."""

from __future__ import annotations

from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.mongodb.clients import DEFAULTS, OwnClients
from firefly_memory.databases.mongodb.collections import TOMBSTONES, collections_of
from firefly_memory.databases.mongodb.errors import translated


def estimated_documents(url: str, options: dict[str, Any]) -> dict[str, int]:
    """By collection."""
    server = OwnClients(url, **{**DEFAULTS, **options})
    try:
        with translated("estimate", server.db_name):
            found = [each for each, _ in collections_of(server.blocking())]
            tombstones = {each.name: each.count_documents(TOMBSTONES) for each in found}
            return {each.name: int(each.estimated_document_count()) - tombstones[each.name] for each in found}
    finally:
        run_without_loop(server.close_blocking())

"""Databases of MongoDB with tombstones, for tests."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar
from uuid import uuid4

import pymongo
from pymongo import monitoring

from firefly_memory import MongoDBStore
from firefly_memory.agent_history.log import HistoryEntry, HistoryRecord
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.mongodb.collections import NO_TOMBSTONES
from firefly_memory.protocols import StoreView
from firefly_memory.tombstones.log import (
    TOMBSTONES as TOMBSTONE_LOG,
)
from firefly_memory.tombstones.log import (
    Identity,
)
from tests.support.spare_places import lent_database
from tests.support.turns import NOW

T = TypeVar("T")
Database = pymongo.database.Database[dict[str, Any]]


class Somewhere:
    """A database of the test's own, and stores on it."""

    def __init__(self, url: str, later: ExitStack, *, lent: bool = False) -> None:
        """A ``lent`` database has its collections already, and keeps them and their indexes."""
        self.url = url
        self._later = later
        client = later.enter_context(pymongo.MongoClient[dict[str, Any]](url))
        if lent:
            self.name: str = later.enter_context(lent_database(url))
        else:
            self.name = f"tombstones_{uuid4().hex[:12]}"
            later.callback(client.drop_database, self.name)
        self.database: Database = client[self.name]

    def store(self, **options: Any) -> MongoDBStore:
        return MongoDBStore(self.url, database=self.name, **options)

    def listened(self, listener: monitoring.CommandListener) -> MongoDBStore:
        """A store on a client whose commands are listened to."""
        client = self._later.enter_context(pymongo.MongoClient[Any](self.url, event_listeners=[listener]))
        return MongoDBStore(client=client, database=self.name)

    def contents(self) -> dict[str, list[dict[str, Any]]]:
        """All documents but tombstones, by collection."""
        names = sorted(self.database.list_collection_names())
        return {name: list(self.database[name].find(NO_TOMBSTONES).sort("_id")) for name in names}

    def tombstones(self, collection: str) -> list[dict[str, Any]]:
        return list(self.database[collection].find({"refuses": "writes"}))


class View:
    """A view of a store, for both modes in one event loop."""

    def __init__(self, view: StoreView, mode: str) -> None:
        self.view = view
        self._mode = mode

    async def done(self, work: Coroutine[Any, Any, T]) -> T:
        return run_without_loop(work) if self._mode == "blocking" else await work

    async def refuse(self, *identities: Identity, owner: str = "Ann") -> None:
        await self.done(self.view.log(TOMBSTONE_LOG).add(identities, owner, NOW))


def a_record(conversation_id: str, scope: str | None) -> tuple[HistoryRecord, list[HistoryEntry]]:
    entry = HistoryEntry(f"entry of {conversation_id}", None, "request", json.dumps({"text": f"of {scope}"}))
    record = HistoryRecord(conversation_id, "r1", entry.entry_id, scope, None, None, [], "{}", None, NOW, 1)
    return record, [entry]

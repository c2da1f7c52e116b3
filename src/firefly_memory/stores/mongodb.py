"""``MongoDBStore``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.entries.store_operations import RecordView
from firefly_memory.entries.threaded_view import threaded
from firefly_memory.errors import ConfigurationError
from firefly_memory.likely_names import answers_guesses
from firefly_memory.protocols import StoreView
from firefly_memory.reprs import even_half_built
from firefly_memory.stores.base import EntryStore
from firefly_memory.validation import exactly_one, require_extra

if TYPE_CHECKING:
    from firefly_memory.databases.mongodb.clients import MongoDatabase


class MongoDBStore(EntryStore):
    """Entries in a MongoDB collection.

    Asynchronous methods use PyMongo's asynchronous client, one for each event loop, blocking ones its blocking client,
    each with up to ``pool_size`` connections. ``timeout`` bounds every operation, in seconds. Writes are acknowledged
    by a majority and journalled. ``migrate=False`` checks the indexes instead of creating them. ``client`` is a
    ``MongoClient``, ``AsyncMongoClient`` or Motor client of your own, in place of ``url``: it stays yours.

    Calls that touch several entries are all or nothing on a replica set or sharded cluster. On a standalone server
    ``save_many`` refuses more than one entry, and the rest is all or nothing entry by entry. Conversations are kept in
    ``memory_conversations`` of the same database, and need no transactions.
    """

    @answers_guesses
    def __init__(
        self,
        url: str | None = None,
        *,
        database: str = "firefly_memory",
        collection: str = "entries",
        pool_size: int = 10,
        timeout: float = 30.0,
        migrate: bool = True,
        client: Any = None,
    ) -> None:
        require_extra("MongoDBStore", "pymongo", "mongodb")
        from firefly_memory.databases.mongodb.access import MongoAccess
        from firefly_memory.databases.mongodb.clients import OwnClients, PassedClient
        from firefly_memory.databases.mongodb.collections import taken_names
        from firefly_memory.entries.mongodb.hooks import MongoBackend

        exactly_one("MongoDBStore", url=url, client=client)
        if collection in taken_names():
            raise ConfigurationError(f"collection: {collection!r} holds something else already; choose another name")
        self.database: MongoDatabase
        if url is not None:
            self.database = OwnClients(url, database, collection, pool_size=pool_size, timeout=timeout, migrate=migrate)
            self._shown = repr(self.database.db_name)
        else:
            self.database = PassedClient(client, database, collection, timeout=timeout, migrate=migrate)
            self._shown = f"client=<{type(client).__name__}>"
        to_reach = self.database
        to_block = MongoAccess(to_reach, to_reach.blocking, in_event_loop=False)
        to_suspend = MongoAccess(to_reach, to_reach.suspending, in_event_loop=True)
        blocking = RecordView(MongoBackend(to_block, to_reach.close_blocking))
        suspending: StoreView = RecordView(MongoBackend(to_suspend, to_reach.close_suspending))
        if isinstance(to_reach, PassedClient) and to_reach.blocks_only:
            suspending = threaded(blocking)
        super().__init__(blocking, suspending)

    @even_half_built
    def __repr__(self) -> str:
        where = f"database={self.database.database!r}, collection={self.database.collection!r}"
        return f"MongoDBStore({self._shown}, {where})"

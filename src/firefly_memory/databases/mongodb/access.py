"""How blocking callers, or those of event loops, reach a database: connections whose indexes are there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from firefly_memory.concurrency.group_commit import GroupedWrite, Grouping
from firefly_memory.databases.mongodb import indexes
from firefly_memory.databases.mongodb.clients import Connection, MongoDatabase
from firefly_memory.databases.mongodb.errors import despite_a_loss, translated
from firefly_memory.databases.mongodb.renames import rename_collections
from firefly_memory.databases.mongodb.transactions import run_in_transaction
from firefly_memory.databases.notifications import Notifications
from firefly_memory.errors import SchemaMismatchError
from firefly_memory.facets import all_facets

P = ParamSpec("P")
T = TypeVar("T")


class MongoAccess:
    """What the operations of every facet are made with."""

    def __init__(self, database: MongoDatabase, connect: Callable[[], Connection], *, in_event_loop: bool) -> None:
        """``connect`` gives the connection for this caller."""
        self.database = database
        self._in_event_loop = in_event_loop
        self._connect = connect

    @property
    def notifications(self) -> Notifications | None:
        """Of inserted documents; ``None`` for blocking callers."""
        return self.database.notifications if self._in_event_loop else None

    async def connected(self, operation: str, migrate: bool | None = None) -> Connection:
        database = self.database
        database.check_open(operation)
        connection = self._connect()
        if not database.indexes_are_there:
            with translated(operation, database.db_name):  # nothing has been written yet
                await self._prepare(connection, database.migrate if migrate is None else migrate)
        return connection

    def grouped(
        self, write: Callable[P, Coroutine[Any, Any, T]], grouping: Grouping, *, retryable: bool
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        """``write``, together with others in event loops; blocking callers have nobody to write with."""
        if not self._in_event_loop:
            return write
        return cast("Callable[P, Coroutine[Any, Any, T]]", GroupedWrite(write, grouping, retryable=retryable))

    async def in_transaction(
        self, connection: Connection, work: Callable[[Any], Awaitable[T]], *, once: bool = False
    ) -> T:
        """An :class:`~firefly_memory.databases.mongodb.transactions.InTransaction`."""
        return await run_in_transaction(connection, work, seconds=0 if once else self.database.timeout)

    async def _prepare(self, connection: Connection, migrate: bool) -> None:
        database = self.database
        hello = await despite_a_loss(lambda: connection.result_of(connection.client.admin.command("hello")))
        database.has_transactions = "setName" in hello or hello.get("msg") == "isdbgrid"
        await rename_collections(connection, migrate)
        await self._ensure_indexes(connection, migrate)
        in_transaction = self.in_transaction if database.has_transactions else None
        for facet in all_facets():
            bring_to_today = facet.stored("document_upgrades")
            if bring_to_today is not None:
                await bring_to_today(connection, migrate, in_transaction)
        database.indexes_are_there = True

    async def _ensure_indexes(self, connection: Connection, migrate: bool) -> None:
        missing = await indexes.missing(connection)
        if missing and not migrate:
            names = ", ".join(f"{collection.name}.{index.document['name']}" for collection, index in missing)
            raise SchemaMismatchError(
                "initialize", None, f"the indexes {names}", "initialize(migrate=True) as a user that may create them"
            )
        for each in {collection.name: collection for collection, _ in missing}.values():
            new = [index for collection, index in missing if collection is each]
            await despite_a_loss(partial(_made, connection, each, new))


async def _made(connection: Connection, collection: Any, indexes: list[Any]) -> None:
    await connection.result_of(collection.create_indexes(indexes))

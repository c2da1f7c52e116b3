"""A PostgreSQL server in both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlalchemy.util import greenlet_spawn

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.conversations.log import Appended, Draft
from firefly_memory.databases.sql.database import Database
from firefly_memory.databases.sql.errors import Place
from firefly_memory.databases.sql.executor import CallRunner, here
from firefly_memory.databases.sql.groups import Groups
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.databases.sql.pool import Pool
from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLStatements
from firefly_memory.databases.sql.postgresql.engines import (
    OF_A_MIGRATION,
    blocking_engine,
    connections_of,
    end_without_loop,
    suspending_engine,
)
from firefly_memory.databases.sql.postgresql.quiet import is_quiet
from firefly_memory.databases.sql.postgresql.url import PostgreSQLUrl
from firefly_memory.databases.sql.schema.migrate import checked_schema_name, has_schema, upgrade_schema
from firefly_memory.entries.record import Record
from firefly_memory.validation import at_least

P = ParamSpec("P")
T = TypeVar("T")


class PostgreSQLDatabase(Database):
    """One server. Blocking calls go through psycopg, asynchronous ones through asyncpg, each with a pool of its own."""

    def __init__(
        self,
        url: PostgreSQLUrl,
        *,
        pool_size: int,
        pool_min_size: int,
        timeout: float,
        schema_name: str,
        migrate: bool,
        prepared: bool,
    ) -> None:
        super().__init__(Place(str(url), checked_schema_name(schema_name)), timeout=timeout, migrate=migrate)
        self._url = url
        self._prepares = prepared
        self.pool_size = at_least(1, "pool_size", pool_size)
        self.warm_connections = min(at_least(0, "pool_min_size", pool_min_size), pool_size)
        self.blocking = CallRunner(self, here)
        self.suspending = _LoopRunner(self)

    def open_pool(self) -> Pool[Any]:
        return self._pool_on(blocking_engine)

    def close(self) -> None:
        self.close_blocking()
        self.suspending.close_elsewhere()

    def open_suspending_pool(self) -> Pool[Any]:
        return self._pool_on(suspending_engine)

    async def prepare_schema(self, pool: Pool[Any], migrate: bool | None) -> None:
        """:meth:`check_schema` for an event loop. Migrates outside of the loop: a blocking call in it may already be
        waiting for the end of the migration."""
        wanted = self._migrate if migrate is None else migrate
        if not await greenlet_spawn(partial(has_schema, pool.engine, self.place, migrate=wanted)):
            # One connection is enough: on a full server, many processes would wait for each other's second one.
            await greenlet_spawn(pool.engine.dispose)
            await in_worker_thread(self._migrate_in_a_loop_of_its_own)
        self.schema_is_current = True

    def _migrate_in_a_loop_of_its_own(self) -> None:
        async def migrate() -> None:
            engine = self._engine_to_migrate(suspending_engine)
            try:
                await greenlet_spawn(upgrade_schema, engine, self.place, self.timeout)
            finally:
                await greenlet_spawn(engine.dispose)

        asyncio.run(migrate())

    def check_schema(self, pool: Pool[Any], migrate: bool | None) -> None:
        if not has_schema(pool.engine, self.place, migrate=self.migrates(migrate)):
            pool.engine.dispose()  # one connection is enough, as below
            engine = self._engine_to_migrate(blocking_engine)
            try:
                upgrade_schema(engine, self.place, self.timeout)
            finally:
                engine.dispose()
        self.schema_is_current = True

    def _engine_to_migrate(self, make_engine: Callable[..., Engine]) -> Engine:
        return make_engine(self._url, pool_size=1, timeout=self.timeout, patience=OF_A_MIGRATION)

    def _pool_on(self, make_engine: Callable[..., Engine]) -> Pool[Any]:
        engine = make_engine(self._url, pool_size=self.pool_size, timeout=self.timeout, prepared=self._prepares)
        statements = PostgreSQLStatements(engine.dialect, self.place.schema_name)
        return Pool(engine, statements, self.place, is_quiet=is_quiet, timeout=self.timeout)


class _Lane:
    """What one event loop has of a database: a pool, and the writes that are put together."""

    def __init__(self, pool: Pool[Any], connections: int) -> None:
        self.pool = pool
        self._connections = connections_of(pool.engine)
        # Waiting here costs a fraction of waiting in the pool. Statements have a time-out, so it cannot be for ever.
        self._free = asyncio.Semaphore(connections)
        self.groups = Groups(self)
        self.preparing = asyncio.Lock()

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._free:
            return await greenlet_spawn(partial(self.pool.run, operation, *args, **kwargs))

    async def close(self) -> None:
        await greenlet_spawn(self.pool.dispose)

    def cut(self, _: asyncio.AbstractEventLoop) -> None:
        for connection in self._connections:
            end_without_loop(connection)


class _LoopRunner:
    """Runs operations on the pool of the event loop it is called from."""

    def __init__(self, database: PostgreSQLDatabase) -> None:
        self._database = database
        self._lanes = PerLoop(
            lambda: _Lane(database.open_suspending_pool(), database.pool_size), _Lane.close, _Lane.cut
        )

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        lane = await self._lane(operation.name)
        return await lane.run(operation, *args, **kwargs)

    async def save(self, record: Record, now: datetime) -> None:
        lane = await self._lane("save")
        await lane.groups.saves.write((record, now))

    async def append(self, draft: Draft) -> Appended | None:
        lane = await self._lane("append_turn")
        return await lane.groups.appends.write(draft)

    async def initialize(self, migrate: bool | None) -> None:
        lane = await self._lane("initialize", migrate)
        async with lane.preparing:
            await greenlet_spawn(lane.pool.warm_up, self._database.warm_connections)

    async def close(self) -> None:
        self._database.close_blocking()
        await self._lanes.close()

    def close_elsewhere(self) -> None:
        self._lanes.close_elsewhere()

    async def _lane(self, operation: str, migrate: bool | None = None) -> _Lane:
        database = self._database
        database.check_open(operation)
        lane = self._lanes.get()
        if not database.schema_is_current:
            async with lane.preparing:
                if not database.schema_is_current:
                    await database.prepare_schema(lane.pool, migrate)
        return lane

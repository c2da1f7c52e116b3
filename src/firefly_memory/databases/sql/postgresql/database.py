"""A PostgreSQL server, for blocking callers and for event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlalchemy.util import greenlet_spawn

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.databases.notifications import Notifications
from firefly_memory.databases.sql.database import Database
from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.executor import BlockingExecutor, Method, grouped
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.databases.sql.pool import Pool
from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLDialect
from firefly_memory.databases.sql.postgresql.engines import (
    OF_A_MIGRATION,
    blocking_engine,
    connections_of,
    end_without_loop,
    suspending_engine,
)
from firefly_memory.databases.sql.postgresql.notifications import notifications_of
from firefly_memory.databases.sql.postgresql.quiet import is_quiet
from firefly_memory.databases.sql.postgresql.url import PostgreSQLUrl
from firefly_memory.databases.sql.schema.migrate import checked_schema_name, has_schema, upgrade_schema
from firefly_memory.databases.sql.statements import statements_of
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
        super().__init__(DatabaseName(str(url), checked_schema_name(schema_name)), timeout=timeout, migrate=migrate)
        self._url = url
        self._prepares = prepared
        self.pool_size: int = at_least(1, "pool_size", pool_size)
        self.warm_connections: int = min(at_least(0, "pool_min_size", pool_min_size), pool_size)
        self.blocking: BlockingExecutor = BlockingExecutor(self)
        self.suspending: _LoopExecutor = _LoopExecutor(self)

    def holds_resources(self) -> bool:
        return super().holds_resources() or self.suspending.is_in_use()

    def open_pool(self) -> Pool:
        return self._pool_on(blocking_engine)

    def close(self) -> None:
        self.close_blocking()
        self.suspending.close_elsewhere()

    def open_suspending_pool(self) -> Pool:
        return self._pool_on(suspending_engine)

    def engine_to_listen(self) -> Engine:
        """For a connection on which nothing is prepared by a name: a pooler may give it to others."""
        return suspending_engine(self._url, pool_size=1, timeout=self.timeout)

    async def prepare_schema(self, pool: Pool, migrate: bool | None) -> None:
        """:meth:`check_schema` for an event loop. Migrates outside of the loop: a blocking call in it may already be
        waiting for the end of the migration."""
        wanted = self._migrate if migrate is None else migrate
        if not await greenlet_spawn(partial(has_schema, pool.engine, self.db_name, migrate=wanted)):
            # One connection is enough: on a full server, many processes would wait for each other's second one.
            await greenlet_spawn(pool.engine.dispose)
            await self.async_administer(upgrade_schema)
        self.schema_is_current = True

    def administer(self, work: Callable[[Engine, DatabaseName, float], T]) -> T:
        """Run what takes as long as a migration. It is given an engine, the name of the database, and the seconds to
        wait for others."""
        self.check_open("administer")
        engine = self._engine_to_migrate(blocking_engine)
        try:
            return work(engine, self.db_name, self.timeout)
        finally:
            engine.dispose()

    async def async_administer(self, work: Callable[[Engine, DatabaseName, float], T]) -> T:
        """Run what takes as long as a migration. It is given an engine, the name of the database, and the seconds to
        wait for others."""
        self.check_open("administer")
        return await in_worker_thread(partial(self._administer_in_a_loop_of_its_own, work))

    def _administer_in_a_loop_of_its_own(self, work: Callable[[Engine, DatabaseName, float], T]) -> T:
        async def run() -> T:
            engine = self._engine_to_migrate(suspending_engine)
            try:
                return await greenlet_spawn(work, engine, self.db_name, self.timeout)
            finally:
                await greenlet_spawn(engine.dispose)

        return asyncio.run(run())

    def check_schema(self, pool: Pool, migrate: bool | None) -> None:
        if not has_schema(pool.engine, self.db_name, migrate=self.migrates(migrate)):
            pool.engine.dispose()  # one connection is enough, as above
            self.administer(upgrade_schema)
        self.schema_is_current = True

    def _engine_to_migrate(self, make_engine: Callable[..., Engine]) -> Engine:
        return make_engine(self._url, pool_size=1, timeout=self.timeout, statement_timeout=OF_A_MIGRATION)

    def _pool_on(self, make_engine: Callable[..., Engine]) -> Pool:
        engine = make_engine(self._url, pool_size=self.pool_size, timeout=self.timeout, prepared=self._prepares)
        statements = statements_of(PostgreSQLDialect, engine.dialect, self.db_name.schema_name)
        return Pool(engine, statements, self.db_name, is_quiet=is_quiet, timeout=self.timeout)


class _LoopPool:
    """What one event loop has of a database."""

    def __init__(self, pool: Pool, connections: int) -> None:
        self.pool = pool
        self._connections = connections_of(pool.engine)
        # Waiting here costs a fraction of waiting in the pool. Statements have a time-out, so it cannot be for ever.
        self.free = asyncio.Semaphore(connections)
        self.preparing = asyncio.Lock()

    async def close(self) -> None:
        await greenlet_spawn(self.pool.dispose)

    def cut(self, _: asyncio.AbstractEventLoop) -> None:
        for connection in self._connections:
            end_without_loop(connection)


class _LoopExecutor:
    """Runs operations on the pool of the event loop it is called from."""

    def __init__(self, database: PostgreSQLDatabase) -> None:
        self._database = database
        self._pools = PerLoop(
            lambda: _LoopPool(database.open_suspending_pool(), database.pool_size), _LoopPool.close, _LoopPool.cut
        )
        self.notifications: Notifications = notifications_of(
            lambda: database.engine_to_listen().pool, self.run, database.db_name.schema_name
        )

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        mine = await self._mine(operation.name)
        async with mine.free:
            return await greenlet_spawn(partial(mine.pool.run, operation, *args, **kwargs))

    def method(self, operation: Operation[P, T]) -> Method[P, T]:
        return grouped(self, operation)

    async def initialize(self, migrate: bool | None) -> None:
        mine = await self._mine("initialize", migrate)
        async with mine.preparing:
            await greenlet_spawn(mine.pool.warm_up, self._database.warm_connections)

    async def close(self) -> None:
        self._database.close_blocking()
        await self.notifications.close()
        await self._pools.close()

    def is_in_use(self) -> bool:
        """Whether an event loop has connections."""
        return self._pools.is_in_use()

    def close_elsewhere(self) -> None:
        self.notifications.close_elsewhere()
        self._pools.close_elsewhere()

    async def _mine(self, operation: str, migrate: bool | None = None) -> _LoopPool:
        database = self._database
        database.check_open(operation)
        mine = self._pools.get()
        if not database.schema_is_current:
            async with mine.preparing:
                if not database.schema_is_current:
                    await database.prepare_schema(mine.pool, migrate)
        return mine

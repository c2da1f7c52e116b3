"""An engine of the caller's. Never closed by us."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Engine
from sqlalchemy.pool import StaticPool
from sqlalchemy.util import await_only, greenlet_spawn

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.concurrency.process_fork import ForkAware
from firefly_memory.databases.sql.bound_connection import check_dialect, is_autocommit
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.errors import DatabaseName, Doubt, is_an_answer, translated
from firefly_memory.databases.sql.executor import BlockingExecutor, CallExecutor, Executor, Through, refused
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.databases.sql.schema.migrate import checked_schema_name, ensure_schema
from firefly_memory.databases.sql.session import BoundSession
from firefly_memory.databases.sql.statements import statements_of
from firefly_memory.errors import ConfigurationError, NotSupportedError, StoreClosedError, StoreTimeoutError
from firefly_memory.url_text import masked_server_url
from firefly_memory.validation import seconds

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

P = ParamSpec("P")
T = TypeVar("T")


_ASYNC_ENGINE = (
    "blocking methods cannot use an AsyncEngine; await the asynchronous ones, or give the store an Engine or a URL"
)


class _Lock(Protocol):
    """Of one mode."""

    def acquire(self, *, timeout: float) -> bool: ...

    def release(self) -> None: ...


class _TaskLock:
    """For code in greenlets: a lock among the tasks of one event loop."""

    def __init__(self) -> None:
        self._locks = PerLoop(asyncio.Lock)

    def acquire(self, *, timeout: float) -> bool:
        return await_only(_acquired(self._locks.get(), timeout))

    def release(self) -> None:
        self._locks.get().release()


async def _acquired(lock: asyncio.Lock, timeout: float) -> bool:  # noqa: ASYNC109 - as of a lock of threads
    try:
        async with asyncio.timeout(timeout):
            return await lock.acquire()
    except TimeoutError:
        return False


class _LoneConnections(ForkAware):
    """A lock for each engine with one connection for everybody, whichever stores they use it through."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        self.watch_forks()

    def lock(self, engine: Engine, make: Callable[[], _Lock]) -> _Lock:
        return self._locks.setdefault(engine, make())

    def after_fork_in_child(self) -> None:
        self._locks: WeakKeyDictionary[Engine, _Lock] = WeakKeyDictionary()


_lone_connections = _LoneConnections()


class ExternalDatabase(ForkAware):
    """An engine of the caller's, with the caller's pool, events and isolation. An operation is one transaction."""

    def __init__(
        self,
        engine: Engine | AsyncEngine,
        kind: type[SQLDialect],
        schema_name: str | None,
        *,
        timeout: float,
        migrate: bool,
    ) -> None:
        if not isinstance(engine, Engine) and not hasattr(engine, "sync_engine"):
            raise ConfigurationError(f"engine must be a SQLAlchemy Engine or AsyncEngine, not {type(engine).__name__}")
        self.engine: Engine = engine if isinstance(engine, Engine) else engine.sync_engine
        check_dialect("engine", self.engine.dialect, kind)
        name = self.engine.url.render_as_string(hide_password=True)
        if schema_name is not None or ":///" not in name:  # not a path: SQLAlchemy hides no secret in parameters
            name = masked_server_url(name)
        schema = None if schema_name is None else checked_schema_name(schema_name)
        self.db_name: DatabaseName = DatabaseName(name, schema)
        self.timeout: float = seconds("timeout", timeout)
        self._migrate = migrate
        self._schema_is_current = False
        self._closed = False
        self._statements = statements_of(kind, self.engine.dialect, self.db_name.schema_name)
        self._make_lock: Callable[[], _Lock]
        self.blocking: Executor
        self.suspending: Executor
        if isinstance(engine, Engine):
            self._make_lock = threading.Lock
            self.blocking = BlockingExecutor(self)
            self._through: Through = in_worker_thread
            self.suspending = CallExecutor(self, in_worker_thread)
        else:
            self._make_lock = _TaskLock
            self.blocking = CallExecutor(self, refused(_ASYNC_ENGINE))
            self._through = greenlet_spawn
            self.suspending = suspending = CallExecutor(self, greenlet_spawn)
            suspending.notifications = kind.notifications(self.engine, suspending.run, self.db_name.schema_name)
        self._start_afresh()
        self.watch_forks()

    def _start_afresh(self) -> None:
        self._preparing = self._make_lock()

    def after_fork_in_child(self) -> None:
        self._start_afresh()  # somebody may have held it

    def ready(self, operation: str) -> ExternalDatabase:
        self._prepare(operation, None)
        return self

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        name, doubt = operation.name, Doubt(operation.retryable)
        with self._alone(name), translated(name, self.db_name, doubt), self._transactional.connect() as connection:
            session = BoundSession(self._statements, connection, self.timeout)
            to_commit = False
            try:
                with connection.begin():
                    result = operation(session, *args, **kwargs)
                    to_commit = session.may_have_written
            except Exception as exc:
                doubt.exists = to_commit and not is_an_answer(exc)
                raise
            return result

    def initialize(self, migrate: bool | None) -> None:
        self._prepare("initialize", migrate)

    def close(self) -> None:
        self._closed = True

    def administer(self, work: Callable[[Engine, DatabaseName, float], T]) -> T:
        """Run what takes as long as a migration. It is given an engine, the name of the database, and the seconds to
        wait for others."""
        self.check_open("administer")
        if self._make_lock is _TaskLock:
            raise NotSupportedError(_ASYNC_ENGINE)
        return work(self.engine, self.db_name, self.timeout)

    async def async_administer(self, work: Callable[[Engine, DatabaseName, float], T]) -> T:
        """Run what takes as long as a migration. It is given an engine, the name of the database, and the seconds to
        wait for others."""
        self.check_open("administer")
        return await self._through(partial(work, self.engine, self.db_name, self.timeout))

    def check_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosedError(operation)

    def _prepare(self, operation: str, migrate: bool | None) -> None:
        self.check_open(operation)
        if self._schema_is_current:
            return
        looking = self._holding(self._preparing, operation, "another call is still looking at the schema")
        with looking, self._alone(operation):
            if not self._schema_is_current:
                wanted = self._migrate if migrate is None else migrate
                ensure_schema(self.engine, self.db_name, migrate=wanted, timeout=self.timeout)
                with translated(operation, self.db_name):
                    self._transactional = _with_transactions(self.engine)
                self._schema_is_current = True

    def _alone(self, operation: str) -> AbstractContextManager[None]:
        """By itself on the connection, where all threads or tasks share one."""
        if not isinstance(self.engine.pool, StaticPool):
            return nullcontext()
        lock = _lone_connections.lock(self.engine, self._make_lock)
        return self._holding(lock, operation, "other calls kept the engine's only connection")

    @contextmanager
    def _holding(self, lock: _Lock, operation: str, otherwise: str) -> Iterator[None]:
        if not lock.acquire(timeout=self.timeout):
            raise StoreTimeoutError(operation, otherwise, retryable=True)
        try:
            yield
        finally:
            lock.release()


def _with_transactions(engine: Engine) -> Engine:
    """``engine``; if it commits each statement by itself, the same pool with transactions."""
    with engine.connect() as connection:
        if not is_autocommit(connection):
            return engine
    return engine.execution_options(isolation_level=engine.dialect.default_isolation_level)

"""An SQLite file in both modes."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar
from urllib.parse import unquote

from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from firefly_memory.concurrency.cancellation import in_worker_thread, stop_if_given_up
from firefly_memory.concurrency.per_event_loop import abandon
from firefly_memory.concurrency.process_fork import ForkBarrier
from firefly_memory.databases.files.file_system import make_directory, new_file
from firefly_memory.databases.files.file_system import translated as file_errors_translated
from firefly_memory.databases.sql.database import ENGINE_OPTIONS, Database
from firefly_memory.databases.sql.errors import DatabaseName, translated
from firefly_memory.databases.sql.executor import BlockingExecutor, GroupingExecutor
from firefly_memory.databases.sql.pool import Pool
from firefly_memory.databases.sql.sqlite.dialect import SQLiteDialect
from firefly_memory.databases.sql.statements import statements_of
from firefly_memory.errors import ConfigurationError, FireflyMemoryError, NotSupportedError, StoreTimeoutError
from firefly_memory.likely_names import sqlite_url_meant
from firefly_memory.validation import ONLY_MINE, FileModes, at_least

T = TypeVar("T")

IN_MEMORY = ":memory:"

_STEP = 0.02
"""Seconds that SQLite itself waits for a lock: with a connection in its hands, and a fork has to wait as well."""

_PAUSE = 0.002
"""Seconds between two such steps, for whoever else wants the connection, or to fork."""


class _NotInTurnError(FireflyMemoryError):
    """Another thread of this process is writing. Nobody sees this: the operation begins again when it may."""


class _Turn:
    """Whose turn it is to write: writers of this process wait in line here instead of colliding in SQLite.

    Around a write it lets in whoever is in turn, or may be at once. Others have to :meth:`wait` first, elsewhere.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise _NotInTurnError

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, deadline: float) -> bool:
        return self._lock.acquire(timeout=max(0.0, deadline - time.monotonic()))

    def end(self) -> None:
        self._lock.release()


class _Attempts:
    """Around each attempt at an operation: ``while True: with attempts: return …``.

    One that meets somebody begins again from its start, before the time-out. Whoever has to wait does so outside of the
    barrier and without a connection.
    """

    def __init__(
        self, operation: str, turn: _Turn, barrier: ForkBarrier, timeout: float, db_name: DatabaseName
    ) -> None:
        self._operation = operation
        self._turn = turn
        self._barrier = barrier
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._db_name = db_name
        self._in_turn = False

    def __enter__(self) -> None:
        try:
            stop_if_given_up()
            has_room = self._barrier.enter(self._deadline)
        except BaseException:
            self._end_turn()
            raise
        if not has_room:
            self._end_turn()
            with translated(self._operation, self._db_name):
                raise PoolTimeoutError

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> bool:
        self._barrier.leave()
        begins_again = False
        try:
            begins_again = error is not None and self._waited_for(error)
        finally:
            if not begins_again:
                self._end_turn()
        return begins_again

    def _waited_for(self, error: BaseException) -> bool:
        """Whether somebody was in the way, and no longer is."""
        if isinstance(error, _NotInTurnError):
            self._in_turn = self._turn.wait(self._deadline)
            if self._in_turn:
                return True
            reason = f"other writers of this process kept the database for {self._timeout:g} seconds"
            raise StoreTimeoutError(self._operation, reason, retryable=True) from None
        if isinstance(error, StoreTimeoutError) and _is_busy(error) and time.monotonic() < self._deadline:
            time.sleep(_PAUSE)
            return True
        return False

    def _end_turn(self) -> None:
        if self._in_turn:
            self._in_turn = False
            self._turn.end()


class SQLiteDatabase(Database):
    """One file. Its asynchronous mode is worker threads on the same pool, several times faster than a driver that
    crosses to a thread and back for every step of a statement."""

    def __init__(
        self, path: str, *, timeout: float, synchronous: str, pool_size: int, migrate: bool, modes: FileModes
    ) -> None:
        # Connections are opened when they are needed, wherever the process has gone to by then.
        self.path: str = path if path == IN_MEMORY else str(Path(path).absolute())
        super().__init__(DatabaseName(f"SQLite database {self.path}"), timeout=timeout, migrate=migrate)
        self._synchronous = synchronous
        self._modes = modes
        self._threads_at_most = min(4, at_least(1, "pool_size", pool_size))
        self._pool_size = 1 if path == IN_MEMORY else pool_size
        self._orphaned = False
        self._start_afresh()
        self.blocking: BlockingExecutor = BlockingExecutor(self)
        self.suspending: GroupingExecutor = GroupingExecutor(self, self._in_thread)

    def _start_afresh(self) -> None:
        self._turn = _Turn()
        self._barrier = ForkBarrier(room=self._pool_size)
        self._threads: ThreadPoolExecutor | None = None
        self._threads_lock = threading.Lock()

    def drop_resources(self) -> None:
        super().drop_resources()
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    def open_pool(self) -> Pool:
        step = min(_STEP, self.timeout)
        engine = sqlite_engine(
            self.path,
            pool_size=self._pool_size,
            timeout=step,
            synchronous=self._synchronous,
            file_mode=self._modes.file,
        )
        statements = statements_of(SQLiteDialect, engine.dialect, None)
        return Pool(engine, statements, self.db_name, gate=self._turn, attempts=self._attempts)

    def _attempts(self, operation: str) -> _Attempts:
        return _Attempts(operation, self._turn, self._barrier, self.timeout, self.db_name)

    def _prepared(self, operation: str, migrate: bool | None) -> Pool:
        attempts = self._attempts(operation)
        while True:
            with attempts:
                self.check_open(operation)
                self._make_directory(operation, migrate)
                return super()._prepared(operation, migrate)

    def _make_directory(self, operation: str, migrate: bool | None) -> None:
        if self.path != IN_MEMORY:
            file = Path(self.path)
            with file_errors_translated(operation, file.parent):
                if self.migrates(migrate):
                    make_directory(file.parent, self._modes.directory)
                elif not file.exists():
                    raise DatabaseName(self.path).is_missing(operation)

    def before_fork(self) -> None:
        # SQLite keeps what it knows of a file's locks in the process: a child that inherits an open file would take
        # its parent's locks for its own. So the file is closed while the process forks, and opened again afterwards.
        self._barrier.shut()
        if self._pool is not None and self.path != IN_MEMORY:
            self._pool.engine.dispose()

    def after_fork_in_parent(self) -> None:
        self._barrier.open()

    def after_fork_in_child(self) -> None:
        super().after_fork_in_child()
        abandon(self._threads)
        self._start_afresh()
        self._orphaned = self.path == IN_MEMORY

    def check_open(self, operation: str) -> None:
        super().check_open(operation)
        if self._orphaned:
            raise NotSupportedError(
                f"{operation}(): an in-memory SQLite database stays with the process that opened it; "
                "use a file, or open a store after fork()"
            )

    async def _in_thread(self, call: Callable[[], T]) -> T:
        if self._closed:
            return call()  # which says so, or has nothing left to do
        with self._threads_lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._threads_at_most, "firefly-memory-sqlite")
            threads = self._threads
        return await in_worker_thread(call, threads)

    def close(self) -> None:
        super().close()
        with self._threads_lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)


def sqlite_engine(
    path: str, *, pool_size: int, timeout: float, synchronous: str, file_mode: int = ONLY_MINE.file
) -> Engine:
    """SQLite for threads: WAL, so that readers and the writer go on together; waiting instead of failing. A new file
    has ``file_mode``, and those that SQLite puts beside it have the mode of the file."""

    def connect() -> sqlite3.Connection:
        if path != IN_MEMORY:
            _make_file(Path(path), file_mode)
        connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
        try:
            if path != IN_MEMORY:
                _use_wal(connection, timeout)
            connection.execute(f"PRAGMA synchronous={synchronous}")
            connection.execute("PRAGMA secure_delete=ON")  # no deleted row can be read in the file
        except BaseException:
            connection.close()
            raise
        return connection

    return create_engine(
        "sqlite://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=pool_size,
        pool_timeout=timeout,
        **ENGINE_OPTIONS,
    )


def _make_file(path: Path, mode: int) -> None:
    """An empty file, which is a database to SQLite, where there is none. Its own would be everybody's to read."""
    if not path.exists():
        with suppress(OSError):  # SQLite says what is wrong
            os.close(new_file(Path(os.path.realpath(path)), mode))


def _use_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Switching to WAL needs the file for itself and does not wait for it, so several starters take turns here."""
    deadline = time.monotonic() + timeout
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.005)


def _is_busy(error: StoreTimeoutError) -> bool:
    """Whether a lock was in the way, of another process or another store on the file."""
    return getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def sqlite_path(url: str) -> str:
    """The path in an URL such as ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``sqlite://`` (in memory)."""
    found = re.fullmatch(r"(?i:sqlite(?:\+aiosqlite|\+pysqlite)?)://(?:/(?P<path>[^?]*))?(?P<query>\?.*)?", url)
    # Not the URL itself: it may hold a password.
    if found is None:
        exact = sqlite_url_meant(url)
        meant = "" if exact is None else f"{exact} for this file, or "
        raise ConfigurationError(
            f"this is not an SQLite URL that this library reads; use {meant}sqlite:///relative.db, "
            "sqlite:////absolute.db or sqlite:///:memory:"
        )
    if found["query"]:
        raise ConfigurationError("an SQLite URL has no parameters here; pass them as options of the store")
    return unquote(found["path"] or "") or ":memory:"

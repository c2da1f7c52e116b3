"""Clients of both modes: our own, made where they are needed, or one that the caller passed in."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import UTC
from functools import partial
from typing import Any, TypeVar

from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient, MongoClient, ReadPreference, WriteConcern
from pymongo.errors import InvalidName
from pymongo.read_concern import ReadConcern

from firefly_memory.concurrency.cancellation import to_its_end
from firefly_memory.concurrency.per_event_loop import PerLoop, abandon
from firefly_memory.concurrency.process_fork import ForkAware
from firefly_memory.concurrency.unclosed import WarnsIfUnclosed
from firefly_memory.databases.mongodb.elections import NewPrimaries
from firefly_memory.databases.mongodb.notifications import ChangeStreamReceiver
from firefly_memory.databases.mongodb.pymongo_cleanup import cut_client
from firefly_memory.databases.mongodb.url_options import unused_client
from firefly_memory.databases.notifications import Notifications
from firefly_memory.errors import ConfigurationError, NotSupportedError, StoreClosedError
from firefly_memory.url_text import masked_server_url
from firefly_memory.validation import at_least, seconds

T = TypeVar("T")

VERSION = "memory_version"
"""The collection that notes, for each collection of entries, what was done to its documents."""

DEFAULTS: dict[str, Any] = {
    "database": "firefly_memory",
    "collection": "entries",
    "pool_size": 10,
    "timeout": 30.0,
    "migrate": True,
}
"""The options of a store that is opened by URL alone."""

DURABLE = WriteConcern("majority", j=True)

# Dates come back in UTC, writes are acknowledged when they are durable, reads see what was written: whichever client
# is used, and whatever its own options are.
_COLLECTION_OPTIONS: dict[str, Any] = {
    "codec_options": CodecOptions(tz_aware=True, tzinfo=UTC),
    "write_concern": DURABLE,
    "read_preference": ReadPreference.PRIMARY,
}

# A write may build on what was read, so that must not be rolled back by an election.
_MAJORITY_OPTIONS: dict[str, Any] = {**_COLLECTION_OPTIONS, "read_concern": ReadConcern("majority")}

IN_ONE_BATCH = 100_000
"""Documents, where all are wanted; the server sends no more than 16 MB at once."""

ResultOf = Callable[[Any], Awaitable[Any]]


async def passed_on(result: Any) -> Any:
    """What a blocking client returned: it is there already."""
    return result


async def awaited(result: Awaitable[Any]) -> Any:
    """What an asynchronous client returned."""
    return await result


def awaited_in_turn(connections: int) -> ResultOf:
    """The same, for so many calls at a time: waiting here costs a fraction of waiting in PyMongo's pool."""
    free = asyncio.Semaphore(connections)

    async def result_of(result: Awaitable[Any]) -> Any:
        async with free:
            return await result

    return result_of


class Connection:
    """A client, the collections, and how to get at what a call returns."""

    __slots__ = ("_database", "_made", "client", "entries", "kept", "result_of")

    def __init__(
        self, client: Any, database: str, entries: str, result_of: ResultOf, kept: dict[str, str] | None = None
    ) -> None:
        self.client: Any = client
        self.result_of: ResultOf = result_of
        self.kept: dict[str, str] = {} if kept is None else kept
        """What was read of this database and never changes. All connections share it."""
        self._database = client.get_database(database)
        self._made: dict[str, Any] = {}
        self.entries: Any = self._database.get_collection(entries, **_COLLECTION_OPTIONS)
        """The collection that the store was opened with."""

    def __getitem__(self, name: str) -> Any:
        """A collection that a facet has registered."""
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._database.get_collection(name, **_MAJORITY_OPTIONS)
        return made

    async def all_of(self, cursor: Any) -> list[dict[str, Any]]:
        """The documents of a cursor, which PyMongo's asynchronous client promises where the others have one."""
        if inspect.isawaitable(cursor):
            cursor = await self.result_of(cursor)
        found: list[dict[str, Any]] = await self.result_of(cursor.to_list(None))
        return found

    async def insert(self, name: str, documents: Sequence[dict[str, Any]], session: Any = None) -> None:
        """Insert documents into a collection that a facet has registered."""
        if len(documents) == 1:  # for which PyMongo has a shorter way
            await self.result_of(self[name].insert_one(documents[0], session=session))
        elif documents:
            await self.result_of(self[name].insert_many(documents, session=session))

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` returns: work that goes on in the server, and would leave something behind if it were cut."""
        return await (work if self.result_of is passed_on else to_its_end(work))

    async def pause(self, seconds: float) -> None:
        if self.result_of is passed_on:
            time.sleep(seconds)  # noqa: ASYNC251 - nothing else runs in this thread
        else:
            await asyncio.sleep(seconds)


class MongoDatabase(ABC):
    """Where the entries are, and what is known of the place."""

    def __init__(self, db_name: str, database: str, collection: str, *, timeout: float, migrate: bool) -> None:
        self.db_name = db_name
        self.database = database
        self.collection = collection
        self.timeout: float = seconds("timeout", timeout)
        self.migrate = migrate
        self.indexes_are_there = False
        self.has_transactions: bool | None = None
        """``None`` until a server was asked: replica sets and sharded clusters have them, a lone ``mongod`` has not."""
        self.notifications: Notifications = Notifications(partial(ChangeStreamReceiver, self.suspending))
        """Of the documents that anybody inserts, for event loops."""
        self._kept: dict[str, str] = {}
        self._closed = False

    @abstractmethod
    def blocking(self) -> Connection: ...

    @abstractmethod
    def suspending(self) -> Connection: ...

    async def close_blocking(self) -> None:
        self._closed = True
        self.notifications.close_elsewhere()

    async def close_suspending(self) -> None:
        self._closed = True
        await self.notifications.close()

    def check_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosedError(operation)

    def connection(self, client: Any, result_of: ResultOf) -> Connection:
        try:
            return Connection(client, self.database, self.collection, result_of, self._kept)
        except InvalidName as exc:
            raise ConfigurationError(f"database or collection: {exc}") from exc


class OwnClients(MongoDatabase, ForkAware, WarnsIfUnclosed):
    """Clients made from a URL: a blocking one, and an asynchronous one for each event loop."""

    def __init__(
        self, url: str, database: str, collection: str, *, pool_size: int, timeout: float, migrate: bool
    ) -> None:
        milliseconds = int(seconds("timeout", timeout) * 1000)
        self._arguments: dict[str, Any] = {
            "host": _in_small_letters(url),
            "maxPoolSize": at_least(1, "pool_size", pool_size),
            "timeoutMS": milliseconds,
            "serverSelectionTimeoutMS": milliseconds,
            "connectTimeoutMS": milliseconds,
            "appname": "firefly-memory",
        }
        super().__init__(_masked(url), database, collection, timeout=timeout, migrate=migrate)
        unused = unused_client(self._arguments)
        self.connection(unused, passed_on)
        unused.close()
        self._start_afresh()
        self._per_loop = PerLoop(self._open_suspending, _close_client, _cut_client)
        self.watch_forks()

    def holds_resources(self) -> bool:
        return self._blocking is not None or self._per_loop.is_in_use()

    def described(self) -> str:
        return self.db_name

    def _start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._blocking: Connection | None = None

    def after_fork_in_child(self) -> None:
        abandon(self._blocking)
        self._start_afresh()

    def blocking(self) -> Connection:
        connection = self._blocking
        if connection is None:
            with self._lock:
                self.check_open("use")
                if self._blocking is None:
                    self._blocking = self.connection(_watching(MongoClient, self._arguments), passed_on)
                connection = self._blocking
        return connection

    def suspending(self) -> Connection:
        return self._per_loop.get()

    def _open_suspending(self) -> Connection:
        pool_size = self._arguments["maxPoolSize"]
        # A change stream keeps one more connection busy, which is opened when it is needed.
        arguments = {**self._arguments, "maxPoolSize": pool_size + 1}
        return self.connection(_watching(AsyncMongoClient, arguments), awaited_in_turn(pool_size))

    async def close_blocking(self) -> None:
        self._close()
        await super().close_blocking()
        self._per_loop.close_elsewhere()

    async def close_suspending(self) -> None:
        self._close()
        await super().close_suspending()
        await self._per_loop.close()

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            connection, self._blocking = self._blocking, None
        if connection is not None:
            connection.client.close()


class PassedClient(MongoDatabase):
    """A client of the caller's, never closed by us: PyMongo's of either mode, or Motor's."""

    def __init__(self, client: Any, database: str, collection: str, *, timeout: float, migrate: bool) -> None:
        super().__init__("the passed client's server", database, collection, timeout=timeout, migrate=migrate)
        self.blocks_only: bool = isinstance(client, MongoClient)
        self._suspending: Connection | None = None
        self._blocking: Connection | None = None
        if isinstance(client, MongoClient):
            self._blocking = self.connection(client, passed_on)
        elif isinstance(client, AsyncMongoClient):
            self._suspending = self.connection(client, awaited)
        elif type(client).__module__.startswith("motor."):
            self._suspending = self.connection(client, awaited)
            self._blocking = self.connection(client.delegate, passed_on)  # the PyMongo client Motor works with
        else:
            raise ConfigurationError(
                f"client must be PyMongo's MongoClient or AsyncMongoClient, or Motor's AsyncIOMotorClient, "
                f"not {type(client).__name__}"
            )

    def blocking(self) -> Connection:
        if self._blocking is None:
            raise NotSupportedError(
                "blocking methods cannot use an AsyncMongoClient; await the asynchronous ones, or give the store a "
                "URL instead"
            )
        return self._blocking

    def suspending(self) -> Connection:
        if self._suspending is None:
            raise NotSupportedError("a MongoClient is used from threads, not from an event loop")
        return self._suspending


def _watching(make: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """A client that notices elections."""
    elections = NewPrimaries()
    client = make(**arguments, event_listeners=[elections])
    elections.watch(client)
    return client


async def _close_client(connection: Connection) -> None:
    await connection.client.close()


def _cut_client(connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
    cut_client(connection.client, loop)


def _in_small_letters(url: str) -> str:
    """``url`` with its scheme as PyMongo wants it."""
    scheme, separator, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    return f"{scheme.lower()}{separator}{rest}"


def _masked(url: str) -> str:
    if not isinstance(url, str) or not url.lower().startswith(("mongodb://", "mongodb+srv://")):
        raise ConfigurationError("a MongoDB URL starts with mongodb:// or mongodb+srv://")
    return masked_server_url(_in_small_letters(url)).partition("?")[0]

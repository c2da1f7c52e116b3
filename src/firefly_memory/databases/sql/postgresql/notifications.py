"""LISTEN and NOTIFY, for event loops: one connection beside the pool hears what all wait for.

A pooler that shares connections by transaction takes LISTEN without an error, and no notification ever arrives. So
each connection first hears a notification that this store sends to itself.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Any

from sqlalchemy import Pool, Text, bindparam, func, select
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.util import greenlet_spawn

from firefly_memory.databases.notifications import Inbox, NeverArriveError, Notifications
from firefly_memory.databases.sql.operation import REPEAT, operation
from firefly_memory.databases.sql.postgresql.identifiers import quoted
from firefly_memory.databases.sql.session import Session
from firefly_memory.databases.sql.statements import FacetStatements

Heard = Callable[[str], object]
"""Called with the payload of a notification."""

_TESTS = 2
_ARRIVES_WITHIN = 1.0
"""Seconds."""

_LOOKED_AFTER = 30.0
"""Seconds after which a silent connection is asked whether it is still there, and that an answer may take."""

_SHARED = (
    "a notification that the store sent to itself did not arrive; a pooler that shares connections by transaction, "
    "such as PgBouncer, passes none on"
)


class _NotifyStatements(FacetStatements):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        channel, payload = bindparam("channel", type_=Text), bindparam("payload", type_=Text)
        self.notify = self.compiled(select(func.pg_catalog.pg_notify(channel, payload)))


@operation(on_lost_reply=REPEAT)
def notify(session: Session, channel: str, payload: str) -> None:
    """Send a notification by itself."""
    session.fetch(session.statements(_NotifyStatements).notify, {"channel": channel, "payload": payload})


def notifications_of(
    open_pool: Callable[[], Pool], run: Callable[..., Awaitable[Any]], schema_name: str | None
) -> Notifications:
    """Of a server to which the pools that ``open_pool`` makes open connections, and on which ``run`` runs operations
    through others."""
    return Notifications(lambda channel: _Receiver(open_pool, run, channel), schema_name or "")


class _Receiver:
    cancel_again_after: float | None = None

    def __init__(self, open_pool: Callable[[], Pool], run: Callable[..., Awaitable[Any]], channel: str) -> None:
        self._open_pool = open_pool
        self._run = run
        self._channel = channel
        self._line: _Line | None = None

    async def receive(self, inbox: Inbox) -> None:
        connection = await greenlet_spawn(self._open_pool().connect)
        try:
            self._line = _line_on(connection.driver_connection)
            await self._try_out(self._line)
            await self._line.listen(self._channel, inbox.deliver)
            inbox.begin()
            await self._line.until_lost()
        finally:
            if self._line is not None:
                self._line.leave()
                self._line = None
            await greenlet_spawn(_end, connection)

    async def _try_out(self, line: _Line) -> None:
        """``NeverArriveError`` if notifications do not arrive. The test has a channel of its own: LISTEN stays with the
        server's connection, which a pooler gives to others."""
        channel, arrived = f"{self._channel}_{token_hex(8)}", asyncio.Event()
        await line.listen(channel, lambda _: arrived.set())
        for _ in range(_TESTS):
            await self._run(notify, channel, "")
            try:
                async with asyncio.timeout(_ARRIVES_WITHIN):
                    await arrived.wait()
            except TimeoutError:
                continue
            break
        await line.unlisten(channel)
        if not arrived.is_set():
            raise NeverArriveError(_SHARED)

    def cut(self, _: asyncio.AbstractEventLoop) -> None:
        if self._line is not None:
            self._line.cut()


def _end(connection: PoolProxiedConnection) -> None:
    connection.invalidate()  # or its pool would keep it
    connection.close()


class _Line(ABC):
    """A driver's connection that hears notifications."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._lost = asyncio.Event()

    @abstractmethod
    async def listen(self, channel: str, heard: Heard) -> None: ...

    @abstractmethod
    async def unlisten(self, channel: str) -> None: ...

    @abstractmethod
    async def ask(self) -> None:
        """Raise if the server does not answer."""

    async def until_lost(self) -> None:
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(_LOOKED_AFTER):
                    await self._lost.wait()
            except TimeoutError:
                async with asyncio.timeout(_LOOKED_AFTER):
                    await self.ask()

    @abstractmethod
    def leave(self) -> None:
        """Before the connection is closed."""

    @abstractmethod
    def cut(self) -> None:
        """Close the connection, whose event loop does not run any more."""


class _AsyncpgLine(_Line):
    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        connection.add_termination_listener(lambda _: self._lost.set())
        self._callbacks: dict[str, Callable[..., None]] = {}

    async def listen(self, channel: str, heard: Heard) -> None:
        def called(_: object, __: int, ___: str, payload: str) -> None:
            heard(payload)

        self._callbacks[channel] = called
        await self._connection.add_listener(channel, called)

    async def unlisten(self, channel: str) -> None:
        await self._connection.remove_listener(channel, self._callbacks.pop(channel))

    async def ask(self) -> None:
        await self._connection.execute("SELECT 1")

    def leave(self) -> None:
        """Nothing: asyncpg forgets its listeners when it closes."""

    def cut(self) -> None:
        self._connection.terminate()


class _PsycopgLine(_Line):
    """psycopg reads only while somebody awaits it, so the socket is watched, and read by libpq itself."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._heard: dict[str, Heard] = {}
        self._watched: int | None = None
        connection.add_notify_handler(lambda each: self._deliver(each.channel, each.payload))

    async def listen(self, channel: str, heard: Heard) -> None:
        self._heard[channel] = heard
        await self._execute(f"LISTEN {quoted(channel)}")

    async def unlisten(self, channel: str) -> None:
        await self._execute(f"UNLISTEN {quoted(channel)}")
        del self._heard[channel]

    async def ask(self) -> None:
        await self._execute("SELECT 1")

    def leave(self) -> None:
        if self._watched is not None:
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = None

    def cut(self) -> None:
        self._connection.pgconn.finish()

    async def _execute(self, command: str) -> None:
        self.leave()  # psycopg watches the socket itself
        if not self._connection.autocommit:
            await self._connection.set_autocommit(True)
        await self._connection.execute(command)
        self._watched = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._watched, self._read)

    def _read(self) -> None:
        server = self._connection.pgconn
        try:
            server.consume_input()
        except Exception:  # noqa: BLE001 - libpq says in one way only that the connection is lost
            self.leave()
            self._lost.set()
            return
        while (each := server.notifies()) is not None:
            self._deliver(each.relname.decode(), each.extra.decode())

    def _deliver(self, channel: str, payload: str) -> None:
        if channel in self._heard:
            self._heard[channel](payload)


_LINES: dict[str, type[_Line]] = {"asyncpg": _AsyncpgLine, "psycopg": _PsycopgLine}


def _line_on(connection: Any) -> _Line:
    driver = type(connection).__module__.partition(".")[0]
    # The class of a psycopg connection may be derived, in a module of ours or of the application.
    names = {base.__module__.partition(".")[0] for base in type(connection).__mro__}
    line = next((kind for name, kind in _LINES.items() if name in names), None)
    if line is None:
        raise NeverArriveError(f"the driver {driver} has no notifications")
    return line(connection)

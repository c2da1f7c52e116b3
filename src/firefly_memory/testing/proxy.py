"""A proxy in front of a real server that loses what the server answers, cuts connections, or holds them up."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: what was not sent is dropped, and the other side gets a reset


@dataclass(frozen=True)
class Weather:
    """What happens at random to pieces of traffic: each number is a probability."""

    lost_reply: float = 0.0
    """The server answers, its answer is dropped and the connection reset."""
    cut: float = 0.0
    """A request does not reach the server, and the connection is reset."""
    stall: float = 0.0
    """A request is held up for a moment."""
    seed: int = 0


CALM = Weather()

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """Forwards to ``port`` of ``host``. :meth:`lose_reply` arms it for one loss; ``weather`` is for losses at random."""

    def __init__(self, port: int, weather: Weather = CALM, host: str = "127.0.0.1") -> None:
        self._target = port
        self._host = host
        self._weather = weather
        self._random = random.Random(weather.seed)
        self._given = 0
        self._armed: int | None = None
        self._then: Callable[[], object] | None = None
        self.is_closed = False
        """Whether nobody is let through any more."""
        self.lost = 0
        """How many answers were lost so far."""
        self.port = 0

    def url(self, url: str) -> str:
        """The server's ``url``, by way of the proxy."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}").geturl()

    def lose_reply(self, after: int | None = 0, then: Callable[[], object] | None = None) -> None:
        """Lose an answer of the server, after so many that arrive, and call ``then`` before anybody notices."""
        self.lost, self._given, self._armed, self._then = 0, 0, after, then

    def calm_down(self) -> int:
        """Lose nothing any more; returns how many answers the server has given since :meth:`lose_reply`."""
        self._armed = None
        return self._given

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._end(server), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        await asyncio.sleep(0)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(0)  # a connection that was just accepted makes its task now

    def close(self) -> None:
        """From now on nobody gets a connection."""
        self.is_closed = True

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        writers = [to_client]
        try:
            if self.is_closed:
                return
            server, to_server = await asyncio.open_connection(self._host, self._target)
            writers.append(to_server)
            await self._forward((client, to_client), (server, to_server))
            for writer in writers:
                writer.close()
            for writer in writers:
                with suppress(OSError):
                    await writer.wait_closed()
        except OSError:
            pass  # the server takes no connection
        finally:
            for writer in writers:
                writer.transport.abort()

    async def _forward(self, of_client: Streams, of_server: Streams) -> None:
        ways = [
            asyncio.ensure_future(self._requests(of_client[0], of_server[1])),
            asyncio.ensure_future(self._answers(of_server[0], of_client[1])),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while data := await client.read(65536):
            if self._random.random() < self._weather.cut:
                _reset(to_server)
                return
            if self._random.random() < self._weather.stall:
                await asyncio.sleep(self._random.uniform(0.01, 0.2))
            to_server.write(data)
            await to_server.drain()

    async def _answers(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while data := await server.read(65536):
            self._given += 1
            if self._loses_this():
                self.lost += 1
                if self._then is not None:
                    then, self._then = self._then, None
                    await asyncio.get_running_loop().run_in_executor(None, then)
                _reset(to_client)
                return
            to_client.write(data)
            await to_client.drain()

    def _loses_this(self) -> bool:
        if self._armed is not None:
            self._armed = self._armed - 1 if self._armed else None
            return self._armed is None
        return self._random.random() < self._weather.lost_reply


def _reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()

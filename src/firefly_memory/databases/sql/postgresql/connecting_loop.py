"""The event loop that asyncpg connects with.

While asyncpg asks a server for TLS, a future of its own gets the error of a connection that breaks. If the caller has
been cancelled by then, nobody looks at that future, and asyncio logs it as an error that was never retrieved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class ConnectingLoop:
    """``loop``, with which the error of a connection attempt that was given up is of no interest to the log."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(self, protocol_factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        def protocol() -> Any:
            made = protocol_factory()
            answer = getattr(made, "on_data", None)
            if isinstance(answer, asyncio.Future):
                answer.add_done_callback(_look_at)
            return made

        return await self._loop.create_connection(protocol, *args, **options)


def _look_at(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()

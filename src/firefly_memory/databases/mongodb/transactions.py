"""What does several things on MongoDB at once."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from pymongo.errors import PyMongoError

from firefly_memory.concurrency.sync_bridge import result_of
from firefly_memory.databases.mongodb.clients import DURABLE, Connection

T = TypeVar("T")


class InTransaction(Protocol):
    """Does all of some work, which gets the session to use, or nothing; again if that may help, if not ``once``."""

    async def __call__(
        self, connection: Connection, work: Callable[[Any], Awaitable[T]], *, once: bool = False
    ) -> T: ...


async def run_in_transaction(connection: Connection, work: Callable[[Any], Awaitable[T]], *, seconds: float) -> T:
    """All that ``work`` does with the session, or nothing; tried again for ``seconds``, while the server says that may
    help."""
    deadline = time.monotonic() + seconds
    session = await result_of(connection.client.start_session())
    try:
        while True:
            await result_of(session.start_transaction(write_concern=DURABLE))
            try:
                result = await work(session)
                await _commit(connection, session, deadline)
            except BaseException as exc:
                if session.in_transaction:
                    with suppress(PyMongoError):
                        await connection.result_of(session.abort_transaction())
                if _has_label(exc, "TransientTransactionError") and time.monotonic() < deadline:
                    continue
                raise
            return result
    finally:
        await connection.result_of(session.end_session())


async def _commit(connection: Connection, session: Any, deadline: float) -> None:
    while True:
        try:
            await connection.result_of(session.commit_transaction())
        except PyMongoError as exc:
            if not _has_label(exc, "UnknownTransactionCommitResult") or time.monotonic() >= deadline:
                raise
        else:
            return


def _has_label(exc: BaseException, label: str) -> bool:
    return isinstance(exc, PyMongoError) and exc.has_error_label(label)

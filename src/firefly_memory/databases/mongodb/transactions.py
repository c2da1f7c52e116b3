"""What does several things on MongoDB at once."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from pymongo.errors import ConfigurationError, OperationFailure, PyMongoError

from firefly_memory.concurrency.growing_pauses import growing_pauses
from firefly_memory.concurrency.sync_bridge import result_of
from firefly_memory.databases.mongodb.clients import DURABLE, Connection
from firefly_memory.databases.mongodb.pymongo_cleanup import drop_connections

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1  # seconds


class InTransaction(Protocol):
    """Does all of some work, which gets the session to use, or nothing; again if that may help, if not ``once``."""

    async def __call__(
        self, connection: Connection, work: Callable[[Any], Awaitable[T]], *, once: bool = False
    ) -> T: ...


async def run_in_transaction(connection: Connection, work: Callable[[Any], Awaitable[T]], *, seconds: float) -> T:
    """All that ``work`` does with the session, or nothing; tried again for ``seconds``, while the server says that may
    help, and while PyMongo has connections that it opened during an election."""
    deadline = time.monotonic() + seconds
    pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
    session = await result_of(connection.client.start_session())
    try:
        while True:
            await result_of(session.start_transaction(write_concern=DURABLE))
            try:
                result = await work(session)
                await _commit(connection, session, deadline, pauses)
            except BaseException as exc:
                needs_others = _needs_other_connections(exc)
                if needs_others:
                    drop_connections(connection.client)
                if session.in_transaction:
                    with suppress(PyMongoError):
                        await connection.result_of(session.abort_transaction())
                if time.monotonic() < deadline:
                    if _has_label(exc, "TransientTransactionError"):
                        continue
                    if needs_others:
                        await connection.pause(next(pauses))
                        continue
                raise
            return result
    finally:
        await connection.result_of(session.end_session())


def tried_again(reason: str) -> OperationFailure:
    """The error at which a transaction ends, and is tried again."""
    return OperationFailure(reason, details={"errorLabels": ["TransientTransactionError"]})


async def _commit(connection: Connection, session: Any, deadline: float, pauses: Iterator[float]) -> None:
    lost = None
    while True:
        try:
            await connection.result_of(session.commit_transaction())
        except PyMongoError as exc:
            needs_others = _needs_other_connections(exc)  # nothing was sent this time
            if _has_label(exc, "UnknownTransactionCommitResult"):
                lost = exc
            elif not needs_others:
                raise
            if time.monotonic() >= deadline:
                raise lost or exc from None
            if needs_others:
                drop_connections(connection.client)
                await connection.pause(next(pauses))
        else:
            return


def _needs_other_connections(exc: BaseException) -> bool:
    """Whether PyMongo uses the connection for no session, because the server had no primary when it was opened. It says
    so before it sends anything. Only servers that have transactions are asked for them."""
    return isinstance(exc, ConfigurationError) and "Sessions are not supported" in str(exc)


def _has_label(exc: BaseException, label: str) -> bool:
    return isinstance(exc, PyMongoError) and exc.has_error_label(label)

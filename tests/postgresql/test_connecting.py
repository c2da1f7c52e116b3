"""A PostgreSQL server that cuts connections while callers cancel their attempts."""

from __future__ import annotations

import asyncio
import gc
from contextlib import closing
from typing import Any

import pytest

from firefly_memory import DatabaseConnectionError, PostgreSQLStore, StoreTimeoutError
from tests.support.cancellation import cancelled_at


@pytest.mark.parametrize("answer", [None, b"", b"N", b"?"])
async def test_a_cancelled_connection_attempt_logs_no_error(answer: bytes | None) -> None:
    """asyncio logs the error of a future that nobody looks at."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            if answer is not None:
                await reader.read(8)
                writer.write(answer)
            await reader.read()

    logged: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    gc.collect()
    gc.freeze()  # the collector looks at what the attempts leave behind, and not at all that was there before
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for wait in range(1, 20):
            store = PostgreSQLStore(f"postgresql://user@127.0.0.1:{port}/name", timeout=0.2)
            try:
                await cancelled_at(wait, store.async_count("n"))
            except asyncio.CancelledError:
                await store.close()
            except (DatabaseConnectionError, StoreTimeoutError):
                await store.close()
                break
            gc.collect()
            await asyncio.sleep(0)
    assert wait > 1
    assert logged == []

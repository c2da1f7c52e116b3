"""What a service may run beside its work: a sweep now and then, by one process at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from firefly_memory import clock
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.entries.scopes import CLAIMS
from firefly_memory.errors import ConfigurationError, NotSupportedError
from firefly_memory.identifiers import new_entry_id
from firefly_memory.protocols import ABSENT, MemoryStore, StoreView
from firefly_memory.retention import Retention, prune_view
from firefly_memory.settings import read_settings
from firefly_memory.stores.adapter import adapt
from firefly_memory.validation import duration

__all__ = ["Sweeper"]

logger = logging.getLogger("firefly_memory")

_ID = "firefly-memory:sweeper"

LEASE = 300.0
"""The seconds after which others take over from a process that died. Clocks of machines differ by less."""


class Sweeper:
    """``async with Sweeper(store, every="1h"):`` deletes what has expired, and what retention leaves out.

    Of several processes with a sweeper for one store, one sweeps. If it dies, its claim runs out within ``every`` and
    five minutes, and another process takes over at its next turn.

    The bounds are those of :func:`~firefly_memory.retention.prune`. Without any of them they come from
    ``MemorySettings``, and without any there, only what has expired is deleted. An error is logged, and the next sweep
    begins as usual. The store stays the caller's.
    """

    _wait: Callable[[float], Awaitable[object]] = staticmethod(asyncio.sleep)

    def __init__(
        self,
        store: MemoryStore,
        *,
        every: timedelta | float | str,
        older_than: timedelta | float | str | None = None,
        keep_last: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._view = adapt(store).suspending
        self._every = duration("every", every).total_seconds()
        given = Retention.of(older_than, keep_last, max_tokens)
        self._retention = given if given.is_set else Retention.of_settings(read_settings())
        self._claim = _Claim(self._view, self._every + LEASE)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise ConfigurationError("this Sweeper has been started already; make another one")
        self._task = asyncio.create_task(self._run(), name="firefly-memory sweeper")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop at once, in the middle of a sweep as well, and leave the sweeping to others."""
        if self._task is None or self._task.done():
            return
        await _ended(self._task)
        with _logged("giving the claim back failed; it runs out"):
            await self._claim.release()

    async def _run(self) -> None:
        while True:
            with _logged("the claim of the sweeper failed; the next sweep begins as usual"):
                if await self._claim.take(LEASE):
                    await self._sweep_while_claimed()
                    await self._claim.take(self._every + LEASE)
            await self._wait(self._every)

    async def _sweep_while_claimed(self) -> None:
        sweep, keep = asyncio.create_task(self._sweep()), asyncio.create_task(self._keep_claim())
        try:
            await asyncio.wait({sweep, keep}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _ended(sweep, keep)

    async def _sweep(self) -> None:
        with _logged("deleting what has expired failed; the next sweep begins as usual"), suppress(NotSupportedError):
            expired = await self._view.cleanup_expired()
            logger.info("sweep: deleted %d expired rows", expired)
        if self._retention.is_set:
            with _logged("pruning failed; the next sweep begins as usual"):
                pruned = await prune_view(self._view, self._retention.bounds())
                logger.info("sweep: deleted %s", pruned.rows or "no conversation")

    async def _keep_claim(self) -> None:
        """Ends when another process has the claim."""
        is_mine = True
        while is_mine:
            await self._wait(LEASE / 3)
            with _logged("the claim of the sweeper could not be renewed"):
                is_mine = await self._claim.take(LEASE)
        logger.warning("another process has taken over the sweep")


@contextmanager
def _logged(message: str) -> Iterator[None]:
    """An error is logged, and the work goes on. A cancellation is none."""
    try:
        yield
    except Exception:
        logger.exception(message)


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Claim:
    """Of one process on the sweeping of a store: an entry that expires, ``longest`` seconds after it was saved or
    earlier."""

    def __init__(self, view: StoreView, longest: float) -> None:
        self._view = view
        self._content = {"process": new_entry_id(), "longest": longest}
        self._may_be_mine = False

    async def take(self, seconds: float) -> bool:
        """Have it for so long from now on, if nobody else has it."""
        entry, save_if = self._entry(seconds), self._view.save_if
        self._may_be_mine = True  # also if this is cancelled, or its answer is lost
        self._may_be_mine = (
            await save_if(CLAIMS, entry, self._content)
            or await save_if(CLAIMS, entry, ABSENT)
            or await self._take_over(entry)
        )
        return self._may_be_mine

    async def release(self) -> None:
        if self._may_be_mine:
            await self._view.save_if(CLAIMS, self._entry(0), self._content)

    async def _take_over(self, entry: MemoryEntry) -> bool:
        """A claim that lasts for longer than it may was made while a clock was far ahead."""
        for other in await self._view.load(CLAIMS):
            if other.entry_id == _ID and isinstance(other.content, dict) and other.expires_at is not None:
                longest = duration("longest", other.content.get("longest"))
                if other.expires_at - clock.now() > 2 * longest:
                    return await self._view.save_if(CLAIMS, entry, other.content)
        return False

    def _entry(self, seconds: float) -> MemoryEntry:
        until = clock.now() + timedelta(seconds=seconds)
        return MemoryEntry(entry_id=_ID, content=self._content, expires_at=until)

"""Notifications: how this process learns soon of what others have written to the same database.

A notification only says when to look. It may be lost, so those who wait for one also look from time to time.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from logging import Logger
from typing import NamedTuple, Protocol

from firefly_memory.concurrency.cancellation import to_its_end
from firefly_memory.concurrency.ended_loop import end_task
from firefly_memory.concurrency.growing_pauses import growing_pauses
from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.errors import StoreClosedError

Arrive = Callable[[], bool]
"""Whether notifications arrive at the moment."""

Wake = Callable[[], object]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0
"""Seconds between attempts to receive notifications again."""


def no_notifications() -> AbstractAsyncContextManager[Arrive]:
    """For databases that tell nobody."""
    return nullcontext(lambda: False)


class Topic(NamedTuple):
    """What notifications are about."""

    channel: str
    """Where the database has them: a channel, or a collection."""
    logger: Logger
    """Told once if they do not arrive, and why."""


class NeverArriveError(Exception):
    """Notifications do not arrive here, now or later; the text says why. Does not leave this package."""


class Receiver(Protocol):
    """The notifications of one topic, for one event loop."""

    cancel_again_after: float | None
    """Seconds after which :meth:`receive` is cancelled again, where a driver may lose a cancellation."""

    async def receive(self, inbox: Inbox) -> None:
        """Tell ``inbox`` when notifications begin to arrive, and of each. Returns, or raises what a driver raises, when
        the connection is lost; ``NeverArriveError`` if it makes no sense to try again."""

    def cut(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what is open, without the event loop, which does not run any more."""


class Inbox:
    """Who waits for notifications of one topic in one event loop, and the task that receives them. The task begins when
    the first one waits, and ends when nobody waits any more."""

    def __init__(self, receiver: Receiver, logger: Logger) -> None:
        self._receiver = receiver
        self._logger = logger
        self._waiting: defaultdict[str, list[Wake]] = defaultdict(list)
        self._task: asyncio.Task[None] | None = None
        self._arrive = False
        self._never = False

    @asynccontextmanager
    async def listening(self, key: str, wake: Wake) -> AsyncIterator[Arrive]:
        self._waiting[key].append(wake)
        if self._task is None and not self._never:
            self._task = asyncio.create_task(self._receive(), name="firefly-memory notifications")
        try:
            yield lambda: self._arrive
        finally:
            self._waiting[key].remove(wake)
            if not self._waiting[key]:
                del self._waiting[key]
            if not self._waiting:
                await self.close()

    def begin(self) -> None:
        """Notifications arrive from now on. Nobody was told of earlier writes, so all look now."""
        self._arrive = True
        self._wake_all()

    def deliver(self, key: str) -> None:
        for wake in self._waiting.get(key, ()):
            wake()

    async def close(self) -> None:
        """End the task, and wake those who wait, because no notification arrives any more."""
        task, self._task = self._task, None
        if task is not None:
            await to_its_end(_ended(task, self._receiver.cancel_again_after))

    def cut(self, loop: asyncio.AbstractEventLoop) -> None:
        """:meth:`close` without the event loop."""
        task, self._task = self._task, None
        self._receiver.cut(loop)
        if task is not None:
            end_task(task)

    async def _receive(self) -> None:
        pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
        has_failed = False
        while True:
            try:
                await self._receiver.receive(self)
            except NeverArriveError as why:
                self._never = True
                self._logger.info("notifications do not arrive, so the database is polled: %s", why)
                return
            except StoreClosedError:
                return
            except Exception as exc:  # noqa: BLE001 - drivers raise many kinds, and polling does without any of this
                if not (has_failed or self._arrive):
                    has_failed = True
                    name = type(exc).__name__
                    self._logger.info("notifications do not arrive yet (%s), so the database is polled", name)
            finally:
                if self._arrive:
                    pauses = growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE)
                    self._arrive = False
                self._wake_all()
            await asyncio.sleep(next(pauses))

    def _wake_all(self) -> None:
        for key in list(self._waiting):
            self.deliver(key)


async def _ended(task: asyncio.Task[None], cancel_again_after: float | None) -> None:
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=cancel_again_after)


class Notifications:
    """Those of one database, in all event loops that use it."""

    def __init__(self, receiver: Callable[[str], Receiver], scope: str = "") -> None:
        """``receiver`` makes one for a channel. ``scope`` tells this store from others that share the channel."""
        self.scope = scope
        self._receiver = receiver
        self._inboxes: dict[Topic, PerLoop[Inbox]] = {}

    def listening(self, topic: Topic, key: str, wake: Wake) -> AbstractAsyncContextManager[Arrive]:
        """Call ``wake``, in the running event loop, for each notification with that key."""
        inboxes = self._inboxes.get(topic)
        if inboxes is None:
            made = PerLoop(lambda: Inbox(self._receiver(topic.channel), topic.logger), Inbox.close, Inbox.cut)
            inboxes = self._inboxes.setdefault(topic, made)
        return inboxes.get().listening(key, wake)

    async def close(self) -> None:
        for inboxes in list(self._inboxes.values()):
            await inboxes.close()

    def close_elsewhere(self) -> None:
        """:meth:`close` for blocking callers: the loops that run close theirs soon."""
        for inboxes in list(self._inboxes.values()):
            inboxes.close_elsewhere()

"""What our message stores do, once for both modes: coroutines over a view of the store."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from firefly_memory import clock
from firefly_memory.databases.notifications import Arrive, Wake, no_notifications
from firefly_memory.errors import ConflictError, InvalidEntryError
from firefly_memory.feeds.items import Items, Message, Messages
from firefly_memory.feeds.log import FEED_LOG, Feed, FeedLog, Which
from firefly_memory.feeds.message_form import MessageForm
from firefly_memory.feeds.wakeups import wake
from firefly_memory.identifiers import stored_name
from firefly_memory.protocols import StoreView
from firefly_memory.validation import checked_whole_number, duration

MOST_ROWS = 2**31 - 2
"""Upper bound of limits: they must fit a signed 32-bit integer."""


class FeedFlows:
    """The methods of a message store in one mode."""

    def __init__(self, view: StoreView, *, notify: bool = False) -> None:
        """``notify`` tells listeners of other processes of each write, and listens to those of others."""
        self._view = view
        self._notify = notify

    @property
    def _log(self) -> FeedLog:
        return self._view.log(FEED_LOG)

    async def append(self, location: str, messages: Iterable[Message], owner: str | None, path: str) -> list[int]:
        """Append messages, all of them or none; their numbers. ``path`` names them in errors, each with its place if
        it has ``{}``."""
        log, name = self._log, stored_name("location", location)
        person = None if owner is None else stored_name("owner", owner)
        form = MessageForm(log)
        new = [form.new(each, path.format(place)) for place, each in enumerate(messages)]
        if not new:
            return []
        last = await log.append(name, new, person, self._notify)
        if last is None:
            raise ConflictError(
                f"feed {location!r} has another owner than {owner!r}; its first writer decided, and it never changes"
            )
        wake(location)
        return list(range(last - len(new) + 1, last + 1))

    async def newest(self, location: str, which: Which, agent_keys: Iterable[str], limit: int | None) -> Messages:
        """The newest ``limit`` messages of one kind, oldest first."""
        name = stored_name("location", location)
        keys = [stored_name("agent_key", each) for each in dict.fromkeys(_keys(agent_keys))]
        most = None if limit is None else _limit(limit)
        if most == 0 or (which == "agents" and not keys):
            return []
        log = self._log
        found = await log.newest(name, which, keys, most)
        form = MessageForm(log)
        return [form.message(name, each) for each in found]

    async def items(self, location: str, after: int, limit: int | None) -> Items:
        """The first ``limit`` messages after a number."""
        name, number = stored_name("location", location), checked_whole_number("after", after)
        most = None if limit is None else _limit(limit)
        if most == 0:
            return []
        log = self._log
        form = MessageForm(log)
        return [form.item(name, each) for each in await log.after(name, number, most)]

    def listening(self, location: str, wake: Wake) -> AbstractAsyncContextManager[Arrive]:
        """What :meth:`FeedLog.listening` gives, where it was asked for."""
        if not self._notify:
            return no_notifications()
        return self._log.listening(stored_name("location", location), wake)

    async def feed(self, location: str) -> Feed | None:
        return await self._log.feed(stored_name("location", location))

    async def clear(self, location: str, keep_last: int | None, older_than: str | timedelta | None) -> int:
        """Delete the oldest messages, as far as every bound given allows; how many."""
        log, name = self._log, stored_name("location", location)
        feed = await log.feed(name)
        if feed is None:
            return 0
        until = feed.newest
        if keep_last is not None:
            until = min(until, feed.newest - checked_whole_number("keep_last", keep_last))
        if older_than is not None:
            first = await log.first_since(name, clock.now() - duration("older_than", older_than))
            until = until if first is None else min(until, first - 1)
        return await log.drop(name, until) if until > feed.dropped else 0


def _keys(agent_keys: Iterable[str]) -> Iterable[str]:
    if isinstance(agent_keys, str):
        raise InvalidEntryError("agent_keys", "must be several keys, not one text")
    return agent_keys


def _limit(limit: int) -> int:
    return min(checked_whole_number("limit", limit), MOST_ROWS)

"""What our message stores do, once for both modes: coroutines over a view of the store."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

from firefly_memory import clock
from firefly_memory.databases.notifications import Arrive, Wake, no_notifications
from firefly_memory.errors import ConflictError, InvalidEntryError
from firefly_memory.feeds.items import Items, Message, Messages
from firefly_memory.feeds.log import FEED_LOG, MOST_MESSAGES, Feed, FeedLog, Which, numbers_to
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

    async def append(
        self, location: str, messages: Iterable[Message], owner: str | None, path: str, *, whole: bool = True
    ) -> list[int]:
        """Append messages, all of them or none if ``whole``; their numbers. ``path`` names them in errors, each with
        its place if it has ``{}``."""
        log, name = self._log, stored_name("location", location)
        person = None if owner is None else stored_name("owner", owner)
        form = MessageForm(log)
        new = [form.new(each, path.format(place)) for place, each in enumerate(messages)]
        if not new:
            return []
        if whole:
            numbers = numbers_to(await log.append(name, new, person, self._notify), len(new))
        else:
            numbers = [*await log.append_each(name, new, person, self._notify)]
        wake(location)
        appended = [each for each in numbers if each is not None]
        if len(appended) < len(numbers):
            raise _another_owner(location, owner)
        return appended

    async def check_owner(self, location: str, owner: str) -> None:
        """``ConflictError`` if there is a feed, and ``owner`` is not its owner."""
        feed = await self._log.feed(stored_name("location", location))
        if feed is not None and feed.owner != stored_name("owner", owner):
            raise _another_owner(location, owner)

    async def newest(self, location: str, which: Which, agent_keys: Iterable[str], limit: int | None) -> Messages:
        """The newest ``limit`` messages of one kind, oldest first."""
        name = stored_name("location", location)
        keys = [*dict.fromkeys(stored_name("agent_key", each) for each in _keys(agent_keys))]
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
        return [form.item(name, each) for each in await log.after(name, min(number, MOST_MESSAGES), most)]

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
        kept = 0 if keep_last is None else checked_whole_number("keep_last", keep_last)
        before = None if older_than is None else _before(older_than)
        feed = await log.feed(name)
        if feed is None:
            return 0
        until = feed.newest - kept
        if before is not None:
            first = await log.first_since(name, before)
            until = until if first is None else min(until, first - 1)
        return await log.drop(name, until) if until > feed.dropped else 0


def _another_owner(location: str, owner: str | None) -> ConflictError:
    return ConflictError(
        f"feed {location!r} has another owner than {owner!r}; its first writer decided, and it never changes"
    )


def _keys(agent_keys: Iterable[str]) -> Iterable[str]:
    if isinstance(agent_keys, str) or not isinstance(agent_keys, Iterable):
        raise InvalidEntryError("agent_keys", "must be several keys, in a list")
    return agent_keys


def _before(older_than: str | timedelta) -> datetime:
    try:
        return clock.now() - duration("older_than", older_than)
    except OverflowError:  # longer ago than there are dates
        return datetime.min.replace(tzinfo=UTC)


def _limit(limit: int) -> int:
    return min(checked_whole_number("limit", limit), MOST_ROWS)

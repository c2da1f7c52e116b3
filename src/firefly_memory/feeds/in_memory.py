"""Feeds in the memory of this process."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from heapq import nlargest
from typing import NamedTuple, Protocol, TypeVar

from firefly_memory.codec import TEXT, Form
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.databases.notifications import Arrive, Wake, no_notifications
from firefly_memory.entries.record import as_it_is
from firefly_memory.errors import StoreClosedError
from firefly_memory.feeds.log import Feed, NewMessage, Sizes, StoredMessage, Which, identities_of, numbers_to
from firefly_memory.tombstones.in_memory import MemoryTombstones

T = TypeVar("T")


class _Kind(NamedTuple):
    which: Which
    agent_key: str | None = None


class _KeptFeed:
    """One feed. Not safe for threads: the caller holds the lock."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._messages: list[StoredMessage] = []
        self._numbers: defaultdict[_Kind, list[int]] = defaultdict(list)
        """Of the messages of each kind."""

    def append(self, messages: Sequence[NewMessage]) -> int:
        for message in messages:
            number = self.feed.newest + 1
            self._messages.append(StoredMessage(number, message.agent_key, message.message, message.created_at))
            for kind in _kinds(message):
                self._numbers[kind].append(number)
            self.feed = self.feed._replace(newest=number, updated_at=message.created_at)
        return self.feed.newest

    def newest(self, which: Which, agent_keys: Sequence[str], limit: int | None) -> Sequence[StoredMessage]:
        kinds = [_Kind(which, each) for each in agent_keys] if which == "agents" else [_Kind(which)]
        of_each = [self._numbers.get(kind, ()) for kind in kinds]
        if limit is None:
            numbers = sorted(number for each in of_each for number in each)
        else:
            numbers = sorted(nlargest(limit, (number for each in of_each for number in each[-limit:])))
        return [self._messages[number - 1 - self.feed.dropped] for number in numbers]

    def after(self, number: int, limit: int | None) -> Sequence[StoredMessage]:
        first = max(number - self.feed.dropped, 0)
        return self._messages[first : None if limit is None else first + limit]

    def drop(self, number: int) -> int:
        count = min(max(number - self.feed.dropped, 0), len(self._messages))
        del self._messages[:count]
        self.feed = self.feed._replace(dropped=self.feed.dropped + count)
        for numbers in self._numbers.values():
            del numbers[: bisect_right(numbers, self.feed.dropped)]
        self._numbers = defaultdict(list, {kind: numbers for kind, numbers in self._numbers.items() if numbers})
        return count

    def first_since(self, before: datetime) -> int | None:
        return next((each.number for each in self._messages if each.created_at >= before), None)


def _kinds(message: NewMessage) -> Iterator[_Kind]:
    if message.is_conversation:
        yield _Kind("conversation")
    if message.is_global:
        yield _Kind("global")
    if message.agent_key is not None:
        yield _Kind("agents", message.agent_key)


class Memory(Protocol):
    """The store, as far as feeds need it."""

    lock: ForkSafeLock
    tombstones: MemoryTombstones


class MemoryFeedLog:
    """A :class:`~firefly_memory.feeds.log.FeedLog` in a dict."""

    form: Form = TEXT
    read_instant = staticmethod(as_it_is)

    def __init__(self, memory: Memory) -> None:
        self._lock = memory.lock
        self._tombstones = memory.tombstones
        self._feeds: dict[str, _KeptFeed] = {}
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._feeds.clear()

    async def append(
        self, location: str, messages: Sequence[NewMessage], owner: str | None, notify: bool = False
    ) -> int | None:
        with self._lock:
            self._check_open("append_messages")
            self._tombstones.check("append_messages", identities_of(location, owner))
            kept = self._feeds.get(location)
            if kept is None:
                now = messages[0].created_at
                kept = self._feeds[location] = _KeptFeed(Feed(location, 0, 0, owner, now, now))
            if owner not in (None, kept.feed.owner):
                return None
            return kept.append(messages)

    async def append_each(
        self, location: str, messages: Sequence[NewMessage], owner: str | None, notify: bool = False
    ) -> Sequence[int | None]:
        return numbers_to(await self.append(location, messages, owner, notify), len(messages))

    async def begin(self, feed: Feed) -> bool:
        with self._lock:
            self._check_open("begin_feed")
            if feed.location in self._feeds:
                return False
            self._tombstones.check("begin_feed", identities_of(feed.location, feed.owner))
            self._feeds[feed.location] = _KeptFeed(feed._replace(newest=feed.dropped))
            return True

    async def newest(
        self, location: str, which: Which, agent_keys: Sequence[str], limit: int | None
    ) -> Sequence[StoredMessage]:
        return self._with(location, "read_messages", lambda kept: kept.newest(which, agent_keys, limit), ())

    async def after(self, location: str, number: int, limit: int | None) -> Sequence[StoredMessage]:
        return self._with(location, "read_messages", lambda kept: kept.after(number, limit), ())

    async def feed(self, location: str) -> Feed | None:
        return self._with(location, "read_feed", lambda kept: kept.feed, None)

    async def drop(self, location: str, number: int) -> int:
        return self._with(location, "drop_messages", lambda kept: kept.drop(number), 0)

    async def first_since(self, location: str, before: datetime) -> int | None:
        return self._with(location, "read_messages", lambda kept: kept.first_since(before), None)

    async def delete(self, location: str, newest: int | None = None) -> int | None:
        with self._lock:
            self._check_open("delete_feed")
            kept = self._feeds.get(location)
            if kept is None or (newest is not None and kept.feed.newest > newest):
                return None
            return self._feeds.pop(location).feed.messages

    async def page(self, limit: int, after: str) -> Sequence[Feed]:
        return self._page(limit, after, lambda _: True)

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[Feed]:
        return self._page(limit, after, lambda feed: feed.owner == owner)

    async def sizes(self) -> Sizes:
        with self._lock:
            self._check_open("count")
            return Sizes(len(self._feeds), sum(kept.feed.messages for kept in self._feeds.values()))

    def listening(self, location: str, wake: Wake) -> AbstractAsyncContextManager[Arrive]:
        return no_notifications()

    def _page(self, limit: int, after: str, is_wanted: Callable[[Feed], bool]) -> Sequence[Feed]:
        with self._lock:
            self._check_open("read_feeds")
            found = [each.feed for each in self._feeds.values() if each.feed.location > after and is_wanted(each.feed)]
            return sorted(found, key=lambda feed: feed.location)[:limit]

    def _with(self, location: str, operation: str, work: Callable[[_KeptFeed], T], otherwise: T) -> T:
        with self._lock:
            self._check_open(operation)
            kept = self._feeds.get(location)
            return otherwise if kept is None else work(kept)

    def _check_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosedError(operation)

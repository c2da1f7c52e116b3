"""What the rules of feeds are checked with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.feeds.message_stores import (
    InMemoryMessageStore,
    MongoMessageStore,
    SQLMessageStore,
    StoredMessages,
)
from firefly_memory.identifiers import stored_name
from firefly_memory.stores.kinds import IN_MEMORY, MONGODB, SQL, is_of_kind
from firefly_memory.testing.checks import Memory, Subject

_KINDS: dict[tuple[str, str], Callable[..., StoredMessages]] = {
    IN_MEMORY: InMemoryMessageStore,
    SQL: SQLMessageStore,
    MONGODB: MongoMessageStore,
}


def message_store(store: Any, **options: Any) -> StoredMessages:
    """The message store of the class that belongs to the kind of ``store``."""
    (kind,) = [made for kind, made in _KINDS.items() if is_of_kind(store, kind)]
    return kind(store, **options)


class Feeds:
    """Locations of this run's own in the store under test."""

    def __init__(self, subject: Subject) -> None:
        self.store: Memory = subject.memory(message_store)
        """The message store, all of whose methods are to be awaited."""
        self._run = uuid4().hex
        self.used: list[str] = []

    def location(self, name: str = "") -> str:
        location = f"{name}{self._run}"
        self.used.append(location)
        return location

    async def numbers(self, location: str, after: int = 0, limit: int | None = None) -> list[int]:
        return [each.number for each in await self.store.get_items(location, after, limit)]


@asynccontextmanager
async def feeds_in(subject: Subject) -> AsyncIterator[Feeds]:
    """Locations of this run's own, deleted at the end."""
    feeds = Feeds(subject)
    try:
        yield feeds
    finally:
        with suppress(Exception):  # a check may have failed because of the store
            for location in feeds.used:
                await subject.view.log(FEED_LOG).delete(stored_name("location", location))


def said(content: Any, **more: Any) -> dict[str, Any]:
    """A message that is known by its content."""
    return {"content": content, **more}


def contents(messages: list[dict[str, Any]]) -> list[Any]:
    return [each["content"] for each in messages]

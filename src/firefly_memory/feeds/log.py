"""The contract of feeds: what every backend does with the messages of agents.

A *feed* is all messages of one *location*, such as a job. Its head says how many there were; each message is one row or
document with its *number*, which grows by one with every message, in the order in which they become visible: a reader
who has seen a number has seen all before it, or they are deleted. Only the oldest messages are ever deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from types import NoneType
from typing import Any, Literal, NamedTuple, Protocol

from firefly_memory.codec import Form
from firefly_memory.databases.notifications import Arrive, Wake
from firefly_memory.entries.record import ReadInstant
from firefly_memory.errors import CorruptDataError
from firefly_memory.facets import LogOf
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.log import Identity, owner_identity
from firefly_memory.validation import is_whole_number

Which = Literal["conversation", "agents", "global"]
"""The messages of people and the assistant; those of some agents; those for every agent."""

MOST_MESSAGES = 2**63 - 2
"""The highest number of a message."""


class Feed(NamedTuple):
    """The facts about a feed that are stored beside its messages."""

    location: str
    newest: int
    """The number of the newest message that was ever appended; 0 if there was none."""
    dropped: int
    """How many messages, from the first on, are deleted."""
    owner: str | None
    """The person whose feed it is, as its first writer said. It never changes."""
    created_at: Any
    updated_at: Any
    """When the newest message was appended."""

    @property
    def messages(self) -> int:
        """How many messages it has."""
        return self.newest - self.dropped


class NewMessage(NamedTuple):
    """An encoded message that is to be appended."""

    append_id: str
    """The id that its writer gives it, to find it after a lost reply."""
    agent_key: str | None
    is_conversation: bool
    is_global: bool
    message: Any
    """The whole message, in the form of the backend."""
    created_at: Any
    size: int
    """About how many characters it has."""


class StoredMessage(NamedTuple):
    """A message as it is read."""

    number: int
    agent_key: str | None
    message: Any
    created_at: Any


class Sizes(NamedTuple):
    """How many there are in a store."""

    feeds: int
    messages: int


def numbers_to(last: int | None, count: int) -> list[int | None]:
    """The numbers of ``count`` messages of which the last one has the number ``last``; of none, if it is ``None``."""
    return [None] * count if last is None else list(range(last - count + 1, last + 1))


def feed_identity(location: str) -> Identity:
    return Identity("feed", location)


def identities_of(location: str, owner: str | None) -> tuple[Identity, ...]:
    """What must not be erased if something is to be written to a feed for ``owner``."""
    itself = feed_identity(location)
    return (itself,) if owner is None else (itself, owner_identity(owner))


def checked_feed(feed: Feed) -> Feed:
    """``feed`` after a check, for backends that do not check types themselves."""
    numbers = (feed.newest, feed.dropped)
    if isinstance(feed.owner, (str, NoneType)) and all(is_whole_number(each, 0) for each in numbers):
        return feed
    raise CorruptDataError(
        "reading a feed", f"feed {_name(feed.location)}", "a count is no whole number, or its owner no text"
    )


def checked_message(location: str, message: StoredMessage) -> StoredMessage:
    """``message`` after a check, for backends that do not check types themselves."""
    if isinstance(message.agent_key, (str, NoneType)) and is_whole_number(message.number, 1):
        return message
    where = f"message {message.number!r} of feed {_name(location)}"
    raise CorruptDataError("reading a feed", where, "its number is no whole number, or its agent_key no text")


def _name(location: Any) -> str:
    return repr(original_name(location) if isinstance(location, str) else location)


class FeedLog(Protocol):
    """The operations on feeds, for one mode of one backend. Ids and texts are in their stored form, instants in UTC.
    Arguments are given by position.

    Each write is all or nothing, and durable when the method returns, as far as the backend is durable.
    """

    @property
    def form(self) -> Form:
        """How messages are encoded."""

    @property
    def read_instant(self) -> ReadInstant:
        """The function that reads the instants of this backend."""

    async def append(
        self, location: str, messages: Sequence[NewMessage], owner: str | None, notify: bool = False
    ) -> int | None:
        """Append messages, at least one, with the numbers that follow the newest one; the number of the last of them.

        Begin the feed, for ``owner``, if it does not exist. Return ``None``, and write nothing, if the feed has another
        owner than ``owner``, if one is given. ``ErasedError`` if the location or ``owner`` was erased. ``notify`` tells
        listeners in other processes, where the database can do that and is not asked for it otherwise.
        """

    async def append_each(
        self, location: str, messages: Sequence[NewMessage], owner: str | None, notify: bool = False
    ) -> Sequence[int | None]:
        """The same in the order of the messages, each of which is all or nothing by itself; their numbers. A backend
        that makes writers wait for each other if a process dies in the middle of several messages appends each on its
        own: messages of others may come between."""

    async def begin(self, feed: Feed) -> bool:
        """Make a feed without messages, whose first message gets the number after ``feed.dropped``; ``False`` if there
        is one already. ``feed.newest`` is not looked at. ``ErasedError`` if the location or the owner was erased."""

    async def newest(
        self, location: str, which: Which, agent_keys: Sequence[str], limit: int | None
    ) -> Sequence[StoredMessage]:
        """The newest ``limit`` messages of one kind, or all of it, oldest first; none of an unknown feed.

        ``agent_keys``, without duplicates, says whose; it is empty unless ``which`` is ``"agents"``. ``limit`` is at
        least 1. The time depends on ``limit`` and on the number of keys, and not on the length of the feed.
        """

    async def after(self, location: str, number: int, limit: int | None) -> Sequence[StoredMessage]:
        """The first ``limit`` messages after a number, or all, oldest first."""

    async def feed(self, location: str) -> Feed | None: ...

    async def drop(self, location: str, number: int) -> int:
        """Delete the messages up to ``number``; how many there were. The feed stays, and its numbers go on."""

    async def first_since(self, location: str, before: datetime) -> int | None:
        """The number of the first message that was not appended before an instant; ``None`` if all were. The time
        depends on the number of messages before it."""

    async def delete(self, location: str, newest: int | None = None) -> int | None:
        """Delete a feed and its messages; how many messages there were. ``None``, and nothing is deleted, if there is
        no such feed, or if it has a newer message than number ``newest``, if one is given."""

    async def page(self, limit: int, after: str) -> Sequence[Feed]:
        """The first ``limit`` feeds after a location, in the order of code points."""

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[Feed]:
        """The same for the feeds of one person."""

    async def sizes(self) -> Sizes: ...

    def listening(self, location: str, wake: Wake) -> AbstractAsyncContextManager[Arrive]:
        """Call ``wake``, in the running event loop, when another process has written to a feed. The value says whether
        such notifications arrive at the moment. A notification may be lost, or come without a new message."""


FEED_LOG: LogOf[FeedLog] = LogOf("feeds")
"""``view.log(FEED_LOG)``: the feeds of a store, if it can keep them."""

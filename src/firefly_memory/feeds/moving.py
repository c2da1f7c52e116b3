"""Feeds on their way from one store to another.

A message keeps its number. So a copy goes on after the newest message of the target, and the target may still have old
messages that the source has dropped.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from firefly_memory.clock import instant_of
from firefly_memory.codec import DAMAGE, DOCUMENT, damaged
from firefly_memory.errors import ConflictError, CorruptDataError, FireflyMemoryError
from firefly_memory.feeds.items import FeedItem
from firefly_memory.feeds.log import FEED_LOG, Feed, FeedLog, NewMessage, StoredMessage
from firefly_memory.feeds.message_form import MessageForm
from firefly_memory.feeds.trust import speaks_for_itself
from firefly_memory.identifiers import original_name, original_or_none, stored_name, stored_text
from firefly_memory.moving import Item, Kind, Placed, Walk, Writing, as_sorted_json
from firefly_memory.protocols import StoreView
from firefly_memory.validation import checked_mapping, checked_whole_number

_PAGE = 200
_MOST_CHARACTERS = 4_000_000
"""So many of messages, or a little more, are written together."""


_MOST_DROPPED = 2**53
"""An archive with a larger number would leave a feed no room to go on."""


async def feeds_of(walk: Walk, _: None) -> Placed:
    """All feeds, by their locations."""
    log, after = walk.view.log(FEED_LOG), ""
    while page := await log.page(_PAGE, after):
        for feed in page:
            yield feed.location, _feed_as_json(log, feed)
        after = page[-1].location


async def messages_of(walk: Walk, item: Item) -> Placed:
    """All messages of a feed."""
    log, name, number = walk.view.log(FEED_LOG), stored_text(item["location"]), item.get("dropped", 0)
    form = MessageForm(log)
    while page := await log.after(name, number, _PAGE):
        for stored in page:
            number += 1
            if stored.number != number:
                raise await _missing(log, item, number)
            yield number, _message_as_json(item["location"], form.item(name, stored))


async def _missing(log: FeedLog, item: Item, number: int) -> FireflyMemoryError:
    feed = await log.feed(stored_text(item["location"]))
    if feed is None or feed.dropped >= number:
        return ConflictError(f"messages of {name_of(item)} were deleted while it was read; start again")
    return CorruptDataError("reading a feed", f"message {number} of {name_of(item)}", "it is missing")


def name_of(item: Item) -> str:
    return f"feed {item['location']!r}"


def _without_owner(item: Item, untrusted: bool) -> tuple[Item, int]:
    """Remove an untrusted owner, because an archive must not put words into the feeds of a person."""
    return ({name: value for name, value in item.items() if name != "owner"} if untrusted else item), 0


def _without_claims(item: Item, untrusted: bool) -> tuple[Item, int]:
    """Empty an untrusted message that may speak as the system. It stays in its place: messages are numbered."""
    if not untrusted or speaks_for_itself(checked_mapping("message", DOCUMENT.decode(item["message"]))):
        return item, 0
    return {**item, "message": {}}, 1


def _without_what_copies_lack(item: Item) -> str:
    """A copy may have messages that are dropped elsewhere, and has no newer message while it is unfinished."""
    return as_sorted_json({name: value for name, value in item.items() if name not in ("dropped", "updated_at")})


MESSAGE = Kind(
    name="feed-message",
    version=1,
    since="firefly-memory 0.2",
    plural="feed_messages",
    noun="messages",
    read=messages_of,
    selected_by="location",
    describe=lambda item: f"message {item['number']} of {name_of(item)}",
    from_archive=_without_claims,
)

FEED = Kind(
    name="feed",
    version=1,
    since="firefly-memory 0.2",
    plural="feeds",
    noun="feeds",
    read=feeds_of,
    selected_by="location",
    describe=name_of,
    from_archive=_without_owner,
    canonical=_without_what_copies_lack,
    within=(MESSAGE,),
)

KINDS = (FEED,)


class FeedWriter:
    """Writes feeds, each followed by its messages. A message that is there already must be the same."""

    def __init__(self, view: StoreView, writing: Writing) -> None:
        self._log = view.log(FEED_LOG)
        self._form = MessageForm(self._log)
        self._source = None if writing.source is None else writing.source.log(FEED_LOG)
        self._item: Item = {"location": None}
        self._feed: Feed | None = None
        self._next = self._newest = 0
        """The number of the next message to come, and of the newest one that the target has."""
        self._there = deque[StoredMessage]()
        self._waiting: list[NewMessage] = []
        self._characters = 0

    async def take(self, kind: str, item: Item, *, there: bool = False) -> None:
        await (self._begin(item) if kind == FEED.name else self._add(item, there))

    async def _begin(self, item: Item) -> None:
        await self.flush()
        self._item, self._feed = item, None
        feed = _feed_from_json(item)
        found = await self._log.feed(feed.location)
        if found is None or await self._gives_way(found, feed):
            if not await self._log.begin(feed):
                raise self._changed()
            found = feed
        self._there.clear()
        self._feed, self._next, self._newest = feed, feed.dropped + 1, found.newest

    async def _gives_way(self, found: Feed, feed: Feed) -> bool:
        """Whether the feed of the target is deleted, because messages cannot go on after its newest one, and nothing is
        lost."""
        of_the_same_origin = (found.owner, _moment(self._log, found, "created_at")) == (feed.owner, feed.created_at)
        if of_the_same_origin and found.dropped <= feed.dropped <= found.newest:
            return False
        if not of_the_same_origin or (found.messages and not await self._source_has_all(found)):
            raise self._another(name_of(self._item))
        if await self._log.delete(found.location, found.newest) is None:
            raise self._changed()
        return True

    async def _source_has_all(self, found: Feed) -> bool:
        """Whether the source has every message of the target's feed."""
        if self._source is None:
            return False
        after = found.dropped
        while theirs := await self._log.after(found.location, after, _PAGE):
            mine = await self._source.after(found.location, after, len(theirs))
            if self._as_texts(self._log, theirs) != self._as_texts(self._source, mine):
                return False
            after = theirs[-1].number
        return True

    def _as_texts(self, log: FeedLog, messages: Any) -> list[str]:
        location, form = self._item["location"], MessageForm(log)
        name = stored_text(location)
        return [as_sorted_json(_message_as_json(location, form.item(name, each))) for each in messages]

    async def _add(self, item: Item, there: bool) -> None:
        if self._feed is None or item["location"] != self._item["location"]:
            raise ValueError("it is of another feed than the lines before")
        number, message, created_at = _message_from_json(item)
        if number != self._next:
            raise ValueError(f"it comes where message {self._next} should be")
        self._next += 1
        if number <= self._newest:
            given = FeedItem(number, message, created_at)
            if not there and not await self._is_there(_message_as_json(item["location"], given)):
                raise self._another(MESSAGE.describe(item))
            return
        if there:  # as it was read: it has been deleted since
            raise self._changed()
        new = self._form.new(message)._replace(created_at=created_at)
        self._waiting.append(new)
        self._characters += new.size
        if len(self._waiting) >= _PAGE or self._characters >= _MOST_CHARACTERS:
            await self.flush()

    async def _is_there(self, item: Item) -> bool:
        """Whether the target has the same message with this number."""
        number = item["number"]
        while self._there and self._there[0].number < number:
            self._there.popleft()
        if not self._there:
            self._there.extend(await self._log.after(stored_text(item["location"]), number - 1, _PAGE))
        found = self._there.popleft() if self._there else None
        return found is not None and self._as_texts(self._log, [found]) == [as_sorted_json(item)]

    async def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._characters = 0
        if waiting:
            assert self._feed is not None
            last = await self._log.append(self._feed.location, waiting, self._feed.owner)
            self._newest += len(waiting)
            if last != self._newest:
                raise self._changed()

    async def finish(self) -> None:
        await self.flush()

    async def abandon(self) -> None:
        """Keep the written messages: a repeated import continues after them."""
        self._waiting = []

    def _another(self, name: str) -> ConflictError:
        return ConflictError(f"{name} is another one in the target; delete one of the two feeds")

    def _changed(self) -> ConflictError:
        return ConflictError(f"{name_of(self._item)} was changed in the target meanwhile; start again")


def _moment(log: FeedLog, feed: Feed, name: str) -> Any:
    try:
        return log.read_instant(getattr(feed, name))
    except DAMAGE as exc:
        raise damaged("reading a feed", f"feed {original_name(feed.location)!r}", exc) from exc


def _feed_as_json(log: FeedLog, feed: Feed) -> Item:
    return {
        "location": original_name(feed.location),
        "created_at": _moment(log, feed, "created_at").isoformat(),
        "updated_at": _moment(log, feed, "updated_at").isoformat(),
        **({"dropped": feed.dropped} if feed.dropped else {}),
        **({} if feed.owner is None else {"owner": original_or_none(feed.owner)}),
    }


def _feed_from_json(item: Item) -> Feed:
    owner, dropped = item.get("owner"), checked_whole_number("dropped", item.get("dropped", 0))
    if dropped > _MOST_DROPPED:
        raise ValueError("it has dropped more messages than a feed can have")
    return Feed(
        location=stored_name("location", item["location"]),
        newest=dropped,
        dropped=dropped,
        owner=None if owner is None else stored_name("owner", owner),
        created_at=instant_of(item["created_at"]),
        updated_at=instant_of(item["updated_at"]),
    )


def _message_as_json(location: str, item: FeedItem) -> Item:
    return {
        "location": location,
        "number": item.number,
        "message": DOCUMENT.encode(item.message, "message"),
        "created_at": item.created_at.isoformat(),
    }


def _message_from_json(item: Item) -> tuple[int, dict[str, Any], Any]:
    number = checked_whole_number("number", item["number"], 1)
    message = checked_mapping("message", DOCUMENT.decode(item["message"]))
    return number, message, instant_of(item["created_at"])

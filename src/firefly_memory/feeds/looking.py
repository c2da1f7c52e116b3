"""Feeds and their messages, as people look at them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.errors import NotSupportedError
from firefly_memory.feeds.items import FeedItem
from firefly_memory.feeds.log import FEED_LOG, MOST_MESSAGES, Feed
from firefly_memory.feeds.message_form import MessageForm
from firefly_memory.identifiers import original_name, original_or_none, stored_name, stored_text
from firefly_memory.looking import Field, Placed, Query, Resource, Row, RowId, Size, Type, Where
from firefly_memory.protocols import StoreView

_DIGITS = len(str(MOST_MESSAGES))

_KEPT = "a message goes with its feed, whose messages are numbered without gaps; delete the feed, or prune the store"


class FeedReader:
    """Feeds by their locations, in every store that keeps them."""

    def __init__(self, view: StoreView, direct: None) -> None:
        self._log = view.log(FEED_LOG)

    async def page(self, query: Query) -> Sequence[Placed]:
        after = "" if query.after is None else stored_text(query.after[0])
        if "owner" in query.where:
            feeds = await self._log.of_owner(stored_name("owner", query.where["owner"]), query.limit, after)
        else:
            feeds = await self._log.page(query.limit, after)
        return [Placed((original_name(each.location),), self._row(each)) for each in feeds]

    async def get(self, row_id: RowId) -> Row | None:
        feed = await self._log.feed(stored_name("location", row_id[0]))
        return None if feed is None else self._row(feed)

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        names = [stored_name("location", row_id[0]) for row_id in dict.fromkeys(row_ids)]
        deleted = [await self._log.delete(each) for each in names]
        return sum(messages is not None for messages in deleted)

    async def size(self, _: Where) -> Size:
        return Size((await self._log.sizes()).feeds)

    def _row(self, feed: Feed) -> Row:
        location = original_name(feed.location)
        return {
            "location": location,
            "owner": original_or_none(feed.owner),
            "messages": feed.messages,
            "newest": feed.newest,
            "created_at": self._moment(location, feed.created_at).isoformat(),
            "updated_at": self._moment(location, feed.updated_at).isoformat(),
        }

    def _moment(self, location: str, stored: Any) -> datetime:
        try:
            return self._log.read_instant(stored)
        except DAMAGE as exc:
            raise damaged("list", f"feed {location!r}", exc) from exc


class MessageReader:
    """The messages of a feed, in order."""

    def __init__(self, view: StoreView, direct: None) -> None:
        self._log = view.log(FEED_LOG)
        self._form = MessageForm(self._log)

    async def page(self, query: Query) -> Sequence[Placed]:
        number = 0 if query.after is None else min(max(query.after[0], 0), MOST_MESSAGES)
        items = await self._items(query.where["location"], number, query.limit)
        return [Placed((each.number,), _row(query.where["location"], each)) for each in items]

    async def get(self, row_id: RowId) -> Row | None:
        location, digits = row_id
        if not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS:
            return None
        number = int(digits)
        found = await self._items(location, number - 1, 1) if 0 < number <= MOST_MESSAGES else []
        return _row(location, found[0]) if found and found[0].number == number else None

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        raise NotSupportedError(_KEPT)

    async def size(self, where: Where) -> Size:
        if "location" not in where:
            return Size((await self._log.sizes()).messages)
        feed = await self._log.feed(stored_name("location", where["location"]))
        return Size(0 if feed is None else feed.messages)

    async def _items(self, location: str, after: int, limit: int) -> Sequence[FeedItem]:
        name = stored_name("location", location)
        return [self._form.item(name, each) for each in await self._log.after(name, after, limit)]


def _row(location: str, item: FeedItem) -> Row:
    return {
        "location": location,
        "number": item.number,
        "type": _text_or_none(item.message.get("type")),
        "agent_key": _text_or_none(item.message.get("agent_key")),
        "message": item.message,
        "created_at": item.created_at.isoformat(),
    }


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


FEEDS = Resource(
    kind="feeds",
    title="feeds of agents, each with its messages",
    fields=(
        Field("location"),
        Field("owner"),
        Field("messages", Type.NUMBER),
        Field("newest", Type.NUMBER, in_table=False),
        Field("created_at", Type.INSTANT),
        Field("updated_at", Type.INSTANT),
    ),
    identity=("location",),
    orders={"location": (str,)},
    reader="firefly_memory.feeds.looking:FeedReader",
    indexed=(("owner",),),
)

MESSAGES = Resource(
    kind="feed-messages",
    title="messages of a feed",
    fields=(
        Field("location", in_table=False),
        Field("number", Type.NUMBER),
        Field("type"),
        Field("agent_key"),
        Field("message", Type.JSON),
        Field("created_at", Type.INSTANT),
    ),
    identity=("location", "number"),
    orders={"number": (int,)},
    reader="firefly_memory.feeds.looking:MessageReader",
    indexed=(("location",),),
    counted=((), ("location",)),
    needs=("location",),
    why_kept=_KEPT,
)

RESOURCES = (FEEDS, MESSAGES)

"""Reads of one feed, in one round trip if this process has seen the feed before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pymongo.read_concern import ReadConcern

from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.feeds.log import Feed
from firefly_memory.feeds.mongodb import documents, queries
from firefly_memory.feeds.mongodb.documents import FEEDS, Tail
from firefly_memory.feeds.mongodb.queries import Pipeline

_MOST_TAILS = 10_000
_SNAPSHOT = ReadConcern("snapshot")

Query = Callable[[Tail], Pipeline]


class Tails:
    """Where feeds ended when they were last seen, by location. What goes by an old one finds that out."""

    def __init__(self) -> None:
        self._tails: dict[str, Tail] = {}

    def get(self, location: str) -> Tail | None:
        return self._tails.get(location)

    def remember(self, location: str, tail: Tail) -> None:
        if len(self._tails) >= _MOST_TAILS:
            self._tails = {}
        self._tails[location] = tail

    def forget(self, location: str) -> None:
        self._tails.pop(location, None)


async def find_head(connection: Connection, location: str) -> Document | None:
    head: Document | None = await connection.result_of(connection[FEEDS].find_one(documents.itself(location)))
    return head


async def read(
    connection: Connection,
    tails: Tails,
    location: str,
    query: Query,
    *,
    index: list[tuple[str, int]],
    at_one_moment: bool = False,
) -> tuple[Document | None, list[Document]]:
    """The head of a feed, and the messages that ``query`` finds, if asked for as they were ``at_one_moment``."""
    collection: Any = connection[FEEDS]
    if at_one_moment:
        collection = collection.with_options(read_concern=_SNAPSHOT)
    tail = tails.get(location)
    if tail is None or tail.life is None:
        first = await find_head(connection, location)
        if first is None:
            return None, []
        tail = documents.tail(first, None)
    while True:
        pipeline = [*query(tail), queries.head(location)]
        finding = collection.aggregate(pipeline, batchSize=IN_ONE_BATCH, hint=dict(index), allowDiskUse=True)
        found = await connection.all_of(finding)
        head = next((each for each in reversed(found) if "number" not in each), None)
        if head is None:
            tails.forget(location)
            return None, []
        now = documents.tail(head, None)
        if (now.life, now.dropped) == (tail.life, tail.dropped):
            messages = [each for each in found if "number" in each]
            number = max((each["number"] for each in messages), default=0)
            tails.remember(location, now._replace(newest=max(tail.newest, number)))
            return head, messages
        tail = now


async def read_feed(connection: Connection, tails: Tails, location: str) -> tuple[Document | None, Feed | None]:
    """The head of a feed, and what it and its newest message say; the head alone of a feed that is not there yet."""
    head, newest = await read(
        connection,
        tails,
        location,
        lambda tail: queries.newest_of_all(location, tail),
        index=documents.BY_NUMBER,
    )
    if head is None:
        return None, None
    message = newest[0] if newest else None
    tails.remember(location, documents.tail(head, message))
    return head, documents.feed(head, message)

"""Feeds in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from firefly_memory.codec import TEXT, Form
from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.errors import translated, written
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.entries.record import as_it_is
from firefly_memory.feeds.log import MOST_MESSAGES, Feed, NewMessage, Sizes, StoredMessage, Which, identities_of
from firefly_memory.feeds.mongodb import documents, queries
from firefly_memory.feeds.mongodb.appending import OPERATION, Appender
from firefly_memory.feeds.mongodb.deletion import delete_feed, drop_messages
from firefly_memory.feeds.mongodb.documents import BY_KIND, BY_NUMBER, FEEDS, OF_FEEDS, OF_OWNER
from firefly_memory.feeds.mongodb.listening import listening
from firefly_memory.feeds.mongodb.making import begin_feed
from firefly_memory.feeds.mongodb.reading import Tails, read, read_feed
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.mongodb.gates import gate_of


class MongoFeedLog:
    """A :class:`~firefly_memory.feeds.log.FeedLog` on clients of one mode."""

    form: Form = TEXT
    read_instant = staticmethod(as_it_is)

    def __init__(self, access: MongoAccess) -> None:
        self._access = access
        self._database = access.database
        self._tails = Tails()
        appends = Grouping(
            key=lambda _, messages, *__: messages[0].append_id,
            size=lambda _, messages, *__: sum(each.size for each in messages),
            several=self._append_group,
            after_cancellation=self._append,  # it knows what was appended already
            after_lost_reply=self._append,
            may_join=lambda _, messages, *__: len(messages) == 1,
            target=lambda location, _, owner, *__: (location, owner),
            overdue=1.0,  # two writers to a feed are in each other's way
        )
        self.append = access.grouped(self._append, appends, retryable=False)
        self.listening = partial(listening, access)

    @property
    def _in_transaction(self) -> InTransaction | None:
        return self._access.in_transaction if self._database.has_transactions else None

    async def _append(
        self, location: str, messages: Sequence[NewMessage], owner: str | None, notify: bool = False
    ) -> int | None:
        if len(messages) == 1:
            (number,) = await self.append_each(location, messages, owner)
            return number
        with written(OPERATION, self._database.db_name, "message", retryable=False) as writing:
            connection = await self._access.connected(OPERATION)
            tries = self._tries(OPERATION, location)
            appender = Appender(connection, self._tails, tries, location, owner, writing)
            return await appender.append_together(messages, self._in_transaction)

    async def _append_group(self, appends: Sequence[tuple[str, Sequence[NewMessage], str | None]]) -> list[int | None]:
        location, _, owner, *_ = appends[0]
        return await self.append_each(location, [message for _, (message,), *_ in appends], owner)

    async def append_each(
        self, location: str, messages: Sequence[NewMessage], owner: str | None, notify: bool = False
    ) -> list[int | None]:
        """When it raises, some may have been appended."""
        with written(OPERATION, self._database.db_name, "message", retryable=False) as writing:
            connection = await self._access.connected(OPERATION)
            tries = self._tries(OPERATION, location)
            return await Appender(connection, self._tails, tries, location, owner, writing).append_each(messages)

    async def begin(self, feed: Feed) -> bool:
        with written("begin_feed", self._database.db_name):
            connection = await self._access.connected("begin_feed")
            identities = identities_of(feed.location, feed.owner)
            gate = await gate_of(connection, OF_FEEDS, "begin_feed", identities)
            return await begin_feed(connection, self._tails, gate, self._tries("begin_feed", feed.location), feed)

    async def newest(
        self, location: str, which: Which, agent_keys: Sequence[str], limit: int | None
    ) -> Sequence[StoredMessage]:
        with translated("read_messages", self._database.db_name):
            connection = await self._access.connected("read_messages")
            # Two ranges are not read at one moment: without a snapshot, the later one may have more.
            is_merged, most = len(agent_keys) > 1, MOST_MESSAGES
            if is_merged and not self._database.has_transactions:
                _, feed = await read_feed(connection, self._tails, location)
                most = 0 if feed is None else feed.newest
                is_merged = False
            query = partial(_newest, location, which, agent_keys, limit, most)
            _, found = await read(
                connection, self._tails, location, query, index=BY_KIND[which], at_one_moment=is_merged
            )
            return _in_order(found)

    async def after(self, location: str, number: int, limit: int | None) -> Sequence[StoredMessage]:
        with translated("read_messages", self._database.db_name):
            connection = await self._access.connected("read_messages")
            _, found = await read(
                connection,
                self._tails,
                location,
                lambda tail: queries.after(location, tail, number, limit),
                index=BY_NUMBER,
            )
            return _in_order(found)

    async def feed(self, location: str) -> Feed | None:
        with translated("read_feed", self._database.db_name):
            _, feed = await read_feed(await self._access.connected("read_feed"), self._tails, location)
            return feed

    async def drop(self, location: str, number: int) -> int:
        with written("drop_messages", self._database.db_name) as writing:
            connection = await self._access.connected("drop_messages")
            return await drop_messages(connection, self._tails, location, number, self._in_transaction, writing)

    async def first_since(self, location: str, before: datetime) -> int | None:
        with translated("read_messages", self._database.db_name):
            connection = await self._access.connected("read_messages")
            _, found = await read(
                connection,
                self._tails,
                location,
                lambda tail: queries.since(location, tail, before),
                index=BY_NUMBER,
            )
            return int(found[0]["number"]) if found else None

    async def delete(self, location: str, newest: int | None = None) -> int | None:
        with written("delete_feed", self._database.db_name) as writing:
            connection = await self._access.connected("delete_feed")
            tries = self._tries("delete_feed", location)
            deleting = delete_feed(connection, self._tails, tries, location, newest, self._in_transaction, writing)
            return await deleting

    async def page(self, limit: int, after: str) -> Sequence[Feed]:
        return await self._page({}, limit, after, [("_id", 1)])

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[Feed]:
        return await self._page({"owner": owner}, limit, after, OF_OWNER)

    async def sizes(self) -> Sizes:
        with translated("count", self._database.db_name):
            connection = await self._access.connected("count")
            found = await connection.all_of(connection[FEEDS].aggregate(queries.sizes(), hint={"_id": 1}))
            return Sizes(int(found[0]["feeds"]), int(found[0]["messages"])) if found else Sizes(0, 0)

    async def _page(self, wanted: Document, limit: int, after: str, index: list[tuple[str, int]]) -> Sequence[Feed]:
        """The first feeds after a location. What somebody has only begun is left out, and others follow."""
        feeds: list[Feed] = []
        with translated("read_feeds", self._database.db_name):
            connection = await self._access.connected("read_feeds")
            while len(feeds) < limit:
                pipeline, missing = queries.page(wanted, after, limit - len(feeds)), limit - len(feeds)
                finding = connection[FEEDS].aggregate(pipeline, batchSize=IN_ONE_BATCH, hint=dict(index))
                found = await connection.all_of(finding)
                there = (documents.feed(each, each.get("newest")) for each in found)
                feeds += [each for each in there if each is not None]
                if len(found) < missing:
                    break
                after = found[-1]["_id"]
        return feeds

    def _tries(self, operation: str, location: str) -> Tries:
        async def check(connection: Connection) -> None:
            there = connection[FEEDS].find_one({"_id": location}, {"location": 1})
            documents.check_findable(await connection.result_of(there))

        return Tries(operation, f"feed {original_name(location)!r}", self._database.timeout, check)


def _newest(
    location: str, which: Which, agent_keys: Sequence[str], limit: int | None, most: int, tail: documents.Tail
) -> queries.Pipeline:
    return queries.newest(location, tail, which, agent_keys, limit, most)


def _in_order(found: Sequence[Document]) -> list[StoredMessage]:
    messages = [documents.message(each) for each in found]
    return sorted(messages, key=lambda message: message.number)

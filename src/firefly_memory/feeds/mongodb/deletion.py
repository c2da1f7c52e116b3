"""The deletion of a feed's oldest messages, and that of a feed.

Either is done with one change of the head, which hides the messages. Where there are transactions, the messages go in
the same one, up to ``MOST_AT_ONCE`` of them. Otherwise they go afterwards. Those that are left if the process dies are
seen by nobody, and go with the next call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import Writing, despite_a_loss
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.feeds.mongodb import documents
from firefly_memory.feeds.mongodb.documents import FEEDS
from firefly_memory.feeds.mongodb.reading import Tails, read_feed
from firefly_memory.tombstones.log import Identity

MOST_AT_ONCE = 5_000


async def drop_messages(
    connection: Connection,
    tails: Tails,
    location: str,
    number: int,
    in_transaction: InTransaction | None,
    writing: Writing,
) -> int:
    """Delete the messages up to a number; how many there were."""
    feeds = connection[FEEDS]
    head, feed = await read_feed(connection, tails, location)
    if head is None or feed is None or min(number, feed.newest) <= feed.dropped:
        return 0
    until = min(number, feed.newest)
    wanted = {**documents.itself(location), "life": head["life"], "dropped": {"$lt": until}}
    of_life = documents.of_life(location, head["life"])

    async def drop(session: Any) -> int:
        hiding = feeds.find_one_and_update(wanted, documents.dropping(until, feed.updated_at), session=session)
        before = await connection.result_of(hiding)
        if before is None:
            return 0
        dropped = documents.tail(before, None).dropped
        if session is not None:
            # Not those that are hidden: late writers take them back, and see by this that they were.
            these = {**of_life, "number": {"$gt": dropped, "$lte": until}}
            await connection.result_of(feeds.delete_many(these, session=session))
        return until - dropped

    if in_transaction is not None and until - feed.dropped <= MOST_AT_ONCE:
        return await in_transaction(connection, drop)
    count = await drop(None)
    writing.has_begun = True
    hidden = {**of_life, "number": {"$lte": until}}
    await despite_a_loss(partial(_delete_many, connection, hidden))
    return count


async def delete_feed(
    connection: Connection,
    tails: Tails,
    tries: Tries,
    location: str,
    newest: int | None,
    in_transaction: InTransaction | None,
    writing: Writing,
) -> int | None:
    """Delete a feed; how many messages it had. ``None`` if there is none, or if it has a newer message than number
    ``newest``, if one is given.

    First the feed is marked, then looked at: an append inserts its message before it takes the mark away. So either the
    message is there already, or the mark is gone when the feed is to be deleted.
    """
    while True:
        mark = documents.doomed()
        marking = connection[FEEDS].update_one(documents.itself(location), {"$set": mark})
        await connection.result_of(marking)
        head, feed = await read_feed(connection, tails, location)
        if head is None or feed is None or (newest is not None and feed.newest > newest):
            if head is None:
                await delete_earlier_lives(connection, location)
            return None
        tails.forget(location)
        life = documents.of_life(location, head["life"])
        # With others always writing, a deletion that waits for a moment without them would wait for ever.
        this = {**documents.itself(location), **life, **({} if newest is None else mark)}
        delete = partial(_delete, connection, this, life, feed.messages)
        if await (delete(None) if in_transaction is None else in_transaction(connection, delete)):
            writing.has_begun = True
            await delete_earlier_lives(connection, location)
            return feed.messages
        await tries.pause(connection)


async def _delete(connection: Connection, head: Document, life: Document, messages: int, session: Any) -> bool:
    """Delete the head of a feed, and in a transaction its messages, if they are not too many; whether it was there."""
    result = await connection.result_of(connection[FEEDS].delete_one(head, session=session))
    if not result.deleted_count:
        return False
    if session is not None and messages <= MOST_AT_ONCE:
        await connection.result_of(connection[FEEDS].delete_many(life, session=session))
    return True


async def delete_earlier_lives(connection: Connection, location: str) -> None:
    """Delete the messages that deletions and writes of this feed have left behind."""
    feeds = connection[FEEDS]
    lives = await connection.result_of(feeds.distinct("life", {"location": location}))
    if not lives:
        return
    # A life is named before it has messages: if it is not now, it never will be again.
    head = await connection.result_of(feeds.find_one(documents.itself(location), {"life": 1}))
    over = [each for each in lives if head is None or each != head.get("life")]
    if over:
        dead = {"location": location, "life": {"$in": over}, "number": {"$gt": 0}}
        await despite_a_loss(partial(_delete_many, connection, dead))


async def _delete_many(connection: Connection, these: Document) -> None:
    await connection.result_of(connection[FEEDS].delete_many(these))


async def delete_left_behind(connection: Connection, identities: Sequence[Identity]) -> None:
    """Delete what nobody sees of erased people and feeds: feeds that somebody has only begun to make, and messages
    without their feed."""
    feeds = connection[FEEDS]
    locations = [name for kind, name in identities if kind == "feed"]
    for owner in (name for kind, name in identities if kind == "owner"):
        begun = {"owner": owner, "_id": {"$gte": ""}, "settled": {"$exists": False}}
        locations += [each["_id"] for each in await connection.all_of(feeds.find(begun, {"_id": 1}))]
    for location in locations:
        head, feed = await read_feed(connection, Tails(), location)
        if head is not None and feed is None:
            await connection.result_of(feeds.delete_one(documents.unsettled(head)))
        await delete_earlier_lives(connection, location)

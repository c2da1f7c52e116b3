"""How feeds without messages come into being."""

from __future__ import annotations

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import duplicate_in
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.errors import ErasedError
from firefly_memory.feeds.log import Feed
from firefly_memory.feeds.mongodb import documents
from firefly_memory.feeds.mongodb.appending import delete_life
from firefly_memory.feeds.mongodb.reading import Tails, read_feed
from firefly_memory.tombstones.mongodb.gates import Gate, Write


async def begin_feed(connection: Connection, tails: Tails, gate: Gate, tries: Tries, feed: Feed) -> bool:
    """Make a feed without messages; ``False`` if it is there."""
    new = documents.new_feed(feed)
    try:
        while True:
            if await _is_done(gate, documents.inserting(new)):
                return True
            head, there = await read_feed(connection, tails, feed.location)
            if there is not None:
                return False
            # By an append whose message is still to come: its writer sees the new life, and looks.
            if head is not None and await _is_done(
                gate, UpdateOne(documents.unsettled(head), documents.replaced_by(new))
            ):
                return True
            await tries.pause(connection)
    except ErasedError:
        await delete_life(connection, feed.location, new["life"])
        raise


async def _is_done(gate: Gate, write: Write) -> bool:
    """Whether ``write`` has inserted or found its document."""
    try:
        result = await gate.write([write])
    except BulkWriteError as exc:
        if duplicate_in(exc) is None:
            raise
        return False
    return int(result.upserted_count + result.matched_count) == 1

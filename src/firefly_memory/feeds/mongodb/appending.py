"""How messages are appended, without holding anybody up.

A writer inserts its message with the next number. If another writer was faster, the unique index refuses that number,
and the writer takes the number after it. The same command settles the head of the feed afterwards. If the head is gone,
or in another life, or hides the number because others have appended and dropped messages meanwhile, the message is
taken back and appended again.

Several messages of one call go in a transaction. It changes the head, so that it meets a deletion at the same moment.
If its client dies before the commit, others who append to the feed wait until the server ends the transaction, for a
minute and a half. A single message needs no transaction.

On a standalone server several messages go in one command, in their order. If another writer's message comes between,
they are taken back and appended again: a reader may have seen some of them, and the numbers of these stay free.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError, PyMongoError

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import Writing, despite_a_loss, duplicate_in
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.errors import ConflictError, ErasedError
from firefly_memory.feeds.log import NewMessage, identities_of
from firefly_memory.feeds.mongodb import documents
from firefly_memory.feeds.mongodb.documents import FEEDS, NOWHERE, OF_FEEDS, Tail
from firefly_memory.feeds.mongodb.reading import Tails, read_feed
from firefly_memory.tombstones.mongodb.gates import Gate, gate_of

OPERATION = "append_messages"


class _ChangedError(Exception):
    """The feed is not as it was seen."""


class Appender:
    """Appends to one feed on one connection, in one call."""

    def __init__(
        self, connection: Connection, tails: Tails, tries: Tries, location: str, owner: str | None, writing: Writing
    ) -> None:
        self._connection = connection
        self._feeds = connection[FEEDS]
        self._tails = tails
        self._tries = tries
        self._location = location
        self._owner = owner
        self._writing = writing

    async def append_each(self, messages: Sequence[NewMessage]) -> list[int | None]:
        """Append each message on its own; their numbers. When it raises, some may have been appended."""
        appended: list[int | None] = []
        tail, is_fresh = self._tails.get(self._location), False
        while len(appended) < len(messages):
            rest = messages[len(appended) :]
            if tail is None or tail.refuses(self._owner):
                tail, is_fresh = await self._look(rest[0]), True
            if tail.refuses(self._owner):
                done, taken = [await self._last_number_of(rest[:1])], None
            else:
                done, taken = await self._append_at(rest, *self._begun(tail, rest[0]))
            if taken == "_id" and not done and is_fresh:  # at a stale tail, it may be taken in an earlier life only
                known = await self._last_number_of(rest[:1])
                done = [] if known is None else [known]
            if not done and is_fresh:  # somebody was faster, or is in the middle of something
                await self._tries.pause(self._connection)
            appended += done
            self._writing.has_begun = bool(appended)
            tail = None
        return appended

    async def append_together(self, messages: Sequence[NewMessage], in_transaction: InTransaction | None) -> int | None:
        """Append messages with nobody's between them; the number of the last one. ``in_transaction`` is ``None`` on a
        standalone server."""
        tail, is_fresh = self._tails.get(self._location), False
        while True:
            if tail is None or tail.refuses(self._owner):
                tail, is_fresh = await self._look(messages[0]), True
            if tail.refuses(self._owner):
                return await self._last_number_of(messages)
            if in_transaction is None:
                number, taken = await self._connection.finish(self._append_all_alone(messages, tail))
            else:
                number, taken = await self._append_all_at(messages, tail, in_transaction)
            if taken == "_id" and is_fresh:
                number = await self._last_number_of(messages)
            if number is not None:
                return number
            if is_fresh:
                await self._tries.pause(self._connection)
            tail = None

    async def _append_all_at(
        self, messages: Sequence[NewMessage], tail: Tail, in_transaction: InTransaction
    ) -> tuple[int | None, str | None]:
        """The number of the last message; ``None``, and what is taken, if another message has it."""
        tail, new = self._begun(tail, messages[0])
        gate = await self._gate(tail)
        inserts = [documents.inserting(each) for each in (*new, *self._documents(messages, tail))]
        wanted, settle = documents.settling(self._location, tail.life, tail.newest + 1)
        settle["$set"] |= documents.changed_by(messages[-1].append_id)

        async def append(session: Any) -> None:
            result = await gate.write_in_transaction([*inserts, UpdateOne(wanted, settle)], session)
            done = result.upserted_count + result.matched_count - bool(gate.tombstones)  # the fence counts as well
            if done != len(inserts) + 1:
                raise _ChangedError

        try:
            await in_transaction(self._connection, append)
        except _ChangedError:
            return None, None
        except BulkWriteError as exc:
            refusal = duplicate_in(exc)
            if refusal is None:
                raise
            return None, list(refusal["keyPattern"])[-1]
        return self._settled(tail, len(messages))[-1], None

    async def _append_all_alone(self, messages: Sequence[NewMessage], tail: Tail) -> tuple[int | None, str | None]:
        tail, new = self._begun(tail, messages[0])
        try:
            done, taken = await self._append_at(messages, tail, new)
        except Exception:
            with suppress(Exception):  # the first error is the one to raise
                await self._take_back(tail.life, messages)
            raise
        if len(done) == len(messages):
            return done[-1], None
        if done:  # somebody's message came between
            await self._take_back(tail.life, messages)
        return None, taken

    async def _look(self, message: NewMessage) -> Tail:
        """Where the next message goes. What others have begun for another owner, and not settled, gives way."""
        head, feed = await read_feed(self._connection, self._tails, self._location)
        tail = NOWHERE if head is None else self._tails.get(self._location) or NOWHERE
        if head is None or feed is not None or tail.owner == self._owner:
            return tail
        new = documents.new_head(self._location, self._owner, message.created_at)
        change = self._feeds.update_one(documents.unsettled(head), documents.replaced_by(new))
        gave_way = (await self._connection.result_of(change)).matched_count
        return documents.tail(new, None) if gave_way else tail

    def _begun(self, tail: Tail, message: NewMessage) -> tuple[Tail, list[Document]]:
        """The tail of the feed, and its head if there is none yet."""
        if tail.life is not None:
            return tail, []
        new = documents.new_head(self._location, self._owner, message.created_at)
        return documents.tail(new, None), [new]

    def _documents(self, messages: Sequence[NewMessage], tail: Tail) -> list[Document]:
        return documents.new_messages(self._location, messages, tail)

    async def _gate(self, tail: Tail) -> Gate:
        """What an append has to pass: nothing if it goes by the life of a feed that is there."""
        if tail.is_settled:
            return Gate(self._connection, OF_FEEDS, OPERATION, ())
        identities = identities_of(self._location, tail.owner or self._owner)
        return await gate_of(self._connection, OF_FEEDS, OPERATION, identities)

    async def _append_at(
        self, messages: Sequence[NewMessage], tail: Tail, new: Sequence[Document]
    ) -> tuple[list[int | None], str | None]:
        """The numbers of those messages that are in place now, and what the next one has that another message has
        already. Nothing of both if the feed, whose head may be ``new``, is not as ``tail`` says."""
        gate = await self._gate(tail)
        try:
            placed, taken, is_there = await self._insert(gate, new, messages, tail)
        except ErasedError:
            self._tails.forget(self._location)
            await delete_life(self._connection, self._location, tail.life)
            raise
        if placed and not is_there:
            is_dropped = not await self._take_back(tail.life, messages[:placed]) and await self._is_in(tail.life)
            if not is_dropped:
                return [], None
            return list(range(tail.newest + 1, tail.newest + placed + 1)), None
        return self._settled(tail, placed), taken

    async def _insert(
        self, gate: Gate, new: Sequence[Document], messages: Sequence[NewMessage], tail: Tail
    ) -> tuple[int, str | None, bool]:
        """How many messages are in place now; what the next one has that another message has already; and whether the
        feed is in the life of the messages, and does not hide them."""
        inserts = [documents.inserting(each) for each in (*new, *self._documents(messages, tail))]
        settling = documents.settling(self._location, tail.life, tail.newest + 1)
        try:
            # Settled last: if a tombstone came meanwhile, nobody appends to what is here until it is taken back.
            result = await gate.write(inserts, then=[UpdateOne(*settling)])
            return len(messages), None, result.matched_count == 1
        except BulkWriteError as exc:
            refusal = duplicate_in(exc)
            if refusal is None:
                await self._undo(new)
                raise
        placed, taken = refusal["index"] - len(new), list(refusal["keyPattern"])[-1]
        if placed < 0:
            return 0, None, False  # somebody else has made the feed
        is_there = placed > 0 and await self._settle(tail.life, tail.newest + 1)
        if is_there:
            await gate.check()
        return placed, taken, is_there

    async def _settle(self, life: Any, first: int) -> bool:
        settling = self._feeds.update_one(*documents.settling(self._location, life, first))
        return bool((await self._connection.result_of(settling)).matched_count)

    async def _undo(self, new: Sequence[Document]) -> None:
        """Take a feed away that was made for a message which was refused."""
        for head in new:
            with suppress(PyMongoError):  # the refusal is the error to raise
                await self._connection.result_of(self._feeds.delete_one(documents.unsettled(head)))

    def _settled(self, tail: Tail, placed: int) -> list[int | None]:
        """The numbers of messages that are in place."""
        if placed:
            self._tails.remember(self._location, tail._replace(newest=tail.newest + placed, is_settled=True))
        return list(range(tail.newest + 1, tail.newest + placed + 1))

    async def _take_back(self, life: Any, messages: Sequence[NewMessage]) -> int:
        """Delete messages that were put where nobody sees them; how many were still there."""
        self._tails.forget(self._location)
        ids = [documents.message_id(each.append_id) for each in messages]
        lost = {**documents.of_life(self._location, life), "_id": {"$in": ids}}
        return int((await self._connection.result_of(self._feeds.delete_many(lost))).deleted_count)

    async def _is_in(self, life: Any) -> bool:
        """Whether the feed is still in that life. Then a message that is gone was dropped with others."""
        wanted = {**documents.itself(self._location), "life": life}
        return await self._connection.result_of(self._feeds.find_one(wanted, {"_id": 1})) is not None

    async def _last_number_of(self, messages: Sequence[NewMessage]) -> int | None:
        """The number of the last message, if an earlier try of this call has appended all and its answer was lost."""
        ids = [documents.message_id(each.append_id) for each in messages]
        found = await self._connection.all_of(self._feeds.find({"_id": {"$in": ids}}).sort("number"))
        if not found:  # not readable yet, or taken back
            return None
        if found[0]["location"] != self._location:
            raise ConflictError(f"append_id {found[0]['_id']['message']!r} was used in another feed")
        life, number = found[0]["life"], found[-1]["number"]
        if len(found) == len(messages) and await self._settle(life, found[0]["number"]):
            return int(number)
        await self._take_back(life, messages)
        return None


async def delete_life(connection: Connection, location: str, life: Any) -> None:
    """Delete everything in a life of a feed."""
    everything = documents.of_life(location, life)
    await despite_a_loss(lambda: connection.result_of(connection[FEEDS].delete_many(everything)))

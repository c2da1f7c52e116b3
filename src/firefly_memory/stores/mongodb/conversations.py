"""Conversations in MongoDB, without transactions: every step changes one document.

A transaction would hold the conversation for as long as its client takes, and for a minute and a half if that client
is killed in the middle of it. Here whoever inserts the turn with the next number has appended it; the unique index
refuses everybody else, who then take the number after. One look after the insert tells whether the conversation was
deleted meanwhile: then the turn is taken back, and appended to the conversation that there is now.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pymongo.errors import BulkWriteError, DuplicateKeyError

from firefly_memory.codec import BSON, Form
from firefly_memory.errors import ConflictError, StoreTimeoutError
from firefly_memory.names import original_name
from firefly_memory.stores.conversations import Head, StoredTurn
from firefly_memory.stores.mongodb import conversation_documents as documents
from firefly_memory.stores.mongodb.clients import Connection, MongoDatabase
from firefly_memory.stores.mongodb.conversation_documents import Pipeline, Tail
from firefly_memory.stores.mongodb.documents import Document
from firefly_memory.stores.mongodb.errors import DUPLICATE, translated
from firefly_memory.stores.records import as_it_is

Connected = Callable[[str], Awaitable[Connection]]

_MOST_TAILS = 10_000
_LONGEST_PAUSE = 0.02  # seconds


class MongoConversationLog:
    """A :class:`~firefly_memory.stores.conversations.ConversationLog` on clients of one colour."""

    form: Form = BSON
    read_instant = staticmethod(as_it_is)
    namespaces = None

    def __init__(self, database: MongoDatabase, connected: Connected) -> None:
        self._database = database
        self._connected = connected
        # Where conversations ended when they were last seen; an append that goes by an old one is refused and looks.
        self._tails: dict[str, Tail] = {}

    async def create(self, conversation_id: str, now: datetime) -> bool:
        with translated("create_conversation", self._database.place):
            connection = await self._connected("create_conversation")
            tries = _Tries("create_conversation", conversation_id, self._database.timeout)
            explicit = {**documents.new_conversation(conversation_id, now), "explicit": True}
            while True:
                with suppress(DuplicateKeyError):
                    await connection.settle(connection.conversations.insert_one(explicit))
                    self._remember(conversation_id, documents.tail(explicit))
                    return True
                there = await self._conversation(connection, conversation_id)
                if there is not None:
                    if documents.head(there) is not None:
                        return False
                    # An append made it, whose turn is still to come or never will.
                    waiting = {"life": there["life"], "explicit": {"$exists": False}}
                    change = {"$set": {**documents.made_at(conversation_id, now), "explicit": True}}
                    if await self._update(connection, conversation_id, waiting, change):
                        return True
                await tries.pause(connection)

    async def append(self, conversation_id: str, draft: StoredTurn, expected: int | None) -> Head | None:
        (head,) = await self.append_all(conversation_id, [draft], expected)
        return head

    async def append_all(
        self, conversation_id: str, drafts: Sequence[StoredTurn], expected: int | None
    ) -> list[Head | None]:
        """:meth:`append` for each of them. When it raises, some of several may have been appended."""
        with translated("append_turn", self._database.place, "turn"):
            connection = await self._connected("append_turn")
            tries = _Tries("append_turn", conversation_id, self._database.timeout)
            appended: list[Head | None] = []
            tail, is_fresh = self._tails.get(conversation_id), False
            while len(appended) < len(drafts):
                rest = drafts[len(appended) :]
                if tail is None or expected not in (None, tail.turns):
                    tail, is_fresh = await self._look(connection, conversation_id, rest[0], expected, tries), True
                    if tail is None:  # perhaps because this very draft is the newest turn
                        return await self._known(connection, conversation_id, rest[0], "_id") or [None]
                inserted, taken = await self._insert(connection, conversation_id, rest, tail)
                heads: list[Head | None] = []
                if inserted:
                    heads = await self._confirmed(connection, conversation_id, rest[:inserted], tail)
                elif taken != "turn_id" and is_fresh:  # at a stale tail, it may be taken in an earlier life only
                    heads = await self._known(connection, conversation_id, rest[0], taken)
                if is_fresh and not heads:  # somebody was faster, or is in the middle of something
                    await tries.pause(connection)
                appended += heads
                tail = None
            return appended

    async def head(self, conversation_id: str) -> Head | None:
        with translated("conversation_head", self._database.place):
            connection = await self._connected("conversation_head")
            there = await self._conversation(connection, conversation_id)
            return None if there is None else documents.head(there)

    async def window(self, conversation_id: str, budget: int) -> tuple[Head, Sequence[StoredTurn]] | None:
        with translated("conversation_window", self._database.place):
            connection = await self._connected("conversation_window")
            found = await self._found(connection, documents.window(conversation_id, budget))
            head = documents.head(found[-1]) if found else None
            if head is None:
                return None
            self._remember(conversation_id, documents.tail(found[-1]))
            return head, [documents.turn(document["turn"]) for document in found if "turn" in document]

    async def turns(self, conversation_id: str, after: int, limit: int | None) -> Sequence[StoredTurn]:
        with translated("turns_after", self._database.place):
            connection = await self._connected("turns_after")
            if limit == 0:
                return []
            found = await self._found(connection, documents.turns(conversation_id, after, limit))
            return [documents.turn(document) for document in found]

    async def find(self, conversation_id: str, idempotency_key: str) -> StoredTurn | None:
        with translated("find_turn", self._database.place):
            connection = await self._connected("find_turn")
            found = await self._found(connection, documents.keyed(conversation_id, idempotency_key))
            return documents.turn(found[0]) if found else None

    async def claim(self, conversation_id: str, claim: str, evicted: int, now: datetime, until: datetime) -> bool:
        with translated("claim_summary", self._database.place):
            connection = await self._connected("claim_summary")
            free = {"evicted_turns": evicted, **documents.unclaimed(now, until)}
            return await self._update(connection, conversation_id, free, {"$set": documents.claimed(claim, until)})

    async def evict(self, conversation_id: str, claim: str, summary: str, turns: int, tokens: int) -> bool:
        evicted = {"summary": summary, "evicted_turns": turns, "evicted_tokens": tokens}
        with translated("evict_turns", self._database.place, "summary"):
            return await self._end_claim("evict_turns", conversation_id, claim, evicted)

    async def release(self, conversation_id: str, claim: str) -> None:
        with translated("release_claim", self._database.place):
            await self._end_claim("release_claim", conversation_id, claim, {})

    async def fork(self, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
        with translated("fork_conversation", self._database.place):
            connection = await self._connected("fork_conversation")
            there = await self._conversation(connection, conversation_id)
            source = None if there is None else documents.head(there)
            if there is None or source is None:
                return False
            count = source.turns if turns is None else min(turns, source.turns)
            fork = documents.fork_of(there, source, fork_id, count, now)
            return await connection.finish(self._copied(connection, there, fork, count))

    async def _copied(self, connection: Connection, there: Document, fork: Document, count: int) -> bool:
        life = {"conversation_id": fork["_id"], "life": fork["life"]}
        # The turns first, in a life that nobody knows of yet: the other document makes all of them appear at once.
        try:
            await connection.all_of(connection.turns.aggregate(documents.copied_turns(there, fork, count)))
            copied = await connection.settle(connection.turns.count_documents(life))
        except Exception:
            with suppress(Exception):  # the first error is the one to raise
                await connection.settle(connection.turns.delete_many(life))
            raise
        if copied == count and await self._put_in_place(connection, fork):
            return True
        await connection.settle(connection.turns.delete_many(life))
        return False

    async def _put_in_place(self, connection: Connection, new: Document) -> bool:
        """``False`` if the conversation is there already."""
        with suppress(DuplicateKeyError):
            await connection.settle(connection.conversations.insert_one(new))
            return True
        there = await self._conversation(connection, new["_id"])
        if there is None or documents.head(there) is not None:
            return False
        # An append made it, whose turn is still to come, and will then find that the conversation has another life.
        waiting = {"life": there["life"], "explicit": {"$exists": False}}
        change = {"$set": {name: value for name, value in new.items() if name != "_id"}}
        return await self._update(connection, new["_id"], waiting, change)

    async def delete(self, conversation_id: str) -> None:
        with translated("delete_conversation", self._database.place):
            connection = await self._connected("delete_conversation")
            # Gone with this; the rest gives back the room, also what an earlier deletion or append has left behind.
            await connection.settle(connection.conversations.delete_one({"_id": conversation_id}))
            self._tails.pop(conversation_id, None)
            lives = await connection.settle(connection.turns.distinct("life", {"conversation_id": conversation_id}))
            # A life has its conversation before it has turns: if it is not this one now, it never will be again.
            there = await connection.settle(connection.conversations.find_one({"_id": conversation_id}))
            over = [life for life in lives if there is None or life != there["life"]]
            if over:
                of_them = {"conversation_id": conversation_id, "life": {"$in": over}}
                await connection.settle(connection.turns.delete_many(of_them))

    async def page(self, limit: int, after: tuple[datetime, str] | None) -> Sequence[Head]:
        with translated("conversation_page", self._database.place):
            connection = await self._connected("conversation_page")
            found = await self._found(connection, documents.page(limit, after), hint=dict(documents.IN_ORDER))
            return [head for document in found if (head := documents.head(document)) is not None]

    async def _look(
        self, connection: Connection, conversation_id: str, draft: StoredTurn, expected: int | None, tries: _Tries
    ) -> Tail | None:
        """The end of the conversation, which is made if need be; ``None`` if it is not the ``expected`` one."""
        while True:
            there = await self._conversation(connection, conversation_id)
            if there is not None:
                tail = documents.tail(there)
                return tail if expected in (None, tail.turns) else None
            if expected:
                return None
            new = documents.new_conversation(conversation_id, draft.created_at)
            with suppress(DuplicateKeyError):
                await connection.settle(connection.conversations.insert_one(new))
                return documents.tail(new)
            await tries.pause(connection)

    async def _insert(
        self, connection: Connection, conversation_id: str, drafts: Sequence[StoredTurn], tail: Tail
    ) -> tuple[int, str | None]:
        """How many of ``drafts`` are in place now, and what the next one has that another turn has already."""
        turns = documents.new_turns(conversation_id, drafts, tail)
        try:
            if len(turns) == 1:
                await connection.settle(connection.turns.insert_one(turns[0]))
            else:
                await connection.settle(connection.turns.insert_many(turns))
        except DuplicateKeyError as exc:
            refusal = {"index": 0, **(exc.details or {})}
        except BulkWriteError as exc:
            refusal = {"code": None, **(exc.details.get("writeErrors") or [{}])[0]}
            if refusal["code"] != DUPLICATE or exc.details.get("writeConcernErrors"):
                raise
        else:
            return len(turns), None
        return refusal["index"], list(refusal["keyPattern"])[-1]

    async def _confirmed(
        self, connection: Connection, conversation_id: str, drafts: Sequence[StoredTurn], tail: Tail
    ) -> list[Head | None]:
        """The heads after turns that were put at ``tail``; none, and the turns are gone, if that is no longer there."""
        there = await connection.settle(connection.conversations.find_one({"_id": conversation_id}))
        if there is None or there["life"] != tail.life:
            self._tails.pop(conversation_id, None)
            ids = {"$in": [draft.append_id for draft in drafts]}
            lost = {"conversation_id": conversation_id, "life": tail.life, "_id": ids}
            await connection.settle(connection.turns.delete_many(lost))
            return []
        heads: list[Head | None] = []
        for draft in drafts:
            tail = Tail(tail.life, tail.turns + 1, tail.tokens + draft.tokens)
            heads.append(documents.head_at(tail, there, draft.created_at))
        self._remember(conversation_id, tail)
        return heads

    async def _known(
        self, connection: Connection, conversation_id: str, draft: StoredTurn, by: str | None
    ) -> list[Head | None]:
        """The result for a draft one of whose ids is known already; none if it has to be tried again."""
        if by == "idempotency_key":
            found = await self._found(connection, documents.keyed(conversation_id, draft.idempotency_key or ""))
        else:
            found = await connection.all_of(connection.turns.find({"_id": draft.append_id}))
        if not found:  # not readable yet, or taken back
            return []
        if found[0]["_id"] != draft.append_id:
            return [None]
        # An earlier try of this append went well, but the answer was lost.
        if found[0]["conversation_id"] != conversation_id:
            raise ConflictError(f"append_id {draft.append_id!r} was used in another conversation")
        turn = documents.turn(found[0])
        tail = Tail(found[0]["life"], turn.turn_id, found[0]["tokens_before"])
        return await self._confirmed(connection, conversation_id, [turn], tail)

    async def _conversation(self, connection: Connection, conversation_id: str) -> dict[str, Any] | None:
        found = await self._found(connection, documents.conversation(conversation_id))
        return found[0] if found else None

    async def _found(self, connection: Connection, pipeline: Pipeline, **options: Any) -> list[dict[str, Any]]:
        return await connection.all_of(connection.conversations.aggregate(pipeline, **options))

    async def _update(
        self, connection: Connection, conversation_id: str, condition: Document, change: Document
    ) -> bool:
        wanted = {"_id": conversation_id, **condition}
        result = await connection.settle(connection.conversations.update_one(wanted, change))
        return int(result.matched_count) == 1

    async def _end_claim(self, operation: str, conversation_id: str, claim: str, change: Document) -> bool:
        connection = await self._connected(operation)
        ended = {"$set": {**change, "claim": None, "claimed_until": None}}
        return await self._update(connection, conversation_id, {"claim": claim}, ended)

    def _remember(self, conversation_id: str, tail: Tail) -> None:
        if len(self._tails) >= _MOST_TAILS:
            self._tails = {}
        self._tails[conversation_id] = tail


class _Tries:
    """Pauses for writers who are in each other's way, until the time is up."""

    def __init__(self, operation: str, conversation_id: str, timeout: float) -> None:
        self._operation = operation
        self._conversation_id = conversation_id
        self._deadline = time.monotonic() + timeout
        self._longest = 0.001

    async def pause(self, connection: Connection) -> None:
        if time.monotonic() >= self._deadline:
            others = f"other writers of conversation {original_name(self._conversation_id)!r} were always faster"
            raise StoreTimeoutError(self._operation, others, retryable=True)
        await connection.pause(random.uniform(0, self._longest))  # noqa: S311 - not a secret
        self._longest = min(2 * self._longest, _LONGEST_PAUSE)

"""Conversations in MongoDB, without transactions.

A transaction would hold the conversation for as long as its client takes, and for a minute and a half if that client
is killed in the middle of it. Here whoever inserts the turn with the next number has appended it; the unique index
refuses everybody else, who then take the number after. The same command looks, after the insert, whether the
conversation was deleted meanwhile: then the turn is taken back, and appended to the conversation that there is now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pymongo.errors import BulkWriteError, PyMongoError

from firefly_memory.codec import BSON, Form
from firefly_memory.concurrency.group_commit import Grouping
from firefly_memory.conversations.log import Appended, Flush, Flushed, Head, Order, StoredTurn
from firefly_memory.conversations.mongodb import documents, pages, queries
from firefly_memory.conversations.mongodb.deletion import ConversationDeletion, delete_conversation, delete_parts_of
from firefly_memory.conversations.mongodb.documents import CONVERSATIONS, NOWHERE, Tail
from firefly_memory.conversations.mongodb.flushing import empty_dropped_turns, find_flush, flush_turns, restore_turns
from firefly_memory.conversations.mongodb.making import (
    Maker,
    delete_life,
    find_all,
    find_conversation,
    gate_of_new,
    update,
)
from firefly_memory.conversations.mongodb.tries import tries_of
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.clients import IN_ONE_BATCH, Connection
from firefly_memory.databases.mongodb.errors import duplicate_in, translated, written
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.databases.mongodb.tries import Tries
from firefly_memory.entries.record import as_it_is
from firefly_memory.errors import ConflictError, ErasedError, TurnsDroppedError
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.mongodb.gates import Gate

_MOST_TAILS = 10_000
_IDS = ("_id", "idempotency_key")  # of a turn, whatever its number


class MongoConversationLog:
    """A :class:`~firefly_memory.conversations.log.ConversationLog` on clients of one mode."""

    form: Form = BSON
    read_instant = staticmethod(as_it_is)

    def __init__(self, access: MongoAccess) -> None:
        self._database = access.database
        self._connected = access.connected
        self._in_transaction = access.in_transaction
        appends = Grouping(
            key=lambda _, draft, *__: draft.append_id,
            size=lambda _, draft, *__: draft.size,
            several=self._append_group,
            after_cancellation=self._append,  # it knows what was appended already
            after_lost_reply=self._append,
            may_join=lambda _, __, expected, owner=None: expected is owner is None,
            target=lambda conversation_id, *_: conversation_id,
            overdue=1.0,  # two writers to a conversation are in each other's way
        )
        self.append = access.grouped(self._append, appends, retryable=False)
        # Where conversations ended when they were last seen; an append that goes by an old one is refused and looks.
        self._tails: dict[str, Tail] = {}

    async def create(self, conversation_id: str, now: datetime, owner: str | None = None) -> bool:
        with written("create_conversation", self._database.db_name):
            connection = await self._connected("create_conversation")
            new = documents.settled(documents.new_conversation(conversation_id, now, owner))
            is_new = await (await self._maker("create_conversation", connection, conversation_id, owner)).create(new)
            if is_new:
                self._remember(conversation_id, documents.tail(new))
            return is_new

    async def _append(
        self, conversation_id: str, draft: StoredTurn, expected: int | None, owner: str | None = None
    ) -> Appended | None:
        (appended,) = await self.append_all(conversation_id, [draft], expected, owner)
        return appended

    async def _append_group(self, appends: Sequence[tuple[str, StoredTurn, None, None]]) -> list[Appended | None]:
        return await self.append_all(appends[0][0], [draft for _, draft, *_ in appends], None)

    async def append_all(
        self, conversation_id: str, drafts: Sequence[StoredTurn], expected: int | None, owner: str | None = None
    ) -> list[Appended | None]:
        """Append each of them. When it raises, some of several may have been appended."""
        with written("append_turn", self._database.db_name, "turn", retryable=False) as writing:
            connection = await self._connected("append_turn")
            tries = self._tries("append_turn", conversation_id)
            appended: list[Appended | None] = []
            tail, is_fresh = self._tails.get(conversation_id), False
            while len(appended) < len(drafts):
                rest = drafts[len(appended) :]
                if tail is None or expected not in (None, tail.turns) or tail.refuses(owner):
                    tail, is_fresh = await self._look(connection, conversation_id, rest[0], owner), True
                    if expected not in (None, tail.turns) or tail.refuses(owner):
                        # Perhaps because this very draft is the newest turn, or because it was erased.
                        known = await self._known(connection, conversation_id, rest[0], "_id")
                        if not known:
                            await (await self._gate(connection, conversation_id, tail, owner)).check()
                        return known or [None]
                done, taken = await self._append_at(connection, conversation_id, rest, tail, owner)
                if not done and taken in _IDS and is_fresh:  # at a stale tail, it may be taken in an earlier life only
                    done = await self._known(connection, conversation_id, rest[0], taken)
                if not done and is_fresh:  # somebody was faster, or is in the middle of something
                    await tries.pause(connection)
                appended += done
                writing.has_begun = bool(appended)
                tail = None
            return appended

    async def _look(self, connection: Connection, conversation_id: str, draft: StoredTurn, owner: str | None) -> Tail:
        """Where the next turn goes. What others have begun for another owner, and not settled, gives way."""
        there = await find_conversation(connection, conversation_id)
        if there is None:
            return NOWHERE
        tail = documents.tail(there)
        if tail.owner == owner or documents.head(there) is not None:
            return tail
        new = documents.new_conversation(conversation_id, draft.created_at, owner)
        unsettled, replaced = documents.unsettled(there), documents.replaced_by(new)
        gave_way = await update(connection, conversation_id, unsettled, replaced)
        return documents.tail(new) if gave_way else tail

    async def head(self, conversation_id: str) -> Head | None:
        with translated("conversation_head", self._database.db_name):
            connection = await self._connected("conversation_head")
            there = await find_conversation(connection, conversation_id)
            return self._seen(conversation_id, there)

    async def window(self, conversation_id: str, budget: int) -> tuple[Head, Sequence[StoredTurn]] | None:
        with translated("conversation_window", self._database.db_name):
            connection = await self._connected("conversation_window")
            found = await self._window_since(connection, conversation_id, budget)
            if found is None:
                found = await find_all(connection, queries.window(conversation_id, budget))
            head = self._seen(conversation_id, found[-1] if found else None)
            if head is None:
                return None
            return head, [documents.turn(document["turn"]) for document in found if "turn" in document]

    async def _window_since(self, connection: Connection, conversation_id: str, budget: int) -> list[Document] | None:
        tail = self._tails.get(conversation_id)
        if tail is None or not tail.turns:
            return None
        since = queries.since(tail, conversation_id, budget)
        recent = connection[CONVERSATIONS].find(since, batch_size=IN_ONE_BATCH)
        return queries.window_since(tail, await connection.all_of(recent), budget)

    async def turns(self, conversation_id: str, after: int, limit: int | None) -> Sequence[StoredTurn]:
        with translated("turns_after", self._database.db_name):
            connection = await self._connected("turns_after")
            if limit == 0:
                return []
            found = await find_all(connection, queries.turns(conversation_id, after, limit))
            return [documents.turn(document) for document in found]

    async def find(self, conversation_id: str, idempotency_key: str) -> StoredTurn | None:
        with translated("find_turn", self._database.db_name):
            connection = await self._connected("find_turn")
            found = await find_all(connection, queries.keyed(conversation_id, idempotency_key))
            return documents.turn(found[0]) if found else None

    async def claim(self, conversation_id: str, claim: str, evicted: int, now: datetime, until: datetime) -> bool:
        with written("claim_summary", self._database.db_name):
            connection = await self._connected("claim_summary")
            free = {"evicted_turns": evicted, **documents.unclaimed(now, until)}
            return await update(connection, conversation_id, free, {"$set": documents.claimed(claim, until)})

    async def flush(self, conversation_id: str, flush: Flush, after: Flushed) -> bool:
        with written("flush_turns", self._database.db_name, "summary", retryable=False):
            connection = await self._connected("flush_turns")
            self._tails.pop(conversation_id, None)  # of another life by now, perhaps
            return await connection.finish(flush_turns(connection, conversation_id, flush, after))

    async def find_flush(self, conversation_id: str, flush_id: str) -> Flush | None:
        with translated("find_flush", self._database.db_name):
            return await find_flush(await self._connected("find_flush"), conversation_id, flush_id)

    async def restore(self, conversation_id: str, newest: str, flush: Flush) -> bool:
        with written("restore_turns", self._database.db_name, retryable=False):
            connection = await self._connected("restore_turns")
            self._tails.pop(conversation_id, None)
            return await restore_turns(connection, conversation_id, newest, flush)

    async def release(self, conversation_id: str, claim: str) -> None:
        with written("release_claim", self._database.db_name):
            connection = await self._connected("release_claim")
            ended = {"$set": {"claim": None, "claimed_until": None}}
            await update(connection, conversation_id, {"claim": claim}, ended)

    async def fork(self, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
        with written("fork_conversation", self._database.db_name, retryable=False):
            connection = await self._connected("fork_conversation")
            there = await find_conversation(connection, conversation_id)
            source = None if there is None else documents.head(there)
            if there is None or source is None:
                return False
            if source.lacks_turns_for(turns):
                if await self.head(fork_id) is not None:
                    return False
                raise TurnsDroppedError(original_name(conversation_id), source.dropped_turns)
            count = source.turns if turns is None else min(turns, source.turns)
            newest = await find_all(connection, queries.turns(conversation_id, count - 2, 1)) if count else []
            fork = documents.fork_of(source, fork_id, count, now, documents.turn(newest[0]) if newest else None)
            maker = await self._maker("fork_conversation", connection, fork_id, source.owner)
            return await connection.finish(maker.copy(there, fork, count))

    async def _maker(self, operation: str, connection: Connection, conversation_id: str, owner: str | None) -> Maker:
        gate = await gate_of_new(connection, operation, conversation_id, owner)
        return Maker(connection, self._tries(operation, conversation_id), gate)

    async def delete(self, conversation_id: str, facts: str | None = None, seen: Head | None = None) -> bool:
        with written("delete_conversation", self._database.db_name) as writing:
            connection = await self._connected("delete_conversation")
            self._tails.pop(conversation_id, None)
            in_transaction = self._in_transaction if self._database.has_transactions else None
            if not await delete_conversation(connection, conversation_id, facts, seen, in_transaction):
                return False
            writing.has_begun = True
            await delete_parts_of(connection, conversation_id)
            return True

    async def delete_all(self, namespace: str | None) -> None:
        with written("clear_all", self._database.db_name):
            connection = await self._connected("clear_all")
            self._tails = {}
            deletion = ConversationDeletion(connection, namespace)
            is_done = self._database.has_transactions and await deletion.at_once(self._in_transaction)
        with written("clear_all", self._database.db_name, has_begun=True):
            await deletion.go_on(are_gone=bool(is_done))

    async def page(
        self, limit: int, after: tuple[datetime, str] | None, owner: str | None = None, order: Order = "created"
    ) -> Sequence[Head]:
        with translated("conversation_page", self._database.db_name):
            connection = await self._connected("conversation_page")
            return await pages.page(connection, limit, after, owner, order)

    async def _append_at(
        self, connection: Connection, conversation_id: str, drafts: Sequence[StoredTurn], tail: Tail, owner: str | None
    ) -> tuple[list[Appended | None], str | None]:
        """What those of ``drafts`` have come to that are in place now, and what the next one has that another turn has
        already. Nothing of both if the conversation is not as ``tail`` says."""
        new: list[Document] = []
        if tail.life is None:
            new = [documents.new_conversation(conversation_id, drafts[0].created_at, owner)]
            tail = documents.tail(new[0])
        life = tail.life
        assert life is not None
        gate = await self._gate(connection, conversation_id, tail, owner)
        turns = documents.new_turns(conversation_id, drafts, tail)
        try:
            placed, taken, is_there = await self._insert(connection, gate, new, turns, drafts)
        except ErasedError:
            self._tails.pop(conversation_id, None)
            await delete_life(connection, conversation_id, life)
            raise
        if placed and not is_there:
            await self._take_back(connection, conversation_id, life, drafts[:placed])
            return [], None
        return self._in_place(conversation_id, drafts[:placed], tail), taken

    async def _insert(
        self,
        connection: Connection,
        gate: Gate,
        new: Sequence[Document],
        turns: Sequence[Document],
        drafts: Sequence[StoredTurn],
    ) -> tuple[int, str | None, bool]:
        """How many turns are in place now, after a conversation that may be ``new``; what the next one has that another
        turn has already; and whether the conversation is in the life of the turns."""
        conversation_id, life = turns[0]["conversation_id"], turns[0]["life"]
        inserts = [documents.inserting(each) for each in (*new, *turns)]
        settle = documents.appended_now(conversation_id, life, drafts[-1].created_at)
        try:
            # Settled last: if a tombstone came meanwhile, nobody appends to what is here until it is taken back.
            result = await gate.write(inserts, then=[settle])
            return len(turns), None, result.matched_count == 1
        except BulkWriteError as exc:
            refusal = duplicate_in(exc)
            if refusal is None:
                await self._undo(connection, new)
                raise
        placed, taken = refusal["index"] - len(new), list(refusal["keyPattern"])[-1]
        if placed < 0:
            return 0, None, False  # somebody else has made the conversation
        newest = drafts[max(placed, 1) - 1].created_at
        is_there = placed > 0 and await self._settled(connection, conversation_id, life, newest) is not None
        if is_there:
            await gate.check()
        return placed, taken, is_there

    async def _gate(self, connection: Connection, conversation_id: str, tail: Tail, owner: str | None) -> Gate:
        """What an append has to pass: nothing if it goes by the life of a conversation that is there."""
        if tail.is_settled:
            return Gate(connection, documents.ALL, "append_turn", ())
        return await gate_of_new(connection, "append_turn", conversation_id, tail.owner or owner)

    async def _undo(self, connection: Connection, new: Sequence[Document]) -> None:
        """Take a conversation away that was made for a turn which was refused."""
        for conversation in new:
            wanted = {**documents.itself(conversation["_id"]), **documents.unsettled(conversation)}
            with suppress(PyMongoError):  # the refusal is the error to raise
                await connection.result_of(connection[CONVERSATIONS].delete_one(wanted))

    def _in_place(self, conversation_id: str, drafts: Iterable[StoredTurn], tail: Tail) -> list[Appended | None]:
        appended: list[Appended | None] = []
        for draft in drafts:
            tail = tail._replace(turns=tail.turns + 1, tokens=tail.tokens + draft.tokens, is_settled=True)
            appended.append(Appended(tail.turns, tail.tokens, tail.evicted_tokens, tail.evicted_turns))
        if appended:
            self._remember(conversation_id, tail)
        return appended

    async def _take_back(
        self, connection: Connection, conversation_id: str, life: Any, drafts: Iterable[StoredTurn]
    ) -> None:
        """Delete turns that were put into a life that is over."""
        self._tails.pop(conversation_id, None)
        ids = [documents.turn_key(draft.append_id) for draft in drafts]
        lost = {"conversation_id": conversation_id, "life": life, "_id": {"$in": ids}}
        await connection.result_of(connection[CONVERSATIONS].delete_many(lost))

    async def _known(
        self, connection: Connection, conversation_id: str, draft: StoredTurn, by: str | None
    ) -> list[Appended | None]:
        """The result for a draft one of whose ids is known already; none if it has to be tried again."""
        if by == "idempotency_key":
            found = await find_all(connection, queries.keyed(conversation_id, draft.idempotency_key or ""))
            if not found:
                await empty_dropped_turns(connection, conversation_id)  # one of them may have the key still
        else:
            key = documents.turn_key(draft.append_id)
            found = await connection.all_of(connection[CONVERSATIONS].find({"_id": key}))
        if not found:  # not readable yet, or taken back
            return []
        turn, life = documents.turn(found[0]), found[0]["life"]
        if turn.append_id != draft.append_id:
            return [None]
        # An earlier try of this append went well, but the answer was lost.
        if found[0]["conversation_id"] != conversation_id:
            raise ConflictError(f"append_id {draft.append_id!r} was used in another conversation")
        there = await self._settled(connection, conversation_id, life, turn.created_at)
        if there is None:
            await self._take_back(connection, conversation_id, life, [turn])
            return []
        tail = documents.tail(there)._replace(turns=turn.turn_id, tokens=found[0]["tokens_before"])
        return self._in_place(conversation_id, [turn], tail)

    async def _settled(
        self, connection: Connection, conversation_id: str, life: Any, moment: datetime
    ) -> Document | None:
        """The conversation's own document, if it is in that life: it is settled now."""
        settling = documents.known_to_be_settled(conversation_id, life, moment)
        there: Document | None = await connection.result_of(connection[CONVERSATIONS].find_one_and_update(*settling))
        return there

    def _tries(self, operation: str, conversation_id: str) -> Tries:
        return tries_of(operation, conversation_id, self._database.timeout)

    def _seen(self, conversation_id: str, there: Document | None) -> Head | None:
        """The head of a conversation, whose end is remembered. What is only begun may still get another owner."""
        head = None if there is None else documents.head(there)
        self._remember(conversation_id, NOWHERE if there is None or head is None else documents.tail(there))
        return head

    def _remember(self, conversation_id: str, tail: Tail) -> None:
        if len(self._tails) >= _MOST_TAILS:
            self._tails = {}
        self._tails[conversation_id] = tail

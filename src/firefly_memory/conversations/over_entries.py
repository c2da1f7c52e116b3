"""Conversations made of entries: for files and for custom backends.

Each conversation is a namespace, ``conversation:<id>``. A turn is one entry, so that an append needs only what a
backend does with one entry; another entry holds the summary and the owner, and each flush is one more entry. A flush
changes all of these in one edit. A backend without ``ATOMIC_BATCHES`` may be interrupted in the middle of it: it stores
the flush first, then the summary, and deletes dropped turns last, so no other turn is lost. Numbers and sums are
counted when the entries are read. A :class:`~firefly_memory.conversations.listing.ConversationList` has the ids of all
conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from firefly_memory import clock
from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.conversations.in_memory import KeptConversation, newest_first
from firefly_memory.conversations.listing import (
    ConversationList,
    Entries,
    Listed,
    ListOfEntries,
    digest,
)
from firefly_memory.conversations.listing_file import ConversationListFile, Directory
from firefly_memory.conversations.log import (
    Appended,
    Flush,
    Flushed,
    Head,
    Order,
    StoredTurn,
    checked_flush,
    checked_head,
    checked_turn,
    identities_of,
)
from firefly_memory.entries.ordered_records import OrderedRecords
from firefly_memory.entries.record import ReadInstant, Record, as_it_is, record_of
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.errors import CorruptDataError, ErasedError
from firefly_memory.identifiers import CONVERSATIONS, new_entry_id
from firefly_memory.tombstones.guard import Guard

_SUMMARY, _FLUSH = "summary", "flush"
_OPTIONAL = ("owner", "flush_id", "marks")
_APPEND, _FORK = "append_turn", "fork_conversation"


class _UnlistedError(Exception):
    """The first turn of a conversation that is not in the list yet."""


class EntryConversationLog:
    """A :class:`~firefly_memory.conversations.log.ConversationLog` over such a backend."""

    read_instant: ReadInstant = staticmethod(as_it_is)

    def __init__(self, entries: Entries, conversations: ConversationList | None = None) -> None:
        self._entries = entries
        self._list = ListOfEntries(entries) if conversations is None else conversations
        self.form = entries.form

    async def create(self, conversation_id: str, now: datetime, owner: str | None = None) -> bool:
        return await self._list.add(conversation_id, Listed(now, owner))

    async def append(
        self, conversation_id: str, draft: StoredTurn, expected: int | None, owner: str | None = None
    ) -> Appended | None:
        def append(ordered: OrderedRecords) -> Appended | None:
            if not len(ordered) and listed is None:
                raise _UnlistedError
            conversation = self._conversation(conversation_id, ordered, draft.created_at, listed)
            appended = conversation.append(draft, expected, owner)
            if appended is not None:
                if appended.turns == 1 and conversation.head.owner is not None:
                    ordered.put(self._summary(conversation), draft.created_at)  # has the owner
                ordered.put(self._turn(conversation_id, conversation.turns[-1]), draft.created_at)
            return appended

        listed: Listed | None = None
        try:
            return await self._entries.edit(_namespace(conversation_id), append)
        except _UnlistedError:
            if expected:
                return None
        # Listed before it is there: an empty conversation does no harm, one that nobody finds would.
        new = Listed(draft.created_at, owner)
        is_new = await self._list.add(conversation_id, new, _APPEND)
        listed = new if is_new else await self._list.find(conversation_id) or new
        guard = _guard(_APPEND, conversation_id, listed.owner)
        appended = await self._entries.edit(_namespace(conversation_id), append, guard)
        if appended is not None and appended.turns == 1:
            await self._list_written(conversation_id, Listed(draft.created_at, listed.owner))
        return appended

    async def head(self, conversation_id: str) -> Head | None:
        conversation = await self._read(conversation_id)
        return None if conversation is None else conversation.head

    async def window(self, conversation_id: str, budget: int) -> tuple[Head, Sequence[StoredTurn]] | None:
        conversation = await self._read(conversation_id)
        return None if conversation is None else conversation.window(budget)

    async def turns(self, conversation_id: str, after: int, limit: int | None) -> Sequence[StoredTurn]:
        conversation = await self._read(conversation_id)
        return () if conversation is None else conversation.after(after, limit)

    async def find(self, conversation_id: str, idempotency_key: str) -> StoredTurn | None:
        conversation = await self._read(conversation_id)
        return None if conversation is None else conversation.find(idempotency_key)

    async def claim(self, conversation_id: str, claim: str, evicted: int, now: datetime, until: datetime) -> bool:
        return await self._change(conversation_id, lambda kept: kept.claim_summary(claim, evicted, now, until))

    async def flush(self, conversation_id: str, flush: Flush, after: Flushed) -> bool:
        def edit(ordered: OrderedRecords) -> bool:
            now = clock.now()
            conversation = self._conversation(conversation_id, ordered, now)
            if not conversation.flush(flush, after):
                return False
            ordered.put(self._flush(conversation, flush), now)
            ordered.put(self._summary(conversation), now)
            self._drop(ordered, conversation, now)
            return True

        return await self._entries.edit(_namespace(conversation_id), edit)

    def _drop(self, ordered: OrderedRecords, conversation: KeptConversation, now: datetime) -> None:
        """Delete the records of the turns that are no longer kept."""
        if not conversation.head.dropped_turns:
            return
        numbers = {turn.append_id: turn.turn_id for turn in conversation.turns}
        for record in [each for each in ordered if each.key not in (_SUMMARY, _FLUSH)]:
            content = self._contents(record)
            number = numbers.get(content["append_id"])
            if number is None:
                ordered.delete([record.entry_id], now)
            elif content["turn_id"] < conversation.head.dropped_turns:  # two turns had this number
                encoded = self.form.encode({**content, "turn_id": number}, "turn")
                ordered.put(record._replace(content=encoded), now)

    async def find_flush(self, conversation_id: str, flush_id: str) -> Flush | None:
        conversation = await self._read(conversation_id)
        return None if conversation is None else conversation.flushes.get(flush_id)

    async def restore(self, conversation_id: str, newest: str, flush: Flush) -> bool:
        return await self._change(conversation_id, lambda kept: kept.restore(newest, flush))

    async def release(self, conversation_id: str, claim: str) -> None:
        await self._change(conversation_id, lambda kept: kept.release(claim))

    async def fork(self, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
        def write(ordered: OrderedRecords) -> bool:
            if len(ordered):
                return False
            for turn in fork.turns:
                ordered.put(self._turn(fork_id, turn), turn.created_at)
            for flush in fork.flushes.values():
                ordered.put(self._flush(fork, flush), now)
            if fork.head.turns:
                ordered.put(self._summary(fork), now)  # it also has the instant at which the fork was made
            return True

        conversation = await self._read(conversation_id)
        if conversation is None:
            return False
        fork = conversation.fork(fork_id, turns, now)
        # Listed before it exists, as in append(), so that a crash leaves no unlisted conversation.
        if not await self._list.add(fork_id, Listed(now, fork.head.owner), _FORK):
            return False
        try:
            return await self._entries.edit(_namespace(fork_id), write, _guard(_FORK, fork_id, fork.head.owner))
        except BaseException:
            with suppress(Exception):  # the first error is the one to raise
                await self.delete(fork_id)
            raise

    async def delete(self, conversation_id: str, facts: str | None = None, seen: Head | None = None) -> bool:
        namespaces = [_namespace(conversation_id)] if facts is None else [facts, _namespace(conversation_id)]
        await self._check(namespaces)
        if seen is not None and not await self._delete_turns(conversation_id, seen):
            return False
        for namespace in namespaces[: None if seen is None else -1]:
            # Facts first: after an interruption, the conversation can be deleted once more.
            await self._entries.clear(namespace)
        await self._list.remove([conversation_id])
        if seen is not None:
            await self._list_again([conversation_id])
        return True

    async def _delete_turns(self, conversation_id: str, seen: Head) -> bool:
        """Delete the turns, if nobody has appended any since; it stays listed, so that it can be deleted once more."""

        def delete(ordered: OrderedRecords) -> bool:
            now = clock.now()
            if not len(ordered):
                return seen.turns == 0
            if not self._conversation(conversation_id, ordered, now).is_still(seen):
                return False
            ordered.delete([record.entry_id for record in ordered], now)
            return True

        return await self._entries.edit(_namespace(conversation_id), delete)

    async def _check(self, namespaces: Iterable[str]) -> None:
        """Raise an error if a namespace is unreadable, before anything is deleted."""
        await self._list.all()
        for namespace in namespaces:
            await self._entries.scan(namespace, 1, None, clock.now())

    async def delete_all(self, namespace: str | None) -> None:
        """Delete one conversation after the other. An interruption leaves the remaining ones as they were."""
        there = list(await self._list.all())
        # Also of conversations that are in no list: those that had facts and no turn yet.
        facts = set(await self._entries.namespaces_of_facts())
        for conversation_id in there:
            await self._entries.clear(stored_facts_of(conversation_id))
            await self._entries.clear(_namespace(conversation_id))
        await self._list.remove(there)
        await self._list_again(there)
        for others in sorted(facts.difference(map(stored_facts_of, there))):
            await self._entries.clear(others)
        if namespace is not None:
            await self._entries.clear(namespace)

    async def _list_again(self, deleted: Iterable[str]) -> None:
        """List those of these that somebody has appended to since they were cleared."""
        now = clock.now()
        for conversation_id in deleted:
            again = await self._entries.scan(_namespace(conversation_id), None, None, now)
            if again:
                owner = self._conversation(conversation_id, again, now).head.owner
                with suppress(ErasedError):
                    await self._list_written(conversation_id, Listed(now, owner))

    async def _list_written(self, conversation_id: str, new: Listed) -> None:
        """List a conversation that has turns, and that somebody may have deleted before they were written. If it was
        erased, its turns do not stay, since nobody would find them, and ``ErasedError`` is raised."""
        try:
            await self._list.add(conversation_id, new, _APPEND)
        except ErasedError:
            await self._entries.clear(_namespace(conversation_id))
            raise

    async def scrub(self) -> None:
        """Forget the ids of conversations that were deleted."""
        await self._list.scrub()

    async def page(
        self, limit: int, after: tuple[datetime, str] | None, owner: str | None = None, order: Order = "created"
    ) -> Sequence[Head]:
        listed = await self._list.all()
        heads = [_empty(*each) for each in listed.items() if owner in (None, each[1].owner)]
        if order == "updated":  # which only the conversations know
            return newest_first([await self._listed(head) for head in heads], limit, after, order)
        page = newest_first(heads, limit, after)
        return [(await self._listed(head))._replace(summary=None) for head in page]

    async def _listed(self, empty: Head) -> Head:
        try:
            head = await self.head(empty.conversation_id) or empty
        except CorruptDataError:
            return empty  # one that is damaged says so when it is read; the others are listed all the same
        is_another = empty.owner not in (None, head.owner)  # made since, for another owner
        return empty if is_another else head._replace(created_at=empty.created_at)

    async def _read(self, conversation_id: str) -> KeptConversation | None:
        now = clock.now()
        records = await self._entries.scan(_namespace(conversation_id), None, None, now)
        if records:
            return self._conversation(conversation_id, records, now)
        listed = await self._list.find(conversation_id)
        return None if listed is None else self._conversation(conversation_id, (), listed.created_at, listed)

    async def _change(self, conversation_id: str, change: Callable[[KeptConversation], bool]) -> bool:
        def edit(ordered: OrderedRecords) -> bool:
            conversation = self._conversation(conversation_id, ordered, clock.now())
            changed = change(conversation)
            if changed:
                ordered.put(self._summary(conversation), clock.now())
            return changed

        return await self._entries.edit(_namespace(conversation_id), edit)

    def _conversation(
        self, conversation_id: str, records: Iterable[Record], now: datetime, listed: Listed | None = None
    ) -> KeptConversation:
        """The conversation in the entries of a namespace; without any, it is as it is ``listed``. If two unsynchronized
        writers have used one number, the earlier turn keeps it, and nothing is lost."""
        try:
            return self._decoded(conversation_id, records, now, listed)
        except DAMAGE as exc:
            where = f"conversation {conversation_id!r}"
            raise damaged("reading a conversation", where, exc) from exc

    def _decoded(
        self, conversation_id: str, records: Iterable[Record], now: datetime, listed: Listed | None
    ) -> KeptConversation:
        contents = [(self._contents(record), record) for record in records]
        summary = next((pair for pair in contents if pair[1].key == _SUMMARY), None)
        facts = {} if summary is None else summary[0]
        dropped = facts.get("dropped_turns", 0), facts.pop("dropped_tokens", 0)
        updated_at = facts.pop("updated_at", None)
        stored = _turns(conversation_id, contents, dropped[0])
        owner = None if contents or listed is None else listed.owner
        created_at = stored[0].created_at if stored else now
        conversation = KeptConversation(conversation_id, created_at, stored, owner=owner, dropped=dropped)
        if summary is not None:
            until = facts.pop("claimed_until")
            conversation.claim = facts.pop("claim")
            conversation.claimed_until = None if until is None else datetime.fromisoformat(until)
            conversation.head = checked_head(conversation.head._replace(**facts, created_at=summary[1].created_at))
            if updated_at is not None and not stored:
                conversation.head = conversation.head._replace(updated_at=datetime.fromisoformat(updated_at))
        conversation.flushes = _flushes(conversation_id, contents)
        return conversation

    def _contents(self, record: Record) -> dict[str, Any]:
        return dict(self.form.decode(record.content))  # a copy: some forms decode in place

    def _turn(self, conversation_id: str, turn: StoredTurn) -> Record:
        content = turn._asdict()
        metadata, created_at = content.pop("metadata"), content.pop("created_at")
        if turn.input_tokens is None:
            del content["input_tokens"]  # earlier versions know no such member
        key = f"turn {turn.turn_id}"
        record = self._record(new_entry_id(), _namespace(conversation_id), key, content, created_at)
        return record._replace(metadata=metadata)

    def _summary(self, conversation: KeptConversation) -> Record:
        head, until = conversation.head, conversation.claimed_until
        content = {
            "evicted_turns": head.evicted_turns,
            "evicted_tokens": head.evicted_tokens,
            "summary": head.summary,
            "claim": conversation.claim,
            "claimed_until": None if until is None else until.isoformat(),
            **{name: getattr(head, name) for name in _OPTIONAL if getattr(head, name) is not None},
        }
        if head.dropped_turns:
            content |= {"dropped_turns": head.dropped_turns, "dropped_tokens": conversation.dropped_tokens}
            content |= {"updated_at": head.updated_at.isoformat()}  # which the last turn may no longer tell
        entry_id = f"{digest(head.conversation_id)}/{_SUMMARY}"
        return self._record(entry_id, _namespace(head.conversation_id), _SUMMARY, content, head.created_at)

    def _flush(self, conversation: KeptConversation, flush: Flush) -> Record:
        name = conversation.head.conversation_id
        content = {**flush._asdict(), "created_at": flush.created_at.isoformat()}
        # Right before the summary, so that it is stored before the summary names it.
        entry_id, created_at = f"{digest(name)}/{_FLUSH}/{digest(flush.flush_id)}", conversation.head.created_at
        return self._record(entry_id, _namespace(name), _FLUSH, content, created_at)

    def _record(self, entry_id: str, namespace: str, key: str, content: Any, created_at: datetime) -> Record:
        return record_of(self.form, entry_id, namespace, key, content, created_at)


_Contents = Sequence[tuple[dict[str, Any], Record]]


def _turns(conversation_id: str, contents: _Contents, dropped: int) -> list[StoredTurn]:
    """The turns in order. Those that were dropped may still be there, after an interruption."""
    turns = [pair for pair in contents if pair[1].key not in (_SUMMARY, _FLUSH) and pair[0]["turn_id"] >= dropped]
    turns.sort(key=lambda pair: (pair[0]["turn_id"], pair[1].position))
    return [
        checked_turn(conversation_id, StoredTurn(**content, metadata=record.metadata, created_at=record.created_at))
        for content, record in turns
    ]


def _flushes(conversation_id: str, contents: _Contents) -> dict[str, Flush]:
    found = {}
    for content, record in contents:
        if record.key == _FLUSH:
            created_at = datetime.fromisoformat(content["created_at"])
            flush = checked_flush(conversation_id, Flush(**{**content, "created_at": created_at}))
            found[flush.flush_id] = flush
    return found


def _namespace(conversation_id: str) -> str:
    return CONVERSATIONS + conversation_id


def _guard(operation: str, conversation_id: str, owner: str | None) -> Guard:
    """Of a write that makes a conversation: those that go on with one cost no look."""
    return Guard(operation, identities_of(conversation_id, owner), if_empty=True)


def _empty(conversation_id: str, listed: Listed) -> Head:
    return Head(conversation_id, 0, 0, 0, 0, None, listed.created_at, listed.created_at, listed.owner)


def conversations_in_files(entries: Entries, files: Directory) -> EntryConversationLog:
    """The list of conversations: a file if the entries are files."""
    return EntryConversationLog(entries, ConversationListFile(files))

"""The tombstones of a store that has nothing but entries: each is one, and so is the key that they are made with.

They are in a namespace that no entry of a user and no conversation can have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from secrets import token_hex
from typing import Protocol, TypeVar

from firefly_memory import clock
from firefly_memory.codec import DAMAGE, Form, damaged
from firefly_memory.databases.text_forms import forms_of
from firefly_memory.databases.text_search import rows_with
from firefly_memory.entries.ordered_records import OrderedRecords
from firefly_memory.entries.record import Position, Record, record_of
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.errors import DatabaseStoreError
from firefly_memory.identifiers import CONVERSATIONS, ESCAPE
from firefly_memory.tombstones.guard import UNGUARDED, Guard
from firefly_memory.tombstones.log import KEY, Identity, owner_identity, tombstone

T = TypeVar("T")

_ATTEMPTS = 10  # each that fails means that another process made a key at the same moment

NAMESPACE = f"{CONVERSATIONS}{ESCAPE}tombstones"
"""No name has this stored form, in which an escape is followed by an unknown letter."""


class Entries(Protocol):
    """The store, as far as tombstones need it."""

    @property
    def form(self) -> Form: ...

    async def scan(
        self, namespace: str, limit: int | None, after: Position | None, now: datetime
    ) -> Sequence[Record]: ...

    async def newest(self, namespace: str, key: str, now: datetime) -> Record | None: ...

    async def edit(self, namespace: str, change: Callable[[OrderedRecords], T], guard: Guard = UNGUARDED) -> T: ...

    async def wait_for_writers(self, namespaces: Iterable[str]) -> None:
        """Wait until each write to these that is under way has ended, as far as that can be known."""


class EntryTombstoneLog:
    """A :class:`~firefly_memory.tombstones.log.TombstoneLog` over five methods.

    A write is refused as in other stores if it is made by the process that erases, or begins after the erasure. What
    five methods cannot do is to wait for others: a write of another process that looked before the tombstone was there,
    and saves after the deletion, brings back what it saves; erase once more when the other processes have ended or gone
    on. If two processes erase somebody for the first time at the same moment, each makes a key; the one that finds
    its key replaced adds its tombstones once more.
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    async def add(self, identities: Sequence[Identity], owner: str, now: datetime) -> None:
        key = await self._key() or token_hex(32)
        for _ in range(_ATTEMPTS):
            used = await self._add(key, identities, owner, now)
            key = await self._key()
            if used == key:
                break
        else:
            raise DatabaseStoreError("erase", "the key of the tombstones changes all the time", retryable=True)
        await self._entries.wait_for_writers(dict.fromkeys(_written_for(each) for each in identities))

    async def _add(self, new_key: str, identities: Sequence[Identity], owner: str, now: datetime) -> str:
        """Add them, made with the key that is there, or ``new_key`` if there is none. The key."""

        def add(ordered: OrderedRecords) -> str:
            key = self._text(ordered.newest(KEY, now))
            if not key:
                key = new_key
                ordered.put(self._record(KEY, key, now), now)
            of = tombstone(key, owner_identity(owner))
            for each in dict.fromkeys(tombstone(key, identity) for identity in identities):
                if ordered.newest(each, now) is None:
                    ordered.put(self._record(each, of, now), now)
            return key

        return await self._entries.edit(NAMESPACE, add)

    async def are_there(self, identities: Sequence[Identity]) -> bool:
        key = await self._key()
        if not key:
            return False
        for each in identities:
            if await self._entries.newest(NAMESPACE, tombstone(key, each), clock.now()) is not None:
                return True
        return False

    async def remove(self, owner: str) -> int:
        def remove(ordered: OrderedRecords) -> int:
            now = clock.now()
            of = tombstone(self._text(ordered.newest(KEY, now)), owner_identity(owner))
            theirs = [each.entry_id for each in ordered if each.key != KEY and self._text(each) == of]
            return len(ordered.delete(theirs, now))

        return await self._entries.edit(NAMESPACE, remove)

    async def find_text(self, text: str) -> Sequence[tuple[str, int]]:
        """In all that can be listed: the conversations, their turns and their facts. Other namespaces cannot."""
        listed = [each.key for each in await self._records(CONVERSATIONS) if each.key is not None]
        namespaces = [CONVERSATIONS, *map(_turns_of, listed), *map(stored_facts_of, listed)]
        return [(each, rows_with(forms_of(text), await self._records(each), set())) for each in namespaces]

    async def scrub(self) -> None:
        """Five methods cannot."""

    async def _records(self, namespace: str) -> Sequence[Record]:
        return await self._entries.scan(namespace, None, None, clock.now())

    async def _key(self) -> str:
        return self._text(await self._entries.newest(NAMESPACE, KEY, clock.now()))

    def _record(self, key: str, text: str, now: datetime) -> Record:
        # Under a random id: one that is known could be taken by an entry of somebody's.
        return record_of(self._entries.form, f"tombstones/{token_hex(16)}", NAMESPACE, key, text, now)

    def _text(self, record: Record | None) -> str:
        """The content of an entry; nothing if there is none."""
        if record is None:
            return ""
        try:
            text = self._entries.form.decode(record.content)
            if not isinstance(text, str) or not text:
                raise TypeError(f"{type(text).__name__} in place of a text that is not empty")
        except DAMAGE as exc:
            raise damaged("load", f"the entry {record.entry_id!r} of the tombstones", exc) from exc
        return text


def _written_for(identity: Identity) -> str:
    """The namespace that is written when this identity comes back: the list of conversations, if it is an owner."""
    match identity.kind:
        case "namespace":
            return identity.name
        case "conversation":
            return _turns_of(identity.name)
        case _:
            return CONVERSATIONS


def _turns_of(conversation_id: str) -> str:
    return CONVERSATIONS + conversation_id

"""The list of conversations, for stores that keep each conversation as a namespace of entries."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import NamedTuple, Protocol, TypeVar

from firefly_memory import clock
from firefly_memory.codec import DAMAGE, Form, damaged
from firefly_memory.conversations.log import identities_of
from firefly_memory.entries.ordered_records import OrderedRecords
from firefly_memory.entries.record import Position, Record, record_of
from firefly_memory.errors import CorruptDataError
from firefly_memory.identifiers import CONVERSATIONS
from firefly_memory.tombstones.guard import UNGUARDED, Guard

T = TypeVar("T")

NAMESPACE_OF_LIST = CONVERSATIONS
"""The namespace of the list in stores that have only entries. No conversation has this name: ids are not empty."""

CREATE = "create_conversation"


class Entries(Protocol):
    """The operations of a backend that the list needs."""

    @property
    def form(self) -> Form: ...

    async def scan(
        self, namespace: str, limit: int | None, after: Position | None, now: datetime
    ) -> Sequence[Record]: ...

    async def edit(self, namespace: str, change: Callable[[OrderedRecords], T], guard: Guard = UNGUARDED) -> T:
        """Call ``change`` with the records of a namespace, under a lock; all its changes are saved, or none. Before
        that, and under the same lock, ``ErasedError`` is raised if what ``guard`` names is erased."""

    async def clear(self, namespace: str) -> None: ...

    async def namespaces_of_facts(self) -> Collection[str]:
        """The namespaces with facts of conversations, listed or not; none if the backend cannot list namespaces."""


class Listed(NamedTuple):
    """What the list says of a conversation."""

    created_at: datetime
    owner: str | None


class ConversationList(Protocol):
    """The operations on the list. Each is all or nothing."""

    async def add(self, conversation_id: str, new: Listed, operation: str = CREATE) -> bool:
        """Add a conversation. Return whether it is new; ``ErasedError`` of ``operation`` if it is erased."""

    async def remove(self, conversation_ids: Collection[str]) -> None: ...

    async def all(self) -> Mapping[str, Listed]: ...

    async def find(self, conversation_id: str) -> Listed | None: ...

    async def scrub(self) -> None:
        """Forget what conversations were there before."""


class ListOfEntries:
    """A list with one entry for each conversation, for backends of five methods."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    async def add(self, conversation_id: str, new: Listed, operation: str = CREATE) -> bool:
        def add(ordered: OrderedRecords) -> bool:
            if ordered.newest(conversation_id, new.created_at) is not None:
                return False
            form, entry_id = self._entries.form, _listed_as(conversation_id)
            record = record_of(form, entry_id, NAMESPACE_OF_LIST, conversation_id, new.owner, new.created_at)
            ordered.put(record, new.created_at)
            return True

        guard = Guard(operation, identities_of(conversation_id, new.owner))
        return await self._entries.edit(NAMESPACE_OF_LIST, add, guard)

    async def remove(self, conversation_ids: Collection[str]) -> None:
        doomed = [_listed_as(each) for each in conversation_ids]
        await self._entries.edit(NAMESPACE_OF_LIST, lambda ordered: ordered.delete(doomed, clock.now()))

    async def all(self) -> Mapping[str, Listed]:
        records = await self._entries.scan(NAMESPACE_OF_LIST, None, None, clock.now())
        form = self._entries.form
        return {record.key or "": Listed(record.created_at, _owner(record, form)) for record in records}

    async def find(self, conversation_id: str) -> Listed | None:
        return (await self.all()).get(conversation_id)

    async def scrub(self) -> None:
        """The entry of a deleted conversation was deleted, too."""


def _owner(record: Record, form: Form) -> str | None:
    """The content of an entry of the list."""
    try:
        owner = form.decode(record.content)
    except DAMAGE as exc:
        raise damaged("load", f"the list of conversations, at {record.key!r}", exc) from exc
    if not isinstance(owner, (str, NoneType)):
        raise CorruptDataError("load", f"the list of conversations, at {record.key!r}", "the owner is no text")
    return owner


def digest(conversation_id: str) -> str:
    """A short hash, for ids of entries."""
    return hashlib.sha256(conversation_id.encode()).hexdigest()


def _listed_as(conversation_id: str) -> str:
    return f"{digest(conversation_id)}/listed"

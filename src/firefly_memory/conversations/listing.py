"""The list of conversations, for stores that keep each conversation as a namespace of entries."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from firefly_memory import clock
from firefly_memory.codec import Form
from firefly_memory.entries.entry import MemoryScope
from firefly_memory.entries.ordered_records import OrderedRecords
from firefly_memory.entries.record import Position, Record
from firefly_memory.identifiers import CONVERSATIONS

T = TypeVar("T")

NAMESPACE_OF_LIST = CONVERSATIONS
"""The namespace of the list in stores that have only entries. No conversation has this name: ids are not empty."""


class Entries(Protocol):
    """The operations of a backend that the list needs."""

    @property
    def form(self) -> Form: ...

    async def scan(
        self, namespace: str, limit: int | None, after: Position | None, now: datetime
    ) -> Sequence[Record]: ...

    async def edit(self, namespace: str, change: Callable[[OrderedRecords], T]) -> T:
        """Call ``change`` with the records of a namespace, under a lock; all its changes are saved, or none."""

    async def clear(self, namespace: str) -> None: ...

    async def namespaces_of_facts(self) -> Collection[str]:
        """The namespaces with facts of conversations, listed or not; none if the backend cannot list namespaces."""


class ConversationList(Protocol):
    """The operations on the list. Each is all or nothing."""

    async def add(self, conversation_id: str, created_at: datetime) -> bool:
        """Add a conversation. Return whether it is new."""

    async def remove(self, conversation_ids: Collection[str]) -> None: ...

    async def all(self) -> Mapping[str, datetime]:
        """The time of creation of each conversation."""

    async def created_at(self, conversation_id: str) -> datetime | None:
        """The time of creation of a conversation; ``None`` if it is not in the list."""


class ListOfEntries:
    """A list with one entry for each conversation, for backends of five methods."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    async def add(self, conversation_id: str, created_at: datetime) -> bool:
        def add(ordered: OrderedRecords) -> bool:
            if ordered.newest(conversation_id, created_at) is not None:
                return False
            form, entry_id = self._entries.form, _listed_as(conversation_id)
            record = record_of(form, entry_id, NAMESPACE_OF_LIST, conversation_id, None, created_at)
            ordered.put(record, created_at)
            return True

        return await self._entries.edit(NAMESPACE_OF_LIST, add)

    async def remove(self, conversation_ids: Collection[str]) -> None:
        doomed = [_listed_as(each) for each in conversation_ids]
        await self._entries.edit(NAMESPACE_OF_LIST, lambda ordered: ordered.delete(doomed, clock.now()))

    async def all(self) -> Mapping[str, datetime]:
        return listed(await self._entries.scan(NAMESPACE_OF_LIST, None, None, clock.now()))

    async def created_at(self, conversation_id: str) -> datetime | None:
        return (await self.all()).get(conversation_id)


def listed(records: Sequence[Record]) -> dict[str, datetime]:
    """The conversations in the entries of such a list."""
    return {record.key or "": record.created_at for record in records}


def record_of(form: Form, entry_id: str, namespace: str, key: str, content: Any, created_at: datetime) -> Record:
    """An entry of the library."""
    scope = MemoryScope.CONVERSATION.value
    return Record(entry_id, namespace, scope, key, form.encode(content), form.encode({}), created_at, None, 0.5)


def digest(conversation_id: str) -> str:
    """A short hash, for ids of entries."""
    return hashlib.sha256(conversation_id.encode()).hexdigest()


def _listed_as(conversation_id: str) -> str:
    return f"{digest(conversation_id)}/listed"

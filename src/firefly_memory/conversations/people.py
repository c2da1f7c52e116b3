"""The conversations of a person, to be erased."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from firefly_memory.conversations.log import CONVERSATION_LOG, Head
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.identifiers import original_name
from firefly_memory.people import Counts, Owned
from firefly_memory.protocols import StoreView
from firefly_memory.tombstones.log import conversation_identity, namespace_identity

_PAGE = 100
"""Conversations that are refused together before they are deleted."""


class ConversationEraser:
    """An :class:`~firefly_memory.people.Eraser` of conversations with their turns and their facts, in any store."""

    def __init__(self, view: StoreView) -> None:
        self._view = view
        self._log = view.log(CONVERSATION_LOG)

    async def owned(self, owner: str) -> AsyncIterator[Sequence[Owned]]:
        after = None
        while heads := await self._log.page(_PAGE, after, owner):
            yield [await self._owned(head) for head in heads]
            after = (self._log.read_instant(heads[-1].created_at), heads[-1].conversation_id)

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        deleted = Counter[str]()
        for each in owned:
            head = await self._log.head(each.name)  # with turns that were appended since it was found
            counts = {} if head is None else await self._counts(head)
            await self._log.delete(each.name, stored_facts_of(each.name))
            deleted.update(counts)
        return deleted

    async def _owned(self, head: Head) -> Owned:
        name = head.conversation_id
        identities = (conversation_identity(name), namespace_identity(stored_facts_of(name)))
        return Owned(name, identities, await self._counts(head))

    async def _counts(self, head: Head) -> Counts:
        facts = await self._view.count(original_name(stored_facts_of(head.conversation_id)))
        return {"conversations": 1, "turns": head.turns - head.dropped_turns, "working-facts": facts}

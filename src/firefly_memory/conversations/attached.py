"""The strategies that are attached to a memory, in one mode of its store."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from firefly_memory.conversations.log import ConversationLog, Head
from firefly_memory.conversations.policy import Conversation, LongTerm, SearchMode, ShortTerm
from firefly_memory.conversations.summarizers import in_this_loop
from firefly_memory.identifiers import original_name, original_or_none
from firefly_memory.stores.base import EntryStore

logger = logging.getLogger("firefly_memory")


@dataclass(frozen=True, slots=True)
class Attached:
    """The strategies, and how they reach the store."""

    short_term: Sequence[ShortTerm] = ()
    long_term: Sequence[LongTerm] = ()
    store: EntryStore | None = None
    flushes: bool = True
    """Whether turns may leave the window now. If not, what was kept of them is still searched and forgotten."""
    is_blocking: bool = False
    awaited: Callable[[Awaitable[Any]], Awaitable[Any]] = in_this_loop
    kept: dict[str, object] = field(default_factory=dict)

    def about(self, log: ConversationLog, name: str, head: Head | None, owner: str | None) -> Conversation:
        """The conversation as a strategy sees it. ``owner`` is that of a conversation which is not there yet."""
        assert self.store is not None, "there are strategies"
        return Conversation(
            conversation_id=original_name(name),
            owner=owner if head is None else original_or_none(head.owner),
            created_at=None if head is None else log.read_instant(head.created_at),
            store=self.store,
            is_blocking=self.is_blocking,
            awaited=self.awaited,
            kept=self.kept,
        )

    def searching(self, mode: SearchMode) -> list[LongTerm]:
        """The strategies that are searched in this way."""
        return [strategy for strategy in self.long_term if strategy.search_mode == mode]

    async def search(self, mode: SearchMode, query: str, conversation: Conversation) -> list[str]:
        """What the strategies find, each text once. An error is only logged: a run goes on without it."""
        found: dict[str, None] = {}
        for strategy in self.searching(mode):
            try:
                found.update(dict.fromkeys(await strategy.search(query, conversation)))
            except Exception:
                logger.exception("nothing was searched for conversation %r", conversation.conversation_id)
        return list(found)

"""Conversations that are out of bounds, found in the order of their newest turns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.conversations.log import CONVERSATION_LOG, Head
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.identifiers import original_name
from firefly_memory.people import Bounds, Counts, Doomed
from firefly_memory.protocols import StoreView

PAGE = 200


@dataclass(slots=True)
class _Met:
    """What the list has had so far of one owner, the newest first."""

    conversations: int = 0
    tokens: int = 0

    def doom(self, head: Head, updated_at: datetime, bounds: Bounds) -> bool:
        """Count one more conversation; whether it is out of bounds."""
        self.conversations += 1
        self.tokens += head.tokens
        too_old = bounds.before is not None and updated_at < bounds.before
        too_many = bounds.keep_last is not None and self.conversations > bounds.keep_last
        too_much = bounds.max_tokens is not None and self.tokens > bounds.max_tokens
        return too_old or too_many or too_much


class ConversationPruner:
    """A :class:`~firefly_memory.people.Pruner` of conversations, which go with their turns and their facts."""

    def __init__(self, view: StoreView) -> None:
        self._view = view
        self._log = view.log(CONVERSATION_LOG)

    async def doomed(self, bounds: Bounds) -> AsyncIterator[Sequence[Doomed]]:
        met: defaultdict[str | None, _Met] = defaultdict(_Met)
        after: tuple[datetime, str] | None = None
        if bounds.keep_last is None and bounds.max_tokens is None and bounds.before is not None:
            after = (bounds.before, "")  # nothing is read that is not too old
        while True:
            heads = await self._log.page(PAGE, after, bounds.owner, "updated")
            moments = [self._moment(head) for head in heads]
            doomed = [
                await self._doomed(head)
                for head, moment in zip(heads, moments, strict=True)
                if met[head.owner].doom(head, moment, bounds)
            ]
            if doomed:
                yield doomed
            if len(heads) < PAGE:
                return
            after = (moments[-1], heads[-1].conversation_id)

    async def delete(self, doomed: Sequence[Doomed]) -> Counts:
        deleted: Counter[str] = Counter()
        for each in doomed:
            assert isinstance(each.state, Head)
            if await self._log.delete(each.name, stored_facts_of(each.name), each.state):
                deleted.update(each.counts)
        return deleted

    def _moment(self, head: Head) -> datetime:
        try:
            return self._log.read_instant(head.updated_at)
        except DAMAGE as exc:
            raise damaged("prune", f"conversation {original_name(head.conversation_id)!r}", exc) from exc

    async def _doomed(self, head: Head) -> Doomed:
        name = head.conversation_id
        facts = await self._view.count(original_name(stored_facts_of(name)))
        counts = {"conversations": 1, "turns": head.turns - head.dropped_turns, "working-facts": facts}
        return Doomed(name, head, counts)

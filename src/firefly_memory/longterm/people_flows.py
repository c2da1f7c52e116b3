"""What ``MemoryService`` does with people, once for both modes: coroutines over a view of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firefly_memory import clock
from firefly_memory.cursors import as_token, from_token
from firefly_memory.erasing import Progress, Receipt
from firefly_memory.errors import InvalidEntryError, UnknownRecordError
from firefly_memory.identifiers import new_entry_id, original_name, original_or_none, stored_name
from firefly_memory.longterm.fact_flows import MOST_ROWS, FactFlows, checked_limit
from firefly_memory.longterm.forgetting import forgotten
from firefly_memory.longterm.log import LONG_TERM_LOG, Met, PeopleLog
from firefly_memory.longterm.options import Options
from firefly_memory.longterm.person_form import new_user_row, user_of
from firefly_memory.longterm.places import person_place
from firefly_memory.longterm.rows import Filters, UserRow
from firefly_memory.longterm.types import PREFERENCE, Facts, MemoryUser, Users
from firefly_memory.protocols import StoreView

FACTS_OF_CONTEXT = 100
"""So many facts the context of a person has, those of the largest confidence."""

_PREFERENCES = Filters(types=(PREFERENCE,))
_PAGE = 1_000

Context = dict[str, Any]


class PeopleFlows:
    """The methods of ``MemoryService`` for people in one mode."""

    def __init__(self, view: StoreView, options: Options, facts: FactFlows) -> None:
        self._view = view
        self._options = options
        self._facts = facts

    async def meet(self, channel: str, channel_id: str, name: str | None) -> Met:
        """The person whom a channel names, made if there is none."""
        return await self._people.meet(new_user_row(self._options.space, channel, channel_id, name, clock.now()))

    async def get_or_create(self, channel: str, channel_id: str, name: str | None) -> MemoryUser:
        met = await self.meet(channel, channel_id, name)
        return user_of(met.row, await self._preferences(met.row.word))

    async def get(self, canonical_id: str) -> MemoryUser | None:
        """The record of this id itself. That of a merged person has no preferences."""
        row = await self._people.find(self._word(canonical_id))
        return None if row is None else user_of(row, await self._preferences(row.word))

    async def listed(self, limit: int, after: str | None) -> Users:
        most = checked_limit(limit)
        moment = None if after is None else from_token(after, "list_users()")
        rows = await self._people.list(self._options.space, min(most + 1, MOST_ROWS), moment)
        users = tuple([user_of(row, await self._preferences(row.word)) for row in rows[:most]])
        token = as_token(rows[most - 1].first_seen, rows[most - 1].id) if len(rows) > most else None
        return Users(items=users, next=token)

    async def facts(self, user_id: str, limit: int, after: str | None) -> Facts:
        """The facts of a person; of a stranger as well, if somebody stored some."""
        return await self._facts.list_own(self._word(user_id), limit, after, is_root=False)

    async def known(
        self,
        user_id: str,
        limit: int,
        after: str | None,
        filters: Filters = Filters(),  # noqa: B008
    ) -> tuple[str | None, Facts]:
        """The display name of a person, and the same facts."""
        word = self._word(user_id)
        root = await self._people.root(word)
        facts = await self._facts.list_own(word if root is None else root.word, limit, after, filters)
        return None if root is None else original_or_none(root.display_name), facts

    async def update_preferences(self, user_id: str, preferences: Mapping[str, Any]) -> bool:
        if await self._people.root(self._word(user_id)) is None:
            return False
        await self._facts.set_many(preferences, PREFERENCE, {"user_id": user_id})
        return True

    async def count_conversation(self, user_id: str) -> bool:
        return await self.counted(self._word(user_id), new_entry_id()) is not None

    async def counted(self, word: str, write_id: str) -> UserRow | None:
        """The person for whom the one with this word stands, after their conversation was counted."""
        return await self._people.count_conversation(word, write_id, clock.now())

    async def merge(self, source: str, target: str) -> MemoryUser:
        words = self._word(source, "source"), self._word(target, "target")
        merged = await self._people.merge(*words, new_entry_id(), clock.now())
        if merged.refusal in ("unknown source", "unknown target"):
            raise self._unknown(source if merged.refusal == "unknown source" else target)
        if merged.refusal == "same":
            raise InvalidEntryError("target", f"{target!r} is the same person as {source!r}")
        if merged.row is None:
            raise InvalidEntryError("target", f"{target!r} was merged into {source!r}, and cannot take it in")
        return user_of(merged.row, await self._preferences(merged.row.word))

    async def forget(self, user_id: str, *, dry_run: bool, all_spaces: bool, progress: Progress | None) -> Receipt:
        space = self._options.space
        return await forgotten(self._view, space, user_id, dry_run=dry_run, all_spaces=all_spaces, progress=progress)

    async def context(self, user_id: str, agent_id: str | None) -> Context:
        """What is known of a person, as JSON values."""
        if agent_id is not None:
            stored_name("agent_id", agent_id)
        root = await self._people.root(self._word(user_id))
        if root is None:
            return stranger(user_id)
        return await self.context_of(root, is_new=False)

    async def context_of(self, row: UserRow, *, is_new: bool) -> Context:
        """The same of a person who was read already."""
        page = await self._facts.list_own(row.word, FACTS_OF_CONTEXT, None)
        if page.next is None:
            preferences = {each.key: each.value for each in page if each.fact_type == PREFERENCE}
        else:
            preferences = await self._preferences(row.word)
        last = row.last_conversation_at
        return {
            "user_id": original_name(row.canonical_id),
            "is_new": is_new,
            "display_name": original_or_none(row.display_name),
            "preferences": preferences,
            "facts": [{"key": each.key, "value": each.value, "type": each.fact_type} for each in page],
            "history": [],
            "total_conversations": row.total_conversations,
            "last_conversation_at": None if last is None else last.isoformat(),
            "first_seen": row.first_seen.isoformat(),
        }

    async def _preferences(self, word: str) -> dict[str, Any]:
        """The preferences of a person who stands for nobody else."""
        found: dict[str, Any] = {}
        after: str | None = None
        while True:
            page = await self._facts.list_own(word, _PAGE, after, _PREFERENCES)
            found |= {each.key: each.value for each in page}
            after = page.next
            if after is None:
                return found

    def _word(self, user_id: str, name: str = "user_id") -> str:
        return person_place(self._options.space, stored_name(name, user_id)).word

    def _unknown(self, user_id: str) -> UnknownRecordError:
        return UnknownRecordError("person", user_id, original_name(self._options.space))

    @property
    def _people(self) -> PeopleLog:
        return self._view.log(LONG_TERM_LOG).people


def stranger(user_id: str | None) -> Context:
    """The context of somebody who is not known; of nobody, if ``user_id`` is ``None``."""
    return {"user_id": user_id, "is_new": True, "facts": [], "history": []}

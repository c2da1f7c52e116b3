"""The methods of ``MemoryService`` for people, each of them for both modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.erasing import Progress, Receipt
from firefly_memory.longterm.people_flows import Context, PeopleFlows
from firefly_memory.longterm.types import Facts, MemoryUser, Users


class PeopleMethods:
    """What a service does with people."""

    _blocking_people: PeopleFlows
    _suspending_people: PeopleFlows

    def get_user_facts(self, user_id: str, limit: int = 100, *, after: str | None = None) -> Facts:
        """Up to ``limit`` facts of one person, in the order of :meth:`list_facts`."""
        return run_without_loop(self._blocking_people.facts(user_id, limit, after))

    async def async_get_user_facts(self, user_id: str, limit: int = 100, *, after: str | None = None) -> Facts:
        """Up to ``limit`` facts of one person, in the order of :meth:`list_facts`."""
        return await self._suspending_people.facts(user_id, limit, after)

    def get_or_create_user(self, channel: str, id: str, name: str | None = None) -> MemoryUser:  # noqa: A002 - as the people who call it say
        """The person whom a channel knows by this id, such as ``("telegram", "12345")``, made if there is none.

        A person who was merged into another one is this other person, and ``name`` then changes nothing. Otherwise
        ``name`` becomes the display name of a person who has none.
        """
        return run_without_loop(self._blocking_people.get_or_create(channel, id, name))

    async def async_get_or_create_user(self, channel: str, id: str, name: str | None = None) -> MemoryUser:  # noqa: A002 - as the people who call it say
        """The person whom a channel knows by this id, such as ``("telegram", "12345")``, made if there is none.

        A person who was merged into another one is this other person, and ``name`` then changes nothing. Otherwise
        ``name`` becomes the display name of a person who has none.
        """
        return await self._suspending_people.get_or_create(channel, id, name)

    def get_user(self, canonical_id: str) -> MemoryUser | None:
        """The record of this person, merged or not, or ``None``."""
        return run_without_loop(self._blocking_people.get(canonical_id))

    async def async_get_user(self, canonical_id: str) -> MemoryUser | None:
        """The record of this person, merged or not, or ``None``."""
        return await self._suspending_people.get(canonical_id)

    def list_users(self, limit: int = 100, *, after: str | None = None) -> Users:
        """Up to ``limit`` people, merged ones too, in the order in which they were first seen.

        With ``after=page.next``, the next ones.
        """
        return run_without_loop(self._blocking_people.listed(limit, after))

    async def async_list_users(self, limit: int = 100, *, after: str | None = None) -> Users:
        """Up to ``limit`` people, merged ones too, in the order in which they were first seen.

        With ``after=page.next``, the next ones.
        """
        return await self._suspending_people.listed(limit, after)

    def merge_users(self, source: str, target: str) -> MemoryUser:
        """Make two people one: everything of ``source`` is ``target``'s from now on, whom this returns.

        Where both have a fact with the same key, the target's stays, and the source's value becomes a part of its
        history. Counts add up. People who are one already stay as they are. ``InvalidEntryError`` if ``target`` was
        merged into ``source``, or is ``source``; ``UnknownRecordError`` for a stranger.
        """
        return run_without_loop(self._blocking_people.merge(source, target))

    async def async_merge_users(self, source: str, target: str) -> MemoryUser:
        """Make two people one: everything of ``source`` is ``target``'s from now on, whom this returns.

        Where both have a fact with the same key, the target's stays, and the source's value becomes a part of its
        history. Counts add up. People who are one already stay as they are. ``InvalidEntryError`` if ``target`` was
        merged into ``source``, or is ``source``; ``UnknownRecordError`` for a stranger.
        """
        return await self._suspending_people.merge(source, target)

    def forget_user(
        self,
        user_id: str,
        *,
        dry_run: bool = False,
        all_spaces: bool = False,
        progress: Progress | None = None,
    ) -> Receipt:
        """Erase a person, with all who were merged into them: delete everything of theirs in every facet of the store,
        and refuse what is written of them from now on, as :func:`firefly_memory.erasure.erase` does.

        ``user_id`` is the id of any of them; that of somebody who is not known is erased by itself. An erasure is for
        the whole database: if the person has facts or a record in another space too, it is a ``ConflictError``, unless
        ``all_spaces`` is set. ``dry_run`` only counts.
        """
        return run_without_loop(
            self._blocking_people.forget(user_id, dry_run=dry_run, all_spaces=all_spaces, progress=progress)
        )

    async def async_forget_user(
        self,
        user_id: str,
        *,
        dry_run: bool = False,
        all_spaces: bool = False,
        progress: Progress | None = None,
    ) -> Receipt:
        """Erase a person, with all who were merged into them: delete everything of theirs in every facet of the store,
        and refuse what is written of them from now on, as :func:`firefly_memory.erasure.erase` does.

        ``user_id`` is the id of any of them; that of somebody who is not known is erased by itself. An erasure is for
        the whole database: if the person has facts or a record in another space too, it is a ``ConflictError``, unless
        ``all_spaces`` is set. ``dry_run`` only counts.
        """
        return await self._suspending_people.forget(user_id, dry_run=dry_run, all_spaces=all_spaces, progress=progress)

    def update_preferences(self, user_id: str, preferences: Mapping[str, Any]) -> bool:
        """Store preferences of a person as facts, all or none; ``False`` for a stranger: then none is stored."""
        return run_without_loop(self._blocking_people.update_preferences(user_id, preferences))

    async def async_update_preferences(self, user_id: str, preferences: Mapping[str, Any]) -> bool:
        """Store preferences of a person as facts, all or none; ``False`` for a stranger: then none is stored."""
        return await self._suspending_people.update_preferences(user_id, preferences)

    def count_conversation(self, user_id: str) -> bool:
        """Count a conversation that begins now; ``False`` for a stranger."""
        return run_without_loop(self._blocking_people.count_conversation(user_id))

    async def async_count_conversation(self, user_id: str) -> bool:
        """Count a conversation that begins now; ``False`` for a stranger."""
        return await self._suspending_people.count_conversation(user_id)

    def get_user_context(self, user_id: str, agent_id: str | None = None) -> Context:
        """What is known of a person, as JSON values: ``user_id``, ``is_new``, ``display_name``, ``preferences``, up to
        100 ``facts``, ``history``, ``total_conversations``, ``last_conversation_at`` and ``first_seen``. Of a stranger
        it has ``user_id``, ``is_new``, ``facts`` and ``history``.
        """
        return run_without_loop(self._blocking_people.context(user_id, agent_id))

    async def async_get_user_context(self, user_id: str, agent_id: str | None = None) -> Context:
        """What is known of a person, as JSON values: ``user_id``, ``is_new``, ``display_name``, ``preferences``, up to
        100 ``facts``, ``history``, ``total_conversations``, ``last_conversation_at`` and ``first_seen``. Of a stranger
        it has ``user_id``, ``is_new``, ``facts`` and ``history``.
        """
        return await self._suspending_people.context(user_id, agent_id)

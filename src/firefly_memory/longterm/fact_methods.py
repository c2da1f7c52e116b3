"""The methods of ``MemoryService`` for facts, each of them for both modes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.longterm.fact_flows import FactFlows, Ids, Search, checked_limit
from firefly_memory.longterm.fact_form import fact_of
from firefly_memory.longterm.types import FactHits, Facts, History, MemoryFact, Scope
from firefly_memory.search.hits import Mode, checked_request


class FactMethods:
    """What a service does with facts."""

    _blocking_facts: FactFlows
    _suspending_facts: FactFlows

    def get_fact(
        self,
        key: str,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        as_of: datetime | None = None,
        default: Any = None,
    ) -> Any:
        """The value of the first fact with this key in the scopes of these ids: the session's, the user's, the agent's,
        and then the global ones. Falsy values count as well.

        The fact that is found counts the access. ``as_of`` gives what was true at that instant, and counts nothing.
        Without a fact it is ``default``.
        """
        return run_without_loop(self._blocking_facts.value(key, _ids(agent_id, user_id, session_id), as_of, default))

    async def async_get_fact(
        self,
        key: str,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        as_of: datetime | None = None,
        default: Any = None,
    ) -> Any:
        """The value of the first fact with this key in the scopes of these ids: the session's, the user's, the agent's,
        and then the global ones. Falsy values count as well.

        The fact that is found counts the access. ``as_of`` gives what was true at that instant, and counts nothing.
        Without a fact it is ``default``.
        """
        return await self._suspending_facts.value(key, _ids(agent_id, user_id, session_id), as_of, default)

    def find_fact(
        self,
        key: str,
        scope: Scope,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryFact | None:
        """The whole fact with this key in just one scope, or ``None``. Nothing is counted."""
        return run_without_loop(self._blocking_facts.find(key, scope, _ids(agent_id, user_id, session_id)))

    async def async_find_fact(
        self,
        key: str,
        scope: Scope,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryFact | None:
        """The whole fact with this key in just one scope, or ``None``. Nothing is counted."""
        return await self._suspending_facts.find(key, scope, _ids(agent_id, user_id, session_id))

    def read_fact(self, fact_id: str) -> MemoryFact | None:
        """The fact with this id, or ``None``. Nothing is counted."""
        return run_without_loop(self._blocking_facts.read(fact_id))

    async def async_read_fact(self, fact_id: str) -> MemoryFact | None:
        """The fact with this id, or ``None``. Nothing is counted."""
        return await self._suspending_facts.read(fact_id)

    def set_fact(
        self,
        key: str,
        value: Any,
        *,
        fact_type: str | None = None,
        scope: Scope | None = None,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        confidence: float | None = None,
        source_episode_id: str | None = None,
        overwrite: bool = True,
    ) -> MemoryFact:
        """Store a fact, and return it as it is now.

        Without a ``scope`` it is that of the id that is named: the session's, else the person's, else the agent's. So
        a fact is global only if no id is named, or if ``scope="global"`` is.

        If the scope has the key already, the fact keeps its id, gets the value, and is confirmed once more; its old
        value becomes a part of its :meth:`history`. ``overwrite=False`` leaves such a fact as it is. ``fact_type`` is
        ``"world_knowledge"`` and ``confidence`` 1.0, unless somebody says otherwise; an old fact then keeps its own.
        ``source_episode_id`` says which episode the value is from.

        ``user_id`` in another scope than ``"user"`` says whose data it is: :meth:`forget_user` then erases it.
        """
        written = run_without_loop(
            self._blocking_facts.set(
                key,
                value,
                scope=scope,
                ids=_ids(agent_id, user_id, session_id),
                fact_type=fact_type,
                confidence=confidence,
                source_episode_id=source_episode_id,
                overwrite=overwrite,
            )
        )
        return fact_of(written.row)

    async def async_set_fact(
        self,
        key: str,
        value: Any,
        *,
        fact_type: str | None = None,
        scope: Scope | None = None,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        confidence: float | None = None,
        source_episode_id: str | None = None,
        overwrite: bool = True,
    ) -> MemoryFact:
        """Store a fact, and return it as it is now.

        Without a ``scope`` it is that of the id that is named: the session's, else the person's, else the agent's. So
        a fact is global only if no id is named, or if ``scope="global"`` is.

        If the scope has the key already, the fact keeps its id, gets the value, and is confirmed once more; its old
        value becomes a part of its :meth:`history`. ``overwrite=False`` leaves such a fact as it is. ``fact_type`` is
        ``"world_knowledge"`` and ``confidence`` 1.0, unless somebody says otherwise; an old fact then keeps its own.
        ``source_episode_id`` says which episode the value is from.

        ``user_id`` in another scope than ``"user"`` says whose data it is: :meth:`forget_user` then erases it.
        """
        written = await self._suspending_facts.set(
            key,
            value,
            scope=scope,
            ids=_ids(agent_id, user_id, session_id),
            fact_type=fact_type,
            confidence=confidence,
            source_episode_id=source_episode_id,
            overwrite=overwrite,
        )
        return fact_of(written.row)

    def confirm_fact(self, fact_id: str) -> MemoryFact:
        """Say that a fact is right: its confidence moves a fifth of the way to 1.0.

        ``UnknownRecordError`` without the fact.
        """
        return run_without_loop(self._blocking_facts.confirm(fact_id))

    async def async_confirm_fact(self, fact_id: str) -> MemoryFact:
        """Say that a fact is right: its confidence moves a fifth of the way to 1.0.

        ``UnknownRecordError`` without the fact.
        """
        return await self._suspending_facts.confirm(fact_id)

    def contradict_fact(self, fact_id: str) -> MemoryFact:
        """Say that a fact is doubtful: its confidence is multiplied by 0.8. ``UnknownRecordError`` without it."""
        return run_without_loop(self._blocking_facts.contradict(fact_id))

    async def async_contradict_fact(self, fact_id: str) -> MemoryFact:
        """Say that a fact is doubtful: its confidence is multiplied by 0.8. ``UnknownRecordError`` without it."""
        return await self._suspending_facts.contradict(fact_id)

    def history(self, fact_id: str, limit: int = 100, after: str | None = None) -> History:
        """Up to ``limit`` values that a fact had before, oldest first; with ``after=page.next``, the next ones.

        ``UnknownRecordError`` without the fact.
        """
        return run_without_loop(self._blocking_facts.history(fact_id, limit, after))

    async def async_history(self, fact_id: str, limit: int = 100, after: str | None = None) -> History:
        """Up to ``limit`` values that a fact had before, oldest first; with ``after=page.next``, the next ones.

        ``UnknownRecordError`` without the fact.
        """
        return await self._suspending_facts.history(fact_id, limit, after)

    def list_facts(
        self,
        agent_id: str | None = None,
        user_id: str | None = None,
        limit: int = 100,
        *,
        session_id: str | None = None,
        after: str | None = None,
    ) -> Facts:
        """Up to ``limit`` facts that are global or of one of these ids: those of the largest confidence first, of
        equal ones the newest first. With ``after=page.next``, the next ones.
        """
        return run_without_loop(self._blocking_facts.listed(_ids(agent_id, user_id, session_id), limit, after))

    async def async_list_facts(
        self,
        agent_id: str | None = None,
        user_id: str | None = None,
        limit: int = 100,
        *,
        session_id: str | None = None,
        after: str | None = None,
    ) -> Facts:
        """Up to ``limit`` facts that are global or of one of these ids: those of the largest confidence first, of
        equal ones the newest first. With ``after=page.next``, the next ones.
        """
        return await self._suspending_facts.listed(_ids(agent_id, user_id, session_id), limit, after)

    def search_facts(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        fact_types: Iterable[str] | None = None,
        limit: int = 10,
        min_confidence: float | None = 0.5,
        mode: Mode = "fuzzy",
        after: str | None = None,
        explain: bool = False,
    ) -> FactHits:
        """Up to ``limit`` facts that are global or of one of these ids, and have what ``query`` asks for.

        ``fuzzy`` wants the words of the query in the key, or in the value, in their order, with anything between them;
        spaces, ``_`` and ``-`` are the same, and so are capital and small letters. Facts of the largest confidence come
        first, and ``after=hits.next`` goes on. A query without a word finds every fact.

        ``text`` compares words, ``semantic`` compares vectors, ``hybrid`` joins both, and ``best`` is hybrid where
        there are vectors: these give one list of up to 100, the best first. Nothing in a query is syntax. ``explain``
        adds to each hit how it came about.
        """
        return run_without_loop(
            self._blocking_facts.search(
                _ids(agent_id, user_id, session_id),
                Search(checked_request(query, checked_limit(limit), mode, explain), fact_types, min_confidence, after),
            )
        )

    async def async_search_facts(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        fact_types: Iterable[str] | None = None,
        limit: int = 10,
        min_confidence: float | None = 0.5,
        mode: Mode = "fuzzy",
        after: str | None = None,
        explain: bool = False,
    ) -> FactHits:
        """Up to ``limit`` facts that are global or of one of these ids, and have what ``query`` asks for.

        ``fuzzy`` wants the words of the query in the key, or in the value, in their order, with anything between them;
        spaces, ``_`` and ``-`` are the same, and so are capital and small letters. Facts of the largest confidence come
        first, and ``after=hits.next`` goes on. A query without a word finds every fact.

        ``text`` compares words, ``semantic`` compares vectors, ``hybrid`` joins both, and ``best`` is hybrid where
        there are vectors: these give one list of up to 100, the best first. Nothing in a query is syntax. ``explain``
        adds to each hit how it came about.
        """
        return await self._suspending_facts.search(
            _ids(agent_id, user_id, session_id),
            Search(checked_request(query, checked_limit(limit), mode, explain), fact_types, min_confidence, after),
        )

    def delete_fact(self, fact_id: str) -> bool:
        """Delete a fact with its history; whether it was there."""
        return run_without_loop(self._blocking_facts.delete([fact_id])) > 0

    async def async_delete_fact(self, fact_id: str) -> bool:
        """Delete a fact with its history; whether it was there."""
        return await self._suspending_facts.delete([fact_id]) > 0

    def delete_facts(self, fact_ids: Iterable[str]) -> int:
        """Delete facts with their history; how many of them there were."""
        return run_without_loop(self._blocking_facts.delete(fact_ids))

    async def async_delete_facts(self, fact_ids: Iterable[str]) -> int:
        """Delete facts with their history; how many of them there were."""
        return await self._suspending_facts.delete(fact_ids)

    def embed_missing(self) -> int:
        """Make the vectors of all facts of the store, in every space, that have none of this embedder; how many."""
        return run_without_loop(self._blocking_facts.embed_missing())

    async def async_embed_missing(self) -> int:
        """Make the vectors of all facts of the store, in every space, that have none of this embedder; how many."""
        return await self._suspending_facts.embed_missing()


def _ids(agent_id: str | None, user_id: str | None, session_id: str | None) -> Ids:
    return {"agent_id": agent_id, "user_id": user_id, "session_id": session_id}

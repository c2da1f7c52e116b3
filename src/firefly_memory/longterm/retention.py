"""Facts, their histories and people that are out of bounds, by the time when they were written last.

Facts of people go, and those of sessions. What is known to an agent or to everybody, and belongs to nobody, is no
history and stays; what it said before goes. People go, with all who stand for them, when they have no facts any more.
How many facts a person has says nothing, and they have no tokens: ``keep_last`` and ``max_tokens``, which are meant for
conversations, leave all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.people import USER_ROWS, VERSION_ROWS, fact_counts
from firefly_memory.longterm.rows import FACTS, FactRow, Filters, UserRow, VersionRow
from firefly_memory.people import Bounds, Counts, Doomed
from firefly_memory.protocols import StoreView

PAGE = 200


class _Fact(NamedTuple):
    """The state of a fact."""

    written_by: str
    versions: int


class _Version(NamedTuple):
    """The state of a version, which never changes: where it is."""

    fact_id: str
    number: int


class _Person(NamedTuple):
    """The state of a person, by the ids of all who stand for them."""

    ids: tuple[str, ...]
    before: datetime


class LongTermPruner:
    """A :class:`~firefly_memory.people.Pruner` of long-term memory."""

    def __init__(self, view: StoreView) -> None:
        log = view.log(LONG_TERM_LOG)
        self._facts, self._people = log.facts, log.people

    async def doomed(self, bounds: Bounds) -> AsyncIterator[Sequence[Doomed]]:
        if bounds.before is None:
            return
        out_of = _OutOf(bounds.before, bounds.owner)
        for find in (self._doomed_facts, self._doomed_versions, self._doomed_people):
            async for page in find(out_of):
                if page:
                    yield page

    async def delete(self, doomed: Sequence[Doomed]) -> Counts:
        """Each page of :meth:`doomed` has facts, versions or people."""
        first = doomed[0].state if doomed else None
        if isinstance(first, _Fact):
            return await self._delete_facts({each.name: each.state for each in doomed if isinstance(each.state, _Fact)})
        deleted = Counter[str]()
        if isinstance(first, _Version):
            names = [(each.state.fact_id, each.state.number) for each in doomed if isinstance(each.state, _Version)]
            deleted[VERSION_ROWS] = await self._facts.delete_versions(names)
        for each in doomed:
            if isinstance(each.state, _Person):
                deleted[USER_ROWS] += await self._people.delete(each.state.ids, each.state.before)
        return +deleted

    async def _delete_facts(self, states: Mapping[str, _Fact]) -> Counts:
        deleted = await self._facts.delete([*states], [each.written_by for each in states.values()])
        stayed = set[str]()
        if deleted < len(states):
            stayed = {row.id for row in await self._facts.read([*states])}
        versions = sum(state.versions for name, state in states.items() if name not in stayed)
        return +Counter({FACTS.kind: deleted, VERSION_ROWS: versions})

    async def _doomed_facts(self, out_of: _OutOf) -> AsyncIterator[Sequence[Doomed]]:
        async for rows in self._fact_pages(out_of.owner):
            out = [row for row in rows if out_of.fact(row)]
            numbers = await self._facts.count_versions_of([row.id for row in out]) if out else {}
            versions = {row.id: numbers.get(row.id, 0) for row in out}
            yield [
                Doomed(row.id, _Fact(row.written_by, versions[row.id]), fact_counts(versions[row.id])) for row in out
            ]

    async def _doomed_versions(self, out_of: _OutOf) -> AsyncIterator[Sequence[Doomed]]:
        """Those in facts that stay: others go with their facts."""
        async for rows in self._version_pages(out_of.owner):
            old = [row for row in rows if row.superseded_at < out_of.before]
            facts = await self._facts.read([*dict.fromkeys(row.fact_id for row in old)]) if old else []
            gone = {row.id for row in facts if out_of.fact(row)}
            states = [_Version(row.fact_id, row.number) for row in old if row.fact_id not in gone]
            yield [Doomed(f"{each.fact_id}/{each.number}", each, {VERSION_ROWS: 1}) for each in states]

    async def _doomed_people(self, out_of: _OutOf) -> AsyncIterator[Sequence[Doomed]]:
        async for rows in self._people_pages(out_of.owner):
            roots = [row for row in rows if not row.is_merged and row.updated_at < out_of.before]
            idle = [row for row in roots if not await self._keeps_facts(row, out_of)]
            same = await self._people.same_people([row.canonical_id for row in idle]) if idle else []
            groups = {row.word: tuple(each.id for each in same if each.stands_for == row.word) for row in idle}
            yield [
                Doomed(row.id, _Person(groups[row.word], out_of.before), {USER_ROWS: len(groups[row.word])})
                for row in idle
            ]

    async def _keeps_facts(self, row: UserRow, out_of: _OutOf) -> bool:
        """Whether a person has facts that are not out of bounds."""
        after = None
        while facts := await self._facts.list([row.word], Filters(), PAGE, after):
            if not all(map(out_of.fact, facts)):
                return True
            after = facts[-1].listed_at
        return False

    async def _fact_pages(self, owner: str | None) -> AsyncIterator[Sequence[FactRow]]:
        after = ""
        if owner is None:
            while rows := await self._facts.page(PAGE, after):
                yield rows
                after = rows[-1].id
        else:
            while ids := await self._facts.of_owner(owner, PAGE, after):
                yield await self._facts.read(ids)
                after = ids[-1]

    async def _version_pages(self, owner: str | None) -> AsyncIterator[Sequence[VersionRow]]:
        after = ("", 0)
        if owner is None:
            while rows := await self._facts.page_of_versions(PAGE, after):
                yield rows
                after = (rows[-1].fact_id, rows[-1].number)
        else:
            while names := await self._facts.versions_of_owner(owner, PAGE, after):
                found = [await self._facts.versions(fact, 1, number - 1) for fact, number in names]
                yield [row for rows in found for row in rows if (row.fact_id, row.number) in names]
                after = names[-1]

    async def _people_pages(self, owner: str | None) -> AsyncIterator[Sequence[UserRow]]:
        after = ""
        if owner is not None:
            yield await self._people.same_people([owner])
            return
        while rows := await self._people.page(PAGE, after):
            yield rows
            after = rows[-1].id


class _OutOf(NamedTuple):
    """The bounds."""

    before: datetime
    owner: str | None

    def fact(self, row: FactRow) -> bool:
        """Whether a fact is out of bounds."""
        is_of = row.owner is not None or row.fact_scope == "session"
        return is_of and row.newest < self.before and self.owner in (None, row.owner)

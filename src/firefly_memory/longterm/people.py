"""The facts of a person, and the person, to be erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence

from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.rows import FACTS
from firefly_memory.people import Counts, Owned
from firefly_memory.protocols import StoreView

VERSION_ROWS = "fact-versions"
USER_ROWS = "users"

_PAGE = 200


def fact_counts(versions: int) -> Counts:
    """The rows of a fact with its history."""
    return {FACTS.kind: 1, **({VERSION_ROWS: versions} if versions else {})}


class LongTermEraser:
    """An :class:`~firefly_memory.people.Eraser` of facts with their histories, in all spaces, and of what the person
    said before in the facts of others.

    Neither has an identity of its own: the person is refused, and somebody else may store a fact with the same key.
    """

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(LONG_TERM_LOG).facts
        self._found: set[str] = set()
        """Facts that it has found, with all versions: these are not found once more."""
        self._versions_found: dict[str, int] = {}
        """How many single versions it has found, by fact."""

    async def owned(self, owner: str) -> AsyncIterator[Sequence[Owned]]:
        after = ""
        while ids := await self._log.of_owner(owner, _PAGE, after):
            versions = await self._log.count_versions_of(ids)
            self._found.update(ids)
            yield [
                Owned(each, (), fact_counts(versions.get(each, 0) - self._versions_found.get(each, 0))) for each in ids
            ]
            after = ids[-1]
        async for names in self._versions(owner):
            yield [Owned(_version_name(*each), (), {VERSION_ROWS: 1}) for each in names]

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        """Each page of :meth:`owned` has either facts or versions."""
        if not owned:
            return {}
        if FACTS.kind not in owned[0].counts:
            names = [_version_of(each.name) for each in owned]
            return {VERSION_ROWS: await self._log.delete_versions(names)}
        there = await self._log.count_versions_of([each.name for each in owned])
        facts = await self._log.delete([each.name for each in owned])
        return {FACTS.kind: facts, VERSION_ROWS: sum(there.values()) if facts else 0}

    async def _versions(self, owner: str) -> AsyncIterator[Sequence[tuple[str, int]]]:
        """Those in facts that were not found."""
        after = ("", 0)
        while names := await self._log.versions_of_owner(owner, _PAGE, after):
            found = [each for each in names if each[0] not in self._found]
            for fact, _ in found:
                self._versions_found[fact] = self._versions_found.get(fact, 0) + 1
            if found:
                yield found
            after = names[-1]


class MergedPeople:
    """The :class:`~firefly_memory.people.Aliases` of people who were merged, in all spaces."""

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(LONG_TERM_LOG).people

    async def same(self, owners: Collection[str]) -> Collection[str]:
        return {row.canonical_id for row in await self._log.same_people([*owners])}

    async def owned(self, owners: Collection[str]) -> Sequence[Owned]:
        rows = await self._log.same_people([*owners])
        return [Owned(row.id, row.identities, {USER_ROWS: 1}) for row in rows]

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        return {USER_ROWS: await self._log.delete([each.name for each in owned])}


def _version_name(fact_id: str, number: int) -> str:
    return f"{fact_id}/{number}"


def _version_of(name: str) -> tuple[str, int]:
    fact_id, _, number = name.rpartition("/")
    return fact_id, int(number)

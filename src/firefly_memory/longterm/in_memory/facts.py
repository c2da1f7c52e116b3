"""Facts in the memory of this process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice

from firefly_memory.longterm.in_memory.kept import Kept, after
from firefly_memory.longterm.patterns import fits
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import (
    FACTS,
    FactPosition,
    FactRow,
    FactWrite,
    Filters,
    PersonMovedError,
    VersionRow,
    Written,
    as_said,
    identities_of,
    updated,
)
from firefly_memory.search.index import SearchIndex, Vector
from firefly_memory.search.index_language import IndexLanguage, another_language


class MemoryFactLog:
    """A :class:`~firefly_memory.longterm.log.FactLog` in dicts."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    @property
    def index(self) -> SearchIndex:
        return self._kept.index

    async def language(self) -> IndexLanguage | None:
        with self._kept.opened("language"):
            return self._kept.language

    async def set(self, writes: Sequence[FactWrite], language: IndexLanguage | None) -> Sequence[Written]:
        kept = self._kept
        with kept.opened("set_facts"):
            self._check_language(language)
            kept.tombstones.check("set_facts", {identity for each in writes for identity in each.row.identities})
            for each in writes:
                self._check_place(each.row)
            kept.language = kept.language or (language if writes else None)
            return [self._write(each) for each in writes]

    async def restore(self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None) -> bool:
        kept = self._kept
        with kept.opened("restore_fact"):
            self._check_language(language)
            kept.tombstones.check("restore_fact", identities_of(row, versions))
            self._check_place(row)
            if row.id in kept.facts or (row.scope, row.key) in kept.facts_at:
                return False
            kept.language = kept.language or language
            kept.put(row._replace(words=tuple(row.words)))
            for each in versions:
                kept.put_version(each)
            return True

    async def get(self, lookup: Lookup, key: str, now: datetime) -> FactRow | None:
        with self._kept.opened("get_fact"):
            row = self._kept.fact_seen(lookup, key)
            if row is None:
                return None
            row = self._kept.facts[row.id] = row._replace(access_count=row.access_count + 1, last_accessed=now)
            return _shown(row)

    async def find(self, lookup: Lookup, key: str) -> FactRow | None:
        with self._kept.opened("find_fact"):
            row = self._kept.fact_seen(lookup, key)
            return None if row is None else _shown(row)

    async def as_of(self, lookup: Lookup, key: str, at: datetime) -> FactRow | None:
        kept = self._kept
        with kept.opened("fact_as_of"):
            root = None if lookup.user is None else kept.root(lookup.user)
            words = lookup.words if root is None else lookup._replace(user=root.word).words
            ids = (kept.facts_at.get((word, key)) for word in words)
            found = (self._as_of(kept.facts[each], at) for each in ids if each is not None)
            return next((_shown(row) for row in found if row is not None), None)

    async def read(self, ids: Sequence[str]) -> Sequence[FactRow]:
        with self._kept.opened("read_facts"):
            return [self._kept.facts[each] for each in dict.fromkeys(ids) if each in self._kept.facts]

    async def page(self, limit: int, after_id: str) -> Sequence[FactRow]:
        with self._kept.opened("page_of_facts"):
            return [self._kept.facts[each] for each in after(self._kept.fact_ids, after_id, limit)]

    async def list(
        self,
        words: Sequence[str],
        filters: Filters,
        limit: int,
        position: FactPosition | None,
        person: str | None = None,
    ) -> Sequence[FactRow]:
        kept = self._kept
        with kept.opened("list_facts"):
            root = None if person is None else kept.root(person)
            words = words if root is None else [root.word if each == person else each for each in words]
            start = None if position is None else (-position.confidence, -position.newest.timestamp(), position.id)
            of_places = (kept.listed.get(word, []) for word in dict.fromkeys(words))
            parts = (each if start is None else each[bisect_right(each, start) :] for each in of_places)
            rows = (kept.facts[each[2]] for each in merge(*parts))
            return list(islice((_shown(row) for row in rows if _is_wanted(row, filters)), limit))

    async def of_owner(self, owner: str, limit: int, after_id: str) -> Sequence[str]:
        with self._kept.opened("facts_of_owner"):
            return after(self._kept.facts_of.get(owner, []), after_id, limit)

    async def count(self) -> int:
        with self._kept.opened("count_facts"):
            return len(self._kept.facts)

    async def confirm(self, space: str, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
        with self._kept.opened("confirm_fact"):
            row = self._kept.facts.get(fact_id)
            if row is None or row.space != space:
                return None
            confidence = row.confidence + (1.0 - row.confidence) / 5.0
            times = row.times_confirmed + 1
            return self._changed(row._replace(confidence=confidence, times_confirmed=times), write_id, now)

    async def contradict(self, space: str, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
        with self._kept.opened("contradict_fact"):
            row = self._kept.facts.get(fact_id)
            if row is None or row.space != space:
                return None
            times = row.times_contradicted + 1
            return self._changed(row._replace(confidence=row.confidence * 0.8, times_contradicted=times), write_id, now)

    async def versions(self, fact_id: str, limit: int, after_number: int) -> Sequence[VersionRow]:
        with self._kept.opened("versions_of_fact"):
            there = self._kept.versions.get(fact_id, {})
            return [there[each] for each in sorted(there) if each > after_number][:limit]

    async def delete(self, ids: Sequence[str], written_by: Sequence[str] | None = None) -> int:
        kept = self._kept
        with kept.opened("delete_facts"):
            there = [kept.facts[each] for each in dict.fromkeys(ids) if each in kept.facts]
            return sum(kept.remove(row.id) for row in there if written_by is None or row.written_by in written_by)

    async def delete_versions(self, names: Sequence[tuple[str, int]]) -> int:
        versions = self._kept.versions
        with self._kept.opened("delete_versions"):
            return sum(versions.get(fact, {}).pop(number, None) is not None for fact, number in names)

    async def versions_of_owner(self, owner: str, limit: int, after_name: tuple[str, int]) -> Sequence[tuple[str, int]]:
        with self._kept.opened("versions_of_owner"):
            found = (each for each in self._every_version(after_name) if each.owner == owner)
            return [(each.fact_id, each.number) for each in islice(found, limit)]

    async def page_of_versions(self, limit: int, after_name: tuple[str, int]) -> Sequence[VersionRow]:
        with self._kept.opened("page_of_versions"):
            return list(islice(self._every_version(after_name), limit))

    async def count_versions(self) -> int:
        with self._kept.opened("count_versions"):
            return sum(map(len, self._kept.versions.values()))

    async def count_versions_of(self, fact_ids: Sequence[str]) -> Mapping[str, int]:
        with self._kept.opened("count_versions"):
            numbers = {each: len(self._kept.versions.get(each, ())) for each in fact_ids}
            return {each: number for each, number in numbers.items() if number}

    async def without_vector(self, embedder: str, limit: int, after_id: str) -> Sequence[FactRow]:
        kept = self._kept
        with kept.opened("facts_without_vector"):
            later = kept.fact_ids[bisect_right(kept.fact_ids, after_id) :]
            lacking = (each for each in later if not kept.index.has_vector(each, embedder))
            return [kept.facts[each] for each in islice(lacking, limit)]

    async def add_vectors(self, vectors: Mapping[str, Vector], written_by: Sequence[str] | None = None) -> int:
        facts = self._kept.facts
        with self._kept.opened("add_vectors"):
            these = [each for each in vectors if each in facts]
            if written_by is not None:
                these = [each for each in these if facts[each].written_by in written_by]
            return sum(self._kept.put_vector(each, vectors[each]) for each in these)

    async def vectors_by_embedder(self) -> Mapping[str, int]:
        with self._kept.opened("count_vectors"):
            return self._kept.index.vectors_by_embedder()

    async def delete_vectors(self, embedder: str, limit: int, after_id: str) -> Sequence[str]:
        with self._kept.opened("delete_vectors"):
            return self._kept.index.delete_vectors(embedder, limit, after_id)

    async def set_language(self, language: IndexLanguage) -> None:
        with self._kept.opened("set_language"):
            self._kept.language = language

    async def rewrite(self, rows: Sequence[FactRow]) -> int:
        kept = self._kept
        with kept.opened("rewrite_facts"):
            for row in rows:
                there = kept.facts.get(row.id)
                if there is not None and (there.written_by, there.scope) == (row.written_by, row.scope):
                    new = kept.facts[row.id] = there._replace(searchable=row.searchable, words=tuple(row.words))
                    kept.index.replace_words(there, new)
        return len(rows)

    async def damage(self) -> Sequence[str]:
        return []

    async def mend(self) -> None:
        """Nothing can be wrong."""

    def _check_language(self, language: IndexLanguage | None) -> None:
        if language is not None and self._kept.language not in (None, language):
            raise another_language(FACTS, self._kept.language, language)

    def _check_place(self, row: FactRow) -> None:
        root = self._kept.root(row.scope)
        if root is not None and root.word != row.scope:
            raise PersonMovedError(row.scope, root)

    def _write(self, write: FactWrite) -> Written:
        kept, row = self._kept, write.row
        there = kept.facts_at.get((row.scope, row.key))
        if there is not None and not write.overwrite:
            return Written(kept.facts[there], "skipped")
        if there is None:
            kept.put(row)
        else:
            row, version = updated(kept.facts[there], write)
            kept.put(row)
            if version is not None:
                kept.put_version(version)
        if write.vector is not None:
            kept.put_vector(row.id, write.vector)
        return Written(row, "created" if there is None else "updated")

    def _changed(self, row: FactRow, write_id: str, now: datetime) -> FactRow:
        row = row._replace(written_by=write_id, newest=now)
        self._kept.put(row)
        return row

    def _as_of(self, row: FactRow, at: datetime) -> FactRow | None:
        if row.valid_from <= at:
            return row
        versions = [each for each in self._kept.versions.get(row.id, {}).values() if each.number <= row.versions]
        said = [each for each in versions if each.valid_from <= at < each.superseded_at]
        if not said:
            return None
        last = max(said, key=lambda each: (each.valid_from, each.number))
        return as_said(row, last)

    def _every_version(self, later_than: tuple[str, int]) -> Iterator[VersionRow]:
        for fact_id in sorted(each for each in self._kept.versions if each >= later_than[0]):
            of_fact = self._kept.versions[fact_id]
            for number in sorted(of_fact):
                if (fact_id, number) > later_than:
                    yield of_fact[number]


def _is_wanted(row: FactRow, filters: Filters) -> bool:
    if filters.min_confidence is not None and row.confidence < filters.min_confidence:
        return False
    if filters.types is not None and row.fact_type not in filters.types:
        return False
    return fits(filters.pattern, row.searchable)


def _shown(row: FactRow) -> FactRow:
    return row._replace(words=())

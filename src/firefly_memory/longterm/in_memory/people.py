"""People in the memory of this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from firefly_memory.cursors import Moment
from firefly_memory.longterm.in_memory.kept import Kept
from firefly_memory.longterm.log import Met
from firefly_memory.longterm.places import Place
from firefly_memory.longterm.rows import Merged, UserRow, absorbed, already_one, joined, moved


class MemoryPeopleLog:
    """A :class:`~firefly_memory.longterm.log.PeopleLog` in dicts."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def meet(self, row: UserRow) -> Met:
        kept = self._kept
        with kept.opened("get_or_create_user"):
            root = kept.root(row.word)
            kept.tombstones.check("get_or_create_user", row.identities)
            if root is None:
                new = row._replace(telegram_id=None, email=None) if self._has_contact_of(row) else row
                kept.put_person(new)
                return Met(new, is_new=True)
            if root.word == row.word and not root.display_name and row.display_name:
                root = root._replace(display_name=row.display_name, updated_at=row.updated_at)
                kept.put_person(root)
            return Met(root, is_new=False)

    async def restore(self, row: UserRow) -> bool:
        kept = self._kept
        with kept.opened("restore_user"):
            kept.tombstones.check("restore_user", row.identities)
            if row.id in kept.people or row.word in kept.people_by_word or self._has_contact_of(row):
                return False
            kept.put_person(row)
            return True

    async def find(self, word: str) -> UserRow | None:
        with self._kept.opened("find_user"):
            found = self._kept.people_by_word.get(word)
            return None if found is None else self._kept.people[found]

    async def root(self, word: str) -> UserRow | None:
        with self._kept.opened("find_user"):
            return self._kept.root(word)

    async def count_conversation(self, word: str, write_id: str, now: datetime) -> UserRow | None:
        with self._kept.opened("count_conversation"):
            root = self._kept.root(word)
            if root is None or root.written_by == write_id:
                return root
            root = root._replace(
                total_conversations=root.total_conversations + 1,
                last_conversation_at=now,
                written_by=write_id,
                updated_at=now,
            )
            self._kept.put_person(root)
            return root

    async def merge(self, source: str, target: str, write_id: str, now: datetime) -> Merged:
        kept = self._kept
        with kept.opened("merge_users"):
            from_root, to_root = kept.root(source), kept.root(target)
            if from_root is None:
                return Merged(None, "unknown source")
            if to_root is None:
                return Merged(None, "unknown target")
            if from_root.id == to_root.id:
                return already_one(source, target, to_root)
            kept.tombstones.check("merge_users", {*from_root.identities, *to_root.identities})
            self._move_facts(from_root, to_root, now)
            new_source, new_target = joined(from_root, to_root, write_id, now)
            for each in [each for each in kept.people.values() if each.stands_for == from_root.word]:
                kept.put_person(each._replace(stands_for=to_root.word, merged_into_id=to_root.id, updated_at=now))
            kept.put_person(new_source)
            kept.put_person(new_target)
            return Merged(new_target)

    async def list(self, space: str, limit: int, after: Moment | None) -> Sequence[UserRow]:
        with self._kept.opened("list_users"):
            rows = sorted((row.first_seen, row.id) for row in self._kept.people.values() if row.space == space)
            later = rows if after is None else [each for each in rows if each > (after.at, after.name)]
            return [self._kept.people[name] for _, name in later[:limit]]

    async def page(self, limit: int, after: str) -> Sequence[UserRow]:
        with self._kept.opened("page_of_users"):
            return [self._kept.people[each] for each in sorted(self._kept.people) if each > after][:limit]

    async def read(self, ids: Sequence[str]) -> Sequence[UserRow]:
        with self._kept.opened("read_users"):
            return [self._kept.people[each] for each in dict.fromkeys(ids) if each in self._kept.people]

    async def same_people(self, canonical_ids: Sequence[str]) -> Sequence[UserRow]:
        with self._kept.opened("same_people"):
            people = self._kept.people.values()
            words = {row.stands_for for row in people if row.canonical_id in canonical_ids}
            return [row for row in people if row.stands_for in words]

    async def count(self) -> int:
        with self._kept.opened("count_users"):
            return len(self._kept.people)

    async def delete(self, ids: Sequence[str], idle_since: datetime | None = None) -> int:
        kept = self._kept
        with kept.opened("delete_users"):
            there = [kept.people[each] for each in dict.fromkeys(ids) if each in kept.people]
            if idle_since is not None:
                there = [row for row in there if self._is_idle(row, idle_since)]
            words = {row.word for row in there}
            for row in [row for row in kept.people.values() if row.word in words or row.stands_for in words]:
                for fact in list(self._facts_in(row.word)):
                    kept.remove(fact)
                kept.remove_person(row)
            return len(there)

    def _move_facts(self, source: UserRow, target: UserRow, now: datetime) -> None:
        kept, place = self._kept, Place(target.space, "user", target.canonical_id)
        for fact_id in list(self._facts_in(source.word)):
            row = kept.facts[fact_id]
            there = kept.facts_at.get((target.word, row.key))
            if there is None:
                kept.put(moved(row, place))
                continue
            versions = [each for number, each in sorted(kept.versions.get(fact_id, {}).items())]
            absorbing, added = absorbed(
                kept.facts[there], row, [each for each in versions if each.number <= row.versions], now
            )
            kept.remove(fact_id)
            kept.put(absorbing)
            for version in added:
                kept.put_version(version)
        self._give_to(target.canonical_id, source)

    def _give_to(self, owner: str, source: UserRow) -> None:
        """What is the source's data in other places of the space, and the versions of all facts that are."""
        kept = self._kept
        for fact_id in list(kept.facts_of.get(source.canonical_id, ())):
            if kept.facts[fact_id].space == source.space:
                kept.put(kept.facts[fact_id]._replace(owner=owner))
        for fact_id, versions in kept.versions.items():
            if fact_id in kept.facts and kept.facts[fact_id].space == source.space:
                for number, version in versions.items():
                    if version.owner == source.canonical_id:
                        versions[number] = version._replace(owner=owner)

    def _is_idle(self, row: UserRow, since: datetime) -> bool:
        root = self._kept.root(row.word)
        return root is not None and root.updated_at < since and root.word not in self._kept.listed

    def _facts_in(self, word: str) -> Iterator[str]:
        return (each[2] for each in self._kept.listed.get(word, ()))

    def _has_contact_of(self, row: UserRow) -> bool:
        contacts = [("telegram_id", row.telegram_id), ("email", row.email)]
        others: Iterable[UserRow] = (each for each in self._kept.people.values() if each.space == row.space)
        return any(value is not None and getattr(other, name) == value for other in others for name, value in contacts)

"""Facts and people on their way from one store to another.

An item has what somebody stored, and its counters. The fields by which a fact is found are made anew, by the language
of the target's index; its vectors are made by the target, in its own time.
"""

from __future__ import annotations

from typing import NamedTuple

from firefly_memory.errors import ConflictError, InvalidEntryError
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.moving_items import (
    fact_as_json,
    fact_from_json,
    id_of_fact,
    person_as_json,
    person_from_json,
    root_word_of,
    version_as_json,
    version_from_json,
)
from firefly_memory.longterm.person_form import damaged_user
from firefly_memory.longterm.places import person_place
from firefly_memory.longterm.rows import FactRow, Filters, PersonMovedError, UserRow, VersionRow, moved
from firefly_memory.moving import Item, Kind, Placed, Walk, Writing, as_sorted_json
from firefly_memory.protocols import StoreView
from firefly_memory.search.index_language import ENGLISH, IndexLanguage
from firefly_memory.search.languages import checked_language
from firefly_memory.search.words import FORM

_PAGE = 200


async def people_of(walk: Walk, _: None) -> Placed:
    """All people by their ids: first those who stand for themselves, so that the others find them."""
    log = walk.view.log(LONG_TERM_LOG).people
    for merged in (False, True):
        after = ""
        while page := await log.page(_PAGE, after):
            rows = [row for row in page if row.is_merged is merged]
            roots = {row.id: row for row in await log.read([str(row.merged_into_id) for row in rows])} if merged else {}
            for row in rows:
                root = roots.get(str(row.merged_into_id))
                if merged and root is None:
                    if row not in await log.read([row.id]):
                        continue  # both were deleted since
                    raise damaged_user(row.id, LookupError("the person for whom it stands is missing"))
                yield (merged, row.id), person_as_json(row, root)
            after = page[-1].id


async def facts_of(walk: Walk, _: None) -> Placed:
    """All facts, by their ids."""
    log, after = walk.view.log(LONG_TERM_LOG).facts, ""
    kept = await log.language()
    while page := await log.page(_PAGE, after):
        for row in page:
            yield row.id, fact_as_json(row, ENGLISH if kept is None else kept.language)
        after = page[-1].id


async def versions_of(walk: Walk, item: Item) -> Placed:
    """What a fact said before."""
    log, after = walk.view.log(LONG_TERM_LOG).facts, 0
    fact_id = id_of_fact(item)
    while after < item["versions"] and (page := await log.versions(fact_id, _PAGE, after)):
        for row in page:
            if row.number <= item["versions"]:
                yield row.number, version_as_json(item, row)
        after = page[-1].number


def name_of_fact(item: Item) -> str:
    return f"fact {item['id']!r} with the key {item['key']!r}"


def name_of_person(item: Item) -> str:
    return f"person {item['canonical_id']!r} of the space {item['space']!r}"


def _without_claims(item: Item, untrusted: bool) -> tuple[Item, int]:
    """Let an untrusted person be nobody but the one whom the id names: who is merged into somebody reads that one's
    facts, and is erased with them. A contact would be missing for whose it is, and a name would be shown for good."""
    if not untrusted:
        return item, 0
    channel, _, contact = str(item["canonical_id"]).partition(":")
    own = {f"{name}_id" if name == "telegram" else name: contact for name in ("telegram", "email") if name == channel}
    claims = {"merged_into": None, "merged_into_id": None, "display_name": None, "telegram_id": None, "email": None}
    plain = {**item, **claims, **own}
    return plain, int(plain != item)


def _without_language(item: Item) -> str:
    """Two stores may have the same fact with words of different languages."""
    return as_sorted_json({name: value for name, value in item.items() if name != "language"})


USER = Kind(
    name="user",
    version=1,
    since="firefly-memory 0.2",
    plural="users",
    noun="people",
    read=people_of,
    selected_by="space",
    describe=name_of_person,
    from_archive=_without_claims,
)

VERSION = Kind(
    name="fact-version",
    version=1,
    since="firefly-memory 0.2",
    plural="fact_versions",
    noun="earlier values",
    read=versions_of,
    selected_by="space",
    describe=lambda item: f"version {item['number']} of fact {item['fact_id']!r}",
)

FACT = Kind(
    name="fact",
    version=1,
    since="firefly-memory 0.2",
    plural="facts",
    noun="facts",
    read=facts_of,
    selected_by="space",
    describe=name_of_fact,
    canonical=_without_language,
    within=(VERSION,),
    # An untrusted archive keeps its scopes and owners: without them, a fact would be seen by everybody. The writer
    # checks every field, of copies as well, and replaces nothing that is there.
)

KINDS = (USER, FACT)


class _Taken(NamedTuple):
    """A fact that is to be written when all its versions have come."""

    item: Item
    row: FactRow
    versions: list[VersionRow]
    is_there: bool
    """Whether the target has an equal one."""
    lacks: list[VersionRow]
    """What the target lacks of it."""


class LongTermWriter:
    """Writes people, and facts with their versions. What is there already is left; in a merge, a fact is replaced by
    the one with its id."""

    def __init__(self, view: StoreView, writing: Writing) -> None:
        log = view.log(LONG_TERM_LOG)
        self._facts, self._people = log.facts, log.people
        self._replace = writing.replace
        self._language: IndexLanguage | None = None
        self._taken: _Taken | None = None

    async def take(self, kind: str, item: Item, *, there: bool = False) -> None:
        if kind == VERSION.name:
            self._add(item, there)
            return
        await self.finish()
        if kind == FACT.name:
            row = fact_from_json(item, (await self._language_for(item)).language)
            self._taken = _Taken(item, row, [], there, [])
        elif not there:
            await self._write_person(item)

    async def flush(self) -> None:
        """A fact is written as a whole: more versions of it may come."""

    async def finish(self) -> None:
        taken, self._taken = self._taken, None
        if taken is None or (taken.is_there and not taken.lacks):
            return
        there = await self._facts.read([taken.row.id]) if taken.is_there or self._replace else ()
        if there and there[0].scope != await self._place_of(taken.row):
            raise ConflictError(
                f"{name_of_fact(taken.item)} belongs to another person in the target than in the source, where the two "
                "are merged; merge them in the target first"
            )
        if there:
            await self._facts.delete([taken.row.id])
        await self._restore(taken.row, taken.versions)

    async def abandon(self) -> None:
        """Facts that are written are whole."""
        self._taken = None

    def _add(self, item: Item, there: bool) -> None:
        taken = self._taken
        if taken is None or item["fact_id"] != taken.item["id"]:
            raise ValueError("it is of another fact than the line before")
        row = version_from_json(item)
        last = taken.versions[-1].number if taken.versions else 0
        if not last < row.number <= taken.row.versions:
            raise ValueError(f"it comes after version {last} of a fact that has {taken.row.versions}")
        taken.versions.append(row)
        if not there:
            taken.lacks.append(row)

    async def _place_of(self, row: FactRow) -> str:
        """The word of the place where the target keeps the fact: of the person for whom the fact's one stands there."""
        root = await self._people.root(row.scope) if row.fact_scope == "user" else None
        return row.scope if root is None else root.word

    async def _restore(self, row: FactRow, versions: list[VersionRow]) -> None:
        """``False`` of the store means that it has a fact with the id, or in the place: that one stays."""
        while True:
            try:
                # Always with the language: somebody may have made the index again since it was read.
                await self._facts.restore(row, versions, self._language)
            except PersonMovedError as merged:
                row = moved(row, person_place(row.space, merged.row.canonical_id))
            else:
                return

    async def _language_for(self, item: Item) -> IndexLanguage:
        if self._language is None:
            kept = await self._facts.language()
            # That of the target; if it has no facts yet, that of the source.
            language = checked_language(item["language"]) if kept is None else kept.language
            self._language = IndexLanguage(language, FORM)
        return self._language

    async def _write_person(self, item: Item) -> None:
        row: UserRow | None = person_from_json(item)
        assert row is not None
        if item["merged_into"] is not None:
            row = await self._merged(row, item)
        if row is None or await self._people.restore(row) or await self._people.find(row.word) is not None:
            return
        raise ConflictError(
            f"{name_of_person(item)} has the id, the telegram_id or the email of another person in the target; "
            "merge the two people there, or delete one of them"
        )

    async def _merged(self, row: UserRow, item: Item) -> UserRow | None:
        """A person who stands for another one; ``None`` if the person is there already."""
        if await self._people.find(row.word) is not None:
            return None
        root = await self._people.root(root_word_of(item))
        if root is None:
            raise InvalidEntryError("merged_into", f"the person {item['merged_into']!r} is not there")
        if await self._facts.list([row.word], Filters(), 1, None):
            raise ConflictError(
                f"{name_of_person(item)} was merged into {item['merged_into']!r}, and has facts of its own in the "
                "target; merge the two people there first"
            )
        return row._replace(merged_into_id=root.id, stands_for=root.word)

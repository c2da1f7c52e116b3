"""The erasure of a person of one space, who may have the same id in others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from firefly_memory.erasing import Progress, Receipt, erase_from, ids_of_person
from firefly_memory.errors import ConflictError
from firefly_memory.identifiers import stored_name
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.protocols import StoreView

_PAGE = 1_000


async def forgotten(
    view: StoreView, space: str, user_id: str, *, dry_run: bool, all_spaces: bool, progress: Progress | None
) -> Receipt:
    """Erase a person, but not unasked in other spaces: an erasure is of the whole database."""
    view.log(LONG_TERM_LOG)  # a store without long-term memory says so, before anything is deleted
    ids = await ids_of_person(view, stored_name("user_id", user_id))
    if not all_spaces and await _is_in_another(view, space, ids):
        raise ConflictError(
            "nothing was deleted: this person has facts or a record in another space too, and an erasure is for the "
            "whole database; all_spaces=True erases the person in all spaces"
        )
    return await erase_from(view, user_id, dry_run=dry_run, progress=progress)


async def _is_in_another(view: StoreView, space: str, ids: Sequence[str]) -> bool:
    log = view.log(LONG_TERM_LOG)
    if any(row.space != space for row in await log.people.same_people(ids)):
        return True
    async for names in _facts_of(view, ids):
        if any(row.space != space for row in await log.facts.read(names)):
            return True
    return False


async def _facts_of(view: StoreView, ids: Sequence[str]) -> AsyncIterator[Sequence[str]]:
    """The facts that belong to a person, and those that did before."""
    log = view.log(LONG_TERM_LOG).facts
    for owner in ids:
        last = ""
        while names := await log.of_owner(owner, _PAGE, last):
            yield names
            last = names[-1]
        after = ("", 0)
        while versions := await log.versions_of_owner(owner, _PAGE, after):
            yield [*dict.fromkeys(fact for fact, _ in versions)]
            after = versions[-1]

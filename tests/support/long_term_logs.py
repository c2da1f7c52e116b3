"""The long-term memory of a store for tests of one backend: rows, and the operations of a store in one mode."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from firefly_memory import EntryStore
from firefly_memory.codec import TEXT
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.identifiers import stored_name
from firefly_memory.longterm.fact_form import NewFact
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.person_form import new_user_row
from firefly_memory.longterm.places import Place, person_place
from firefly_memory.longterm.rows import FactRow, FactWrite, UserRow
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode

START = datetime(2026, 5, 6, 7, 8, 9, 101112, tzinfo=UTC)
ENGLISH = IndexLanguage("english", FORM)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def fact(
    key: str,
    value: Any = "value",
    *,
    space: str = "default",
    scope: str = "global",
    scope_id: str = "",
    confidence: float = 1.0,
    fact_type: str = "world_knowledge",
    owner: str | None = None,
    source: str | None = None,
    second: float = 0,
) -> FactRow:
    """A new fact, written so many seconds after :data:`START`. That of a person is this person's data."""
    place = Place(space, scope, stored_name("id", scope_id) if scope_id else "")  # type: ignore[arg-type]
    whose = place.scope_id if scope == "user" else owner
    new = NewFact(place, key, str(TEXT.encode(value, "value")), fact_type, confidence, source, whose, at(second))
    return new.row("english")


def written(
    row: FactRow,
    vector: Vector | None = None,
    *,
    overwrite: bool = True,
    sets_type: bool = False,
    sets_confidence: bool = False,
) -> FactWrite:
    return FactWrite(row, vector, overwrite, sets_type, sets_confidence)


def person(
    channel_id: str, channel: str = "chat", *, space: str = "default", name: str = "", second: int = 0
) -> UserRow:
    """A person who was met so many seconds after :data:`START`."""
    return new_user_row(space, channel, channel_id, name or None, at(second))


def word_of(canonical_id: str, space: str = "default") -> str:
    return person_place(space, canonical_id).word


class LongTerm:
    """The operations of a store in one mode: ``await LongTerm(store, mode)("facts", "page", 10, "")``."""

    def __init__(self, store: EntryStore, mode: Mode = Mode.SUSPENDING) -> None:
        self._store = store
        self._mode = mode

    async def __call__(self, of: str, operation: str, *arguments: Any) -> Any:
        if self._mode is Mode.BLOCKING:
            log = getattr(self._store.blocking.log(LONG_TERM_LOG), of)
            return run_without_loop(getattr(log, operation)(*arguments))
        return await getattr(getattr(self._store.suspending.log(LONG_TERM_LOG), of), operation)(*arguments)

    async def facts(self, operation: str, *arguments: Any) -> Any:
        return await self("facts", operation, *arguments)

    async def people(self, operation: str, *arguments: Any) -> Any:
        return await self("people", operation, *arguments)

    async def set(self, row: FactRow, vector: Vector | None = None, **options: bool) -> Any:
        """Store one fact."""
        (one,) = await self.facts("set", [written(row, vector, **options)], ENGLISH)
        return one

    async def meet(self, *names: str) -> list[UserRow]:
        """People of the channel ``chat``."""
        return [(await self.people("meet", person(name))).row for name in names]

    async def facts_index(self, question: str, *arguments: Any) -> Any:
        """Ask the index of facts."""
        view = self._store.blocking if self._mode is Mode.BLOCKING else self._store.suspending
        answer = getattr(view.log(LONG_TERM_LOG).facts.index, question)(*arguments)
        return run_without_loop(answer) if self._mode is Mode.BLOCKING else await answer

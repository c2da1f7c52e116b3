"""How facts are written: their words and vectors, and the person for whom somebody stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from logging import getLogger
from typing import TypeVar

from firefly_memory.errors import EmbedderError
from firefly_memory.longterm.fact_form import NewFact
from firefly_memory.longterm.keeping import embedded_text
from firefly_memory.longterm.log import FactLog
from firefly_memory.longterm.options import Options
from firefly_memory.longterm.places import person_place
from firefly_memory.longterm.rows import FACTS, FactRow, FactWrite, PersonMovedError, Written, moved
from firefly_memory.search.embedding import embedded
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage, LanguageError, LanguageInUse
from firefly_memory.search.searching import Work
from firefly_memory.search.words import FORM

T = TypeVar("T")

_FEW = 2_000
"""Characters whose words are made at once: to do it beside the event loop would take longer."""

_logger = getLogger("firefly_memory.longterm")


class FactWriter:
    """Writes the facts of one service in one mode."""

    def __init__(self, options: Options, work: Work) -> None:
        self._options = options
        self._work = work
        self.language = LanguageInUse(FACTS, options.language, in_transaction=options.in_transaction)

    async def write(
        self,
        log: FactLog,
        facts: Sequence[NewFact],
        *,
        overwrite: bool = True,
        sets_type: bool = True,
        sets_confidence: bool = True,
    ) -> Sequence[Written]:
        """Store facts, all of them or none."""
        as_write = partial(FactWrite, overwrite=overwrite, sets_type=sets_type, sets_confidence=sets_confidence)
        try:
            return await self._write(log, facts, as_write)
        except LanguageError:  # the index has been made again in another language, which is read now
            self.language.forget()
            return await self._write(log, facts, as_write)

    async def _write(
        self, log: FactLog, facts: Sequence[NewFact], as_write: Callable[..., FactWrite]
    ) -> Sequence[Written]:
        language = await self.language.read(log)
        rows = await self._computed(facts, lambda: [each.row(language) for each in facts])
        vectors = await self._vectors(rows)
        while True:
            writes = [as_write(row, vectors.get(row.id)) for row in rows]
            try:
                written = await log.set(writes, IndexLanguage(language, FORM))
            except PersonMovedError as merged:
                rows = [_of_root(row, merged) for row in rows]
            else:
                self.language.keep(language)
                return written

    async def _computed(self, facts: Sequence[NewFact], make: Callable[[], T]) -> T:
        return make() if sum(len(each.value) for each in facts) <= _FEW else await self._work(make)

    async def _vectors(self, rows: Sequence[FactRow]) -> dict[str, Vector]:
        """None if the embedder fails, which costs no fact."""
        if self._options.embedder is None:
            return {}
        try:
            return await embedded(self._options.embedder, {row.id: embedded_text(row) for row in rows}, self._work)
        except EmbedderError as error:
            _logger.warning("%d facts are stored without vectors, embed_missing() makes them: %s", len(rows), error)
            return {}


def _of_root(row: FactRow, merged: PersonMovedError) -> FactRow:
    """A fact in the place of the person for whom another one stands, if it was to be stored in that one's."""
    return moved(row, person_place(row.space, merged.row.canonical_id)) if row.scope == merged.word else row

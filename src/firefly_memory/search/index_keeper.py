"""An :class:`~firefly_memory.search.keeping.IndexKeeper` for the rows of any facet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Generic, Protocol, TypeAlias, TypeVar

from firefly_memory.errors import ConfigurationError
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.embedding import embedded
from firefly_memory.search.index import Subject, Vector
from firefly_memory.search.index_language import HasLanguage, IndexLanguage
from firefly_memory.search.keeping import IndexState
from firefly_memory.search.languages import checked_language
from firefly_memory.search.searching import Work
from firefly_memory.search.words import FORM

_PAGE = 200
_WALKS = 5
"""A writer who has not seen the new language yet may store words of the old one, so the walk is repeated."""


class Row(Protocol):
    """A row of a facet."""

    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Row)


class KeptRows(HasLanguage, Protocol[R]):
    """What the keeper asks of a facet. Each call is done completely or not at all."""

    async def page(self, limit: int, after: str) -> Sequence[R]:
        """The first ``limit`` rows with ids after ``after``, by id in the order of code points."""

    async def without_vector(self, embedder: str, limit: int, after: str) -> Sequence[R]:
        """The first ``limit`` rows with ids after ``after`` that have no vector of this embedder, by id."""

    async def add_vectors(self, vectors: Mapping[str, Vector]) -> int:
        """Store vectors of rows by id, for rows that are still there and have none of this embedder; how many."""

    async def vectors_by_embedder(self) -> Mapping[str, int]:
        """How many vectors there are of each embedder."""

    async def delete_vectors(self, embedder: str, limit: int, after: str) -> Sequence[str]:
        """Delete the vectors that the first ``limit`` rows after the id ``after`` have of an embedder; the ids of these
        rows, in the order of the store."""

    async def set_language(self, language: IndexLanguage) -> None:
        """Say what the words of the index are made by from now on."""

    async def rewrite(self, rows: Sequence[R]) -> int:
        """Replace the searchable form and the words of these rows, as far as they are there; how many are given."""

    async def damage(self) -> Sequence[str]:
        """What is wrong with the index, apart from the words of its rows, in sentences."""

    async def mend(self) -> None:
        """Make that right. It takes the time of a full-text table that is made again, and does not block readers."""


AddVectors: TypeAlias = Callable[[Sequence[R], Mapping[str, Vector]], Awaitable[int]]


class RowIndexKeeper(Generic[R]):
    """The index of the rows of one facet.

    ``made_again`` gives a row with the words that its text has in a language today. ``text`` is what its vector is
    made of. ``add`` stores the vectors of rows, where it matters how these were when their texts were read: where a
    row changes, its vector is to be that of the new text.
    """

    def __init__(
        self,
        subject: Subject,
        rows: KeptRows[R],
        work: Work,
        *,
        made_again: Callable[[R, str], R],
        text: Callable[[R], str],
        add: AddVectors[R] | None = None,
    ) -> None:
        self.kind = subject.kind
        self._has_vectors = subject.has_vectors
        self._rows = rows
        self._work = work
        self._made_again = made_again
        self._text = text
        self._add = add or (lambda _, vectors: rows.add_vectors(vectors))

    async def needs_rebuild(self) -> bool:
        kept = await self._rows.language()
        if kept is None:
            return False
        rows = await self._rows.page(_PAGE, "")
        return kept.form != FORM or bool(await self._outdated(rows, kept.language))

    async def state(self, embedder: Embedder | None) -> IndexState:
        kept = await self._rows.language()
        rows = outdated = lacking = 0
        async for page in self._pages():
            rows += len(page)
            outdated += len(await self._outdated(page, kept.language)) if kept is not None else len(page)
        counts = embedder is not None and self._has_vectors
        if embedder is not None and counts:
            async for page in self._without_vector(embedder):
                lacking += len(page)
        problems = list(await self._rows.damage())
        if kept is None and rows:
            problems.append("it is not known which language the words are of")
        elif kept is not None and kept.form != FORM:
            problems.append(f"the words were made by the rules {kept.form}, and this version has the rules {FORM}")
        return IndexState(
            kind=self.kind,
            rows=rows,
            language=None if kept is None else kept.language,
            outdated=outdated,
            without_vector=lacking if counts else None,
            problems=tuple(problems),
            vectors=await self._rows.vectors_by_embedder() if self._has_vectors else {},
        )

    async def rebuild(self, language: str | None) -> AsyncIterator[int]:
        kept = await self._rows.language()
        if language is None and kept is None:
            if await self._rows.page(1, ""):
                raise ConfigurationError("it is not known which language the words are of; name it: --language english")
            return
        wanted = checked_language(language) if language is not None else kept.language if kept is not None else ""
        await self._rows.set_language(IndexLanguage(wanted, FORM))
        await self._rows.mend()
        for walk in range(_WALKS):
            made = 0
            async for page in self._pages():
                outdated = await self._outdated(page, wanted)
                if outdated:
                    made += await self._rows.rewrite(outdated)
                yield 0 if walk else len(page)
            if not made:
                return

    async def embed(self, embedder: Embedder) -> AsyncIterator[int]:
        if self._has_vectors:
            async for page in self._without_vector(embedder):
                texts = {row.id: self._text(row) for row in page}
                yield await self._add(page, await embedded(embedder, texts, self._work))

    async def delete_vectors(self, embedder: str) -> AsyncIterator[int]:
        after = ""
        while self._has_vectors and (ids := await self._rows.delete_vectors(embedder, _PAGE, after)):
            yield len(ids)
            after = ids[-1]

    async def _pages(self) -> AsyncIterator[Sequence[R]]:
        after = ""
        while rows := await self._rows.page(_PAGE, after):
            yield rows
            after = rows[-1].id

    async def _without_vector(self, embedder: Embedder) -> AsyncIterator[Sequence[R]]:
        """The rows that have no vector of this embedder, page by page, by id."""
        after = ""
        while rows := await self._rows.without_vector(embedder.name, _PAGE, after):
            yield rows
            after = rows[-1].id

    async def _outdated(self, rows: Sequence[R], language: str) -> list[R]:
        """Those of the rows that are not as they would be stored today, as they would be."""
        return await self._work(partial(self._as_of_today, rows, language))

    def _as_of_today(self, rows: Sequence[R], language: str) -> list[R]:
        made = [self._made_again(row, language) for row in rows]
        return [new for row, new in zip(rows, made, strict=True) if new != row]

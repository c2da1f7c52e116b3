"""Keeps the index of chunks: :class:`~firefly_memory.search.keeping.IndexKeeper`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from firefly_memory.errors import ConfigurationError
from firefly_memory.identifiers import original_name, original_or_none
from firefly_memory.knowledge.embedding import embedded, without_vector
from firefly_memory.knowledge.log import CHUNKS, KNOWLEDGE_LOG, ChunkRow, IndexLanguage
from firefly_memory.knowledge.rows import said_at
from firefly_memory.protocols import StoreView
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.index import indexed
from firefly_memory.search.keeping import IndexState
from firefly_memory.search.languages import checked_language
from firefly_memory.search.searching import Work
from firefly_memory.search.words import FORM

_PAGE = 200
_WALKS = 5
"""A writer who has not seen the new language yet may store words of the old one, so the walk is repeated."""


class ChunkIndexKeeper:
    """The index of chunks."""

    kind = CHUNKS.kind

    def __init__(self, view: StoreView, work: Work) -> None:
        self._log = view.log(KNOWLEDGE_LOG)
        self._work = work

    async def needs_rebuild(self) -> bool:
        kept = await self._log.language()
        if kept is None:
            return False
        rows = await self._log.page(_PAGE, "")
        return kept.form != FORM or bool(await self._outdated(rows, kept.language))

    async def state(self, embedder: Embedder | None) -> IndexState:
        kept = await self._log.language()
        rows = outdated = lacking = 0
        async for page in self._pages():
            rows += len(page)
            outdated += len(await self._outdated(page, kept.language)) if kept is not None else len(page)
        if embedder is not None:
            async for page in without_vector(self._log, embedder):
                lacking += len(page)
        problems = list(await self._log.damage())
        if kept is None and rows:
            problems.append("it is not known which language the words are of")
        elif kept is not None and kept.form != FORM:
            problems.append(f"the words were made by the rules {kept.form}, and this version has the rules {FORM}")
        return IndexState(
            kind=self.kind,
            rows=rows,
            language=None if kept is None else kept.language,
            outdated=outdated,
            without_vector=None if embedder is None else lacking,
            problems=tuple(problems),
        )

    async def rebuild(self, language: str | None) -> AsyncIterator[int]:
        kept = await self._log.language()
        if language is None and kept is None:
            if await self._log.page(1, ""):
                raise ConfigurationError("it is not known which language the words are of; name it: --language english")
            return
        wanted = checked_language(language) if language is not None else kept.language if kept is not None else ""
        await self._log.set_language(IndexLanguage(wanted, FORM))
        await self._log.mend()
        for walk in range(_WALKS):
            made = 0
            async for page in self._pages():
                outdated = await self._outdated(page, wanted)
                if outdated:
                    made += await self._log.rewrite(outdated)
                yield 0 if walk else len(page)
            if not made:
                return

    async def embed(self, embedder: Embedder) -> AsyncIterator[int]:
        async for page in without_vector(self._log, embedder):
            yield await self._log.add_vectors(await embedded(embedder, page, self._work))

    async def _pages(self) -> AsyncIterator[Sequence[ChunkRow]]:
        after = ""
        while rows := await self._log.page(_PAGE, after):
            yield rows
            after = rows[-1].id

    async def _outdated(self, rows: Sequence[ChunkRow], language: str) -> list[ChunkRow]:
        """Those of the rows that are not as they would be stored today, as they would be."""
        return await self._work(partial(_as_of_today, rows, language))


def _as_of_today(rows: Sequence[ChunkRow], language: str) -> list[ChunkRow]:
    made = [_made_again(row, language) for row in rows]
    return [new for row, new in zip(rows, made, strict=True) if new != row]


def _made_again(row: ChunkRow, language: str) -> ChunkRow:
    at = None if row.said_at is None else said_at(row.said_at)
    fields = indexed(
        row.scope, original_name(row.text), language, who=original_or_none(row.who), at=at, position=row.position
    )
    return row._replace(searchable=fields.searchable, words=tuple(fields.words))

"""What ``KnowledgeStore`` does, once for both modes: coroutines over a view of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import count as counting
from logging import getLogger
from typing import Any, NamedTuple

from firefly_memory import clock
from firefly_memory.cursors import as_token, from_token
from firefly_memory.errors import ConfigurationError, EmbedderError, InvalidEntryError
from firefly_memory.identifiers import original_name, stored_name, stored_text
from firefly_memory.knowledge.keeping import chunk_index_keeper, embedded_text
from firefly_memory.knowledge.log import (
    CHUNKS,
    KNOWLEDGE_LOG,
    ChunkRow,
    KnowledgeLog,
)
from firefly_memory.knowledge.rows import (
    checked_position,
    row_of,
    scope_of,
    source_text,
    stored_chunk,
    stored_owner,
)
from firefly_memory.knowledge.types import Chunk, ChunkHit, ChunkPage, Hits, Names, StoredChunk
from firefly_memory.protocols import StoreView
from firefly_memory.search.counting import counts_of
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.embedding import embedded
from firefly_memory.search.hits import Request
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage, LanguageError, LanguageInUse
from firefly_memory.search.results import Found
from firefly_memory.search.searching import Searcher, Work
from firefly_memory.search.words import FORM
from firefly_memory.validation import checked_text, checked_whole_number

MOST_ROWS = 2**31 - 2
"""Upper bound of limits: ``limit + 1`` must fit a signed 32-bit integer."""

_DELETED_AT_ONCE = 1_000

_logger = getLogger("firefly_memory.knowledge")


class Options(NamedTuple):
    """What a ``KnowledgeStore`` was made with."""

    space: str
    embedder: Embedder | None
    language: str | None
    said: set[str]
    in_transaction: bool


class KnowledgeFlows:
    """The methods of ``KnowledgeStore`` in one mode."""

    def __init__(self, view: StoreView, options: Options, work: Work) -> None:
        self._view = view
        self._options = options
        self._work = work
        self._language = LanguageInUse(CHUNKS, options.language, in_transaction=options.in_transaction)

    async def add(self, collection: str, texts: Any, source: Any, owner: str | None) -> Names:
        name, person, origin = stored_name("collection", collection), stored_owner(owner), source_text(source)
        if not isinstance(texts, (str, Chunk, Iterable)):
            raise InvalidEntryError("texts", f"must be a text, a Chunk, or several of them, not {type(texts).__name__}")
        given = [texts] if isinstance(texts, (str, Chunk)) else list(texts)
        make = partial(row_of, space=self._options.space, collection=name, owner=person, source=origin)
        try:
            return await self._add(given, make)
        except LanguageError:  # the index has been made again in another language, which is read now
            self._language.forget()
            return await self._add(given, make)

    async def _add(self, given: Sequence[Any], make: Callable[..., ChunkRow]) -> Names:
        log = self._log
        language = await self._language.read(log)
        rows = await self._work(partial(_rows, given, partial(make, language=language)))
        if not rows:
            return []
        vectors = await self._vectors(rows)
        each_once = {row.id: row for row in reversed(rows)}
        first = [each_once.pop(row.id) for row in rows if row.id in each_once]
        await log.add(first, vectors, IndexLanguage(language, FORM))
        self._language.keep(language)
        return [row.id for row in rows]

    async def search(self, collection: str, request: Request, owner: str | None) -> Hits:
        log = self._log
        name, person, space = stored_name("collection", collection), stored_owner(owner), self._options.space
        scopes = [scope_of(space, name, None)]
        if person is not None:
            scopes.append(scope_of(space, name, person))
        language = await self._language.read(log)
        options, counts = self._options, counts_of(log.index)
        search = Searcher(CHUNKS, log.index, options.embedder, language, self._work, counts, options.said)
        found = await search.found(request, scopes)
        rows = await log.read([each.id for each in found]) if found else []
        chunks = {row.id: stored_chunk(row) for row in rows}
        return [_hit(each, chunks[each.id]) for each in found if each.id in chunks]  # others were deleted meanwhile

    async def list(self, collection: str, limit: int, after: str | None) -> ChunkPage:
        name, most = stored_name("collection", collection), _limit(limit)
        position = None if after is None else from_token(after, "list()")
        rows = await self._log.oldest(self._options.space, name, most + 1, position)
        chunks = tuple(stored_chunk(row) for row in rows[:most])
        return ChunkPage(
            chunks=chunks, next=as_token(chunks[-1].created_at, chunks[-1].id) if len(rows) > most else None
        )

    async def collections(self, limit: int, after: str) -> Names:
        most = _limit(limit)
        found = await self._log.collections(self._options.space, most, stored_text(checked_text("after", after)))
        return [original_name(each) for each in found]

    async def count(self, collection: str | None) -> int:
        name = None if collection is None else stored_name("collection", collection)
        return await self._log.count(self._options.space, name)

    async def delete(self, collection: str, ids: Iterable[str] | None, source: Any) -> int:
        log, name, origin = self._log, stored_name("collection", collection), source_text(source)
        if ids is not None and origin is not None:
            raise InvalidEntryError("source", "cannot be given with ids")
        if ids is not None:
            return await self._delete_these(log, name, ids)
        deleted = 0
        while some := await log.delete_some(self._options.space, name, origin, _DELETED_AT_ONCE):
            deleted += some
        return deleted

    async def embed_missing(self) -> int:
        if self._options.embedder is None:
            raise ConfigurationError("there is no embedder: install firefly-memory[embeddings], or give the store one")
        keeper = chunk_index_keeper(self._view, self._work)
        return sum([made async for made in keeper.embed(self._options.embedder)])

    @property
    def _log(self) -> KnowledgeLog:
        return self._view.log(KNOWLEDGE_LOG)

    async def _delete_these(self, log: KnowledgeLog, collection: str, ids: Iterable[str]) -> int:
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise InvalidEntryError("ids", "must be several ids, in a list")
        names = [stored_name("id", each) for each in dict.fromkeys(ids)]
        deleted = 0
        for start in range(0, len(names), _DELETED_AT_ONCE):
            rows = await log.read(names[start : start + _DELETED_AT_ONCE])
            mine = [row.id for row in rows if (row.space, row.collection) == (self._options.space, collection)]
            deleted += await log.delete(mine) if mine else 0
        return deleted

    async def _vectors(self, rows: Sequence[ChunkRow]) -> Mapping[str, Vector]:
        """The vectors of new rows; none if the embedder fails, which costs no text."""
        if self._options.embedder is None:
            return {}
        try:
            return await embedded(self._options.embedder, {row.id: embedded_text(row) for row in rows}, self._work)
        except EmbedderError as error:
            _logger.warning("%d chunks are stored without vectors, embed_missing() makes them: %s", len(rows), error)
            return {}


def _hit(found: Found, chunk: StoredChunk) -> ChunkHit:
    return ChunkHit(
        id=found.id,
        text=chunk.text,
        score=found.score,
        ranks=found.ranks,
        explanation=found.explanation,
        chunk=chunk,
    )


def _limit(limit: Any) -> int:
    return min(checked_whole_number("limit", limit, 1), MOST_ROWS)


def _rows(given: Sequence[Any], make: Callable[..., ChunkRow]) -> list[ChunkRow]:
    """The rows of what is to be added, in its order. They differ in time, so that lists keep the order."""
    now = clock.now()
    places: dict[str, Iterator[int]] = {}
    rows = []
    for number, each in enumerate(given):
        chunk = each if isinstance(each, Chunk) else Chunk(each)  # whose text is checked when its row is made
        position = 0 if chunk.position is None else checked_position(chunk.position)
        if chunk.group is not None and chunk.position is None:
            position = next(places.setdefault(stored_name("group", chunk.group), counting()))
        rows.append(make(chunk, position=position, created_at=now + timedelta(microseconds=number)))
    return rows

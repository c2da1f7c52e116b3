"""One search, from the question to the hits: what the index is asked, and what is made of its answers.

The flow is one coroutine for both modes. :class:`Work` says where its computing is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.errors import ConfigurationError, EmbedderError, NotSupportedError
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.comparing import Look, check_sizes, compared, level_of, nearest_by_signature
from firefly_memory.search.counting import KeptCounts
from firefly_memory.search.embedders.protocol import Embedder, StaticEmbedder
from firefly_memory.search.filters import Conditions, conditions_of
from firefly_memory.search.fusion import DEPTH
from firefly_memory.search.hits import Explanation, Request
from firefly_memory.search.index import CANDIDATES, SearchIndex, Signatures, Subject
from firefly_memory.search.kinds import kinds_asked
from firefly_memory.search.near_words import LARGEST_SCOPE as LARGEST_SCOPE_OF_NEAR_WORDS
from firefly_memory.search.near_words import NO_NEAR_WORDS, RARE, NearWords, near_words, rare_ones
from firefly_memory.search.ranking import (
    Near,
    RankedText,
    ScopeCounts,
    people_named,
    people_of,
    rank_text,
    words_for_engine,
)
from firefly_memory.search.results import Found, joined
from firefly_memory.search.searchable import searchable
from firefly_memory.search.semantic import (
    LARGEST_SCOPE,
    Question,
    RankedMeaning,
    async_question_vector,
    question_vector,
    rank_meaning,
)
from firefly_memory.search.signatures import NEAREST, vector_bytes
from firefly_memory.search.words import question_words

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

T = TypeVar("T")

POSTINGS = 5_000
"""The words of a question that an engine is asked for have no more documents together, the rarest word left aside."""

RANKED = 3
"""So many documents for each hit are ranked by meaning, with their neighbours. The others are too far away."""
LEAST_RANKED = 30
"""So many in any case."""

_PEOPLE = 1_000
_WEIGHT = 1_000
"""Weights are sent as whole numbers of this part, so that every database adds them up to the same sum."""

_logger = getLogger("firefly_memory.search")

WORDS_ONLY = "these are searched by their words only"
NO_EMBEDDER = "there is no embedder, so the search is for text only; install firefly-memory[embeddings], or give one"
NO_VECTORS = "nothing here has a vector of this embedder; embed_missing() makes the vectors"
TOO_MANY = f"more than {LARGEST_SCOPE:,} documents have vectors here, so the search is for text only"
_FAILED = "the embedder failed, so the search is for text only"


class Work(Protocol):
    """Where a search computes: at once, or beside the event loop."""

    async def __call__(self, call: Callable[[], T], /) -> T: ...


async def at_once(call: Callable[[], T]) -> T:
    """For blocking callers."""
    return call()


async def beside_the_loop(call: Callable[[], T]) -> T:
    """For callers in an event loop, which goes on meanwhile."""
    return await in_worker_thread(call)


class _Where(NamedTuple):
    """What is searched."""

    scopes: Sequence[str]
    conditions: Conditions


@dataclass(slots=True)
class Searcher:
    """Searches one index in one mode."""

    subject: Subject
    index: SearchIndex
    embedder: Embedder | None
    language: str
    work: Work
    counts: KeptCounts
    said: set[str] = field(default_factory=set)
    """What the log has said already."""

    async def found(
        self, request: Request, scopes: Sequence[str], filters: Mapping[str, Any] | None = None
    ) -> list[Found]:
        """The best documents of the scopes that pass the filters, best first. ``filters`` says what is wanted, by the
        names of the subject's filters."""
        where = _Where(scopes, conditions_of(self.subject.filters, filters or {}))
        if request.mode == "fuzzy":
            return await self._containing(request, where)
        if request.mode == "semantic" and not self.subject.has_vectors:
            raise NotSupportedError(f"{self.subject.kind} are searched by their words only; use mode='best'")
        words = await self.work(partial(question_words, request.question, self.language))
        counts = await self.counts.of(self.index, scopes, words)
        text = None if request.mode == "semantic" else await self._text(request, words, where, counts)
        semantic: list[RankedMeaning] | None = None
        notes: tuple[str, ...] = ()
        if request.mode != "text" and not self.subject.has_vectors:
            notes = (WORDS_ONLY,)
        elif request.mode != "text":
            semantic, notes = await self._semantic(request, where, counts)
        return joined(text=text, semantic=semantic, top_k=request.top_k, explain=request.explain, notes=notes)

    async def _containing(self, request: Request, where: _Where) -> list[Found]:
        wanted = await self.work(partial(searchable, request.question))
        ids = await self.index.containing(where.scopes, wanted, request.top_k, where.conditions) if wanted else []
        explanation = Explanation(scores={"fuzzy": 1.0}) if request.explain else None
        return [
            Found(id=each, score=1.0, ranks={"fuzzy": rank}, explanation=explanation)
            for rank, each in enumerate(ids, start=1)
        ]

    async def _text(
        self, request: Request, words: Sequence[str], where: _Where, counts: ScopeCounts
    ) -> list[RankedText]:
        near = await self._near(request.question, where.scopes, counts)
        affordable = _affordable(words, counts)
        weights = {word: counts.idf(word) for word in affordable}
        weights |= {each: max(part * counts.idf(word) for word, part in near.parts[each].items()) for each in near.rare}
        if not weights:
            return []
        ids = await self.index.best(where.scopes, _in_whole_numbers(weights), CANDIDATES, where.conditions)
        if where.conditions and not ids:
            ids = await self._with_another_word(words, affordable, where, counts)
        candidates = await self._around(where, ids) if ids else []
        return await self.work(partial(self._ranked_text, request, words, near.parts, candidates, counts))

    async def _with_another_word(
        self, words: Sequence[str], asked: Sequence[str], where: _Where, counts: ScopeCounts
    ) -> Sequence[str]:
        """Documents with the rarest word that passing ones have, where the filters leave out all that have the rarer
        words."""
        left = sorted((counts.having.get(word, 0), word) for word in dict.fromkeys(words) if word not in asked)
        for having, word in left:
            if having and (ids := await self.index.best(where.scopes, {word: 1}, CANDIDATES, where.conditions)):
                return ids
        return []

    async def _near(self, question: str, scopes: Sequence[str], counts: ScopeCounts) -> NearWords:
        """The words near those of the question, and those of them that the engine is asked for."""
        if self.embedder is None or not 0 < counts.documents <= LARGEST_SCOPE_OF_NEAR_WORDS:
            return NO_NEAR_WORDS
        parts = await self.work(partial(near_words, self.embedder, question, self.language))
        having = await self.index.counts(scopes, list(parts), RARE + 1) if parts else {}
        return NearWords(parts, rare_ones(having))

    def _ranked_text(
        self, request: Request, words: Sequence[str], near: Near, candidates: Sequence[Candidate], counts: ScopeCounts
    ) -> list[RankedText]:
        named, kinds = self._asked_for(request.question, candidates)
        return rank_text(words, candidates, counts, named, kinds, near, _counting(request))

    def _ranked_meaning(self, request: Request, look: Look) -> list[RankedMeaning]:
        named, kinds = self._asked_for(request.question, look.candidates)
        return rank_meaning(look.candidates, look.cosines, look.level, named, kinds, _counting(request))

    def _asked_for(self, question: str, candidates: Sequence[Candidate]) -> tuple[list[str], str]:
        """The people whom a question names, and the kinds of its answers."""
        named = people_named(question, people_of(candidates), self.language)
        return named, kinds_asked(question, self.language)

    async def _semantic(
        self, request: Request, where: _Where, counts: ScopeCounts
    ) -> tuple[list[RankedMeaning] | None, tuple[str, ...]]:
        """The ranking by meaning; or what the search does without, where a ranking for text is enough."""
        must = request.mode == "semantic"
        embedder = self.embedder
        if embedder is None:
            if must:
                raise ConfigurationError(_NEEDS_EMBEDDER)
            return None, self._without(NO_EMBEDDER)
        if counts.documents > LARGEST_SCOPE and await self.index.has_accelerator(embedder.name):
            return await self._by_accelerator(embedder, request, where, counts)
        stored = await self.index.signatures(where.scopes, embedder.name, LARGEST_SCOPE, where.conditions)
        if stored is None:
            return self._refused(must)
        if not stored.ids and not await self._lacks_vectors(embedder, where):
            return [], ()
        if not stored.ids:
            return self._nothing(must), self._without(NO_VECTORS) if counts.documents else ()
        check_sizes(embedder, stored.signatures, -(-embedder.dimensions // 8))
        vector = await self._vector_if_made(embedder, request, where.scopes, counts)
        if vector is None:
            return None, self._without(_FAILED)
        if not vector.any():  # of a question without a word
            return [], ()
        look = await self._look_at_nearest(embedder, vector, stored, where, _read(request))
        return await self.work(partial(self._ranked_meaning, request, look)), ()

    async def _by_accelerator(
        self, embedder: Embedder, request: Request, where: _Where, counts: ScopeCounts
    ) -> tuple[list[RankedMeaning] | None, tuple[str, ...]]:
        """The same where there are too many vectors to look at each."""
        vector = await self._vector_if_made(embedder, request, where.scopes, counts)
        if vector is None:
            return None, self._without(_FAILED)
        if not vector.any():
            return [], ()
        found = await self.index.nearest(where.scopes, embedder.name, vector_bytes(vector), DEPTH, where.conditions)
        if found is None:  # it has just been switched off
            return self._refused(request.mode == "semantic")
        if not found.signatures:
            return self._nothing(request.mode == "semantic"), self._without(NO_VECTORS)
        check_sizes(embedder, found.signatures, -(-embedder.dimensions // 8))
        level = await self.work(partial(level_of, vector, found.signatures))
        look = await self._look(embedder, vector, found.ids, level, where, _read(request))
        return await self.work(partial(self._ranked_meaning, request, look)), ()

    async def _lacks_vectors(self, embedder: Embedder, where: _Where) -> bool:
        """Whether no document of the scopes has a vector; otherwise those that have one do not pass the filters."""
        return not where.conditions or await self.index.signatures(where.scopes, embedder.name, 0) is not None

    def _nothing(self, must: bool) -> list[RankedMeaning] | None:
        """Nothing is found, where a ranking is asked for; or else the ranking for text is the whole one."""
        return [] if must else None

    def _refused(self, must: bool) -> tuple[None, tuple[str, ...]]:
        """There are too many vectors."""
        if must:
            raise NotSupportedError(_too_many(self.subject.kind))
        return None, self._without(TOO_MANY)

    async def _vector_if_made(
        self, embedder: Embedder, request: Request, scopes: Sequence[str], counts: ScopeCounts
    ) -> NDArray[float32] | None:
        """That of the question; ``None`` if the embedder fails, and the words are enough."""
        try:
            return await self._question_vector(embedder, request.question, scopes, counts)
        except EmbedderError:
            if request.mode == "semantic":
                raise
            return None

    async def _question_vector(
        self, embedder: Embedder, question: str, scopes: Sequence[str], counts: ScopeCounts
    ) -> NDArray[float32]:
        if isinstance(embedder, StaticEmbedder):
            return await self.work(partial(question_vector, embedder, Question(question, self.language, counts)))
        people = await self.index.people(scopes, _PEOPLE)
        named = await self.work(partial(people_named, question, people, self.language))
        asked = Question(question, self.language, counts, named)
        if self.work is at_once:
            return question_vector(embedder, asked)
        return await async_question_vector(embedder, asked)

    async def _look_at_nearest(
        self, embedder: Embedder, vector: NDArray[float32], stored: Signatures, where: _Where, most: int
    ) -> Look:
        looked_at = NEAREST
        while True:
            ids, level = await self.work(partial(nearest_by_signature, vector, stored, embedder.dimensions, looked_at))
            look = await self._look(embedder, vector, ids, level, where, most)
            if look.is_complete or looked_at >= len(stored.ids) or not self._lacks_live(ids, look.candidates):
                return look
            looked_at *= 2

    async def _look(
        self,
        embedder: Embedder,
        vector: NDArray[float32],
        ids: Sequence[str],
        level: float | None,
        where: _Where,
        most: int,
    ) -> Look:
        """Compare the vectors of some documents, and read the nearest of them, with their neighbours."""
        vectors = await self.index.vectors(embedder.name, ids)
        check_sizes(embedder, vectors.values(), embedder.dimensions * 4)
        found = await self.work(partial(compared, vector, vectors, level, most))
        candidates = await self._around(where, found.to_rank)
        is_complete = _are_there(found.to_rank, candidates)
        if not is_complete:  # some are gone, and so others are the nearest
            candidates = await self._around(where, ids)
        return Look(found.cosines, found.level, candidates, is_complete)

    async def _around(self, where: _Where, ids: Sequence[str]) -> Sequence[Candidate]:
        return await self.index.around(where.scopes, ids, where.conditions)

    def _lacks_live(self, ids: Sequence[str], candidates: Sequence[Candidate]) -> bool:
        """Whether most of the nearest rows have expired, which their signatures do not tell."""
        return (
            self.subject.expires is not None and len({*ids}.intersection(each.id for each in candidates)) < CANDIDATES
        )

    def _without(self, note: str) -> tuple[str, ...]:
        if note not in self.said:
            self.said.add(note)
            _logger.warning("%s: %s", self.subject.kind, note)
        return (note,)


_NEEDS_EMBEDDER = "mode='semantic' needs an embedder: install firefly-memory[embeddings], or give the store one"


def _too_many(kind: str) -> str:
    return (
        f"mode='semantic' compares at most {LARGEST_SCOPE:,} {kind}, and more have vectors here; use mode='best', "
        "search a smaller collection, or one owner's; on PostgreSQL, `firefly-memory index enable pgvector` "
        "makes an index for them"
    )


def _affordable(words: Sequence[str], counts: ScopeCounts) -> list[str]:
    """The words that the engine is asked for: rare ones first, as long as their documents are not too many."""
    chosen: list[str] = []
    postings = 0
    for word in words_for_engine(words, counts):
        postings += counts.having[word]
        if chosen and postings > POSTINGS:
            break
        chosen.append(word)
    return chosen


def _in_whole_numbers(weights: Mapping[str, float]) -> dict[str, int]:
    return {word: max(1, round(weight * _WEIGHT)) for word, weight in weights.items()}


def _read(request: Request) -> int:
    """How many documents are ranked by meaning, beside their neighbours: never more than count."""
    most = max(RANKED * request.top_k, LEAST_RANKED)
    return most if request.mode == "semantic" else min(most, DEPTH)


def _counting(request: Request) -> int | None:
    """How many of a ranking may count: those that are fused, or given back. An explanation knows them all."""
    return None if request.explain else max(request.top_k, DEPTH)


def _are_there(ids: Sequence[str], candidates: Sequence[Candidate]) -> bool:
    return {*ids} <= {each.id for each in candidates}

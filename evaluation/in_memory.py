"""The search over a list of turns, without a database: candidates, ranking, fusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evaluation.corpus import LANGUAGE, Turn
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.embedders.batches import embed_all
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.neighbours import REACH
from firefly_memory.search.ranking import RankedText, ScopeCounts, people_named, people_of, rank_text, words_for_engine
from firefly_memory.search.results import joined
from firefly_memory.search.searchable import document_text, indexed_text, searchable
from firefly_memory.search.semantic import Question, RankedMeaning, common_level, question_vector, rank_meaning
from firefly_memory.search.signatures import cosines, estimated_cosines, nearest, signature_bytes, signatures_from
from firefly_memory.search.words import index_words, question_words

CANDIDATES = 100


class InMemorySearch:
    """The turns of one scope, indexed once."""

    def __init__(self, turns: Sequence[Turn], embedder: Embedder) -> None:
        self._embedder = embedder
        self._turns = turns
        self._documents = [
            Candidate(
                id=turn.id,
                words=index_words(indexed_text(turn.text, turn.who, turn.day, LANGUAGE), LANGUAGE),
                who=turn.who,
                group=turn.session,
                position=turn.position,
            )
            for turn in turns
        ]
        having = Counter(word for document in self._documents for word in set(document.words))
        self._counts = ScopeCounts(len(turns), having)
        self._people = people_of(self._documents)
        self._vectors = embed_all(embedder, [document_text(turn.text, turn.who) for turn in turns])
        stored = [signature_bytes(vector) for vector in self._vectors]
        self._signatures = signatures_from(stored, embedder.dimensions)

    def __call__(self, question: str, mode: str) -> list[str]:
        """The ids of the hits, best first."""
        if mode == "fuzzy":
            return self._fuzzy(question)
        text = self._text(question) if mode in {"text", "hybrid"} else None
        semantic = self._semantic(question) if mode in {"semantic", "hybrid"} else None
        return [each.id for each in joined(text=text, semantic=semantic, top_k=CANDIDATES)]

    def _fuzzy(self, question: str) -> list[str]:
        pattern = searchable(question)
        return [turn.id for turn in reversed(self._turns) if pattern in searchable(turn.text)]

    def _text(self, question: str) -> list[RankedText]:
        words = question_words(question, LANGUAGE)
        alone = [Candidate(id=each.id, words=each.words) for each in self._documents]  # as an engine sees them
        found = {each.id for each in rank_text(words_for_engine(words, self._counts), alone, self._counts)[:CANDIDATES]}
        candidates = self._with_neighbours(found)
        named = people_named(question, people_of(candidates), LANGUAGE)
        return rank_text(words, candidates, self._counts, named)

    def _semantic(self, question: str) -> list[RankedMeaning]:
        named = people_named(question, self._people, LANGUAGE)
        vector = question_vector(self._embedder, Question(question, LANGUAGE, self._counts, named))
        estimates = estimated_cosines(vector, self._signatures)
        rows = nearest(estimates)
        level = common_level(estimates if len(rows) < len(estimates) else cosines(vector, self._vectors))
        exact = dict(zip(rows.tolist(), cosines(vector, self._vectors[rows]).tolist(), strict=True))
        by_id = {self._documents[row].id: cosine for row, cosine in exact.items()}
        return rank_meaning(self._with_neighbours(set(by_id)), by_id, level)

    def _with_neighbours(self, found: set[str]) -> list[Candidate]:
        positions = {(each.group, each.position) for each in self._documents if each.id in found}
        steps = range(-REACH, REACH + 1)
        reached = {(group, position + step) for group, position in positions for step in steps}
        return [each for each in self._documents if (each.group, each.position) in reached]

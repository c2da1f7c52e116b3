"""The search by meaning: the question as a vector, and the ranking of documents by their cosines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from operator import itemgetter
from typing import TYPE_CHECKING

from firefly_memory.search.candidates import Candidate
from firefly_memory.search.embedders.batches import NUMPY, async_embed_all, embed_all
from firefly_memory.search.embedders.protocol import Embedder, StaticEmbedder
from firefly_memory.search.factors import Factors, factors_of, questions_among
from firefly_memory.search.neighbours import Neighbours
from firefly_memory.search.ranking import ScopeCounts
from firefly_memory.search.words import Piece, question_pieces, question_words

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

LARGEST_SCOPE = 50_000
"""Above so many documents no exact search is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticMatch:
    """Why a document has its score for meaning."""

    cosine: float | None
    """Of its vector and the question's; ``None`` without a vector."""
    neighbour: str | None = None
    """The id of the neighbour that lent it its score."""
    person: str | None = None
    """The person named in the question who said it or whom it is about."""
    length: float = 1.0
    """The factor for its length."""
    question: float = 1.0
    """The factor for a document that ends with a question."""
    kind: float = 1.0
    """The factor for a document of a kind that is asked for."""


@dataclass(frozen=True, slots=True)
class RankedMeaning:
    """A document with its score for meaning: how far its cosine, or what it was lent, is above the common ones."""

    id: str
    score: float
    match: SemanticMatch


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what the scope says about it, which decides how it is embedded."""

    text: str
    language: str
    counts: ScopeCounts
    named: Sequence[str] = ()
    """The people of the scope whom it names."""

    def weighted_pieces(self) -> list[tuple[str, float]]:
        """For a static embedder: each word with its weight in the scope, the mean of its pieces'."""
        return [(piece.text, self._weight(piece)) for piece in question_pieces(self.text, self.language)]

    def _weight(self, piece: Piece) -> float:
        return fsum(map(self.counts.idf, piece.words)) / max(1, len(piece.words))

    def without_names(self) -> str:
        """For other embedders, which take what a person said for what is about them: the names are left out."""
        names = {word for name in self.named for word in question_words(name, self.language)}
        kept = [run for run in self.text.split() if not names.intersection(question_words(run, self.language))]
        return " ".join(kept) or self.text


def question_vector(embedder: Embedder, question: Question) -> NDArray[float32]:
    """The vector of a question. A static embedder weighs its words, another one is not given the names in it."""
    if isinstance(embedder, StaticEmbedder):
        return _weighted(embedder, question)
    vector: NDArray[float32]
    (vector,) = embed_all(embedder, [question.without_names()], "query")
    return vector


async def async_question_vector(embedder: Embedder, question: Question) -> NDArray[float32]:
    """The vector of a question. A static embedder weighs its words, another one is not given the names in it."""
    if isinstance(embedder, StaticEmbedder):
        return _weighted(embedder, question)
    vector: NDArray[float32]
    (vector,) = await async_embed_all(embedder, [question.without_names()], "query")
    return vector


def _weighted(embedder: StaticEmbedder, question: Question) -> NDArray[float32]:
    with NUMPY:
        import numpy as np
    return np.asarray(embedder.embed_weighted(question.weighted_pieces()), dtype=np.float32)


def common_level(cosines: Sequence[float] | NDArray[float32]) -> float:
    """The mean of the cosines and one standard deviation: what is above it says something. Rounded, as they are."""
    with NUMPY:
        import numpy as np
    each = np.asarray(cosines, dtype=np.float64)
    return round(float(each.mean() + each.std()), 6) if len(each) else 0.0


def to_rank(cosines: Mapping[str, float], most: int) -> list[str]:
    """The documents with the largest cosines, up to ``most``; of equal ones at the end those with the first ids. Only
    they are read, with their neighbours."""
    return sorted(cosines, key=lambda each: (-cosines[each], each))[:most]


def rank_meaning(
    candidates: Iterable[Candidate],
    cosines: Mapping[str, float],
    level: float,
    named: Iterable[str] = (),
    kinds: str = "",
    most: int | None = None,
) -> list[RankedMeaning]:
    """The candidates that have a cosine, or are lent one: the best ``most``, best first, equal ones by id.

    ``level`` is the :func:`common_level` of the whole scope. A document lends only what it has above the level: without
    that, those beside many common ones would come first. ``named`` and ``kinds`` are those of
    :func:`~firefly_memory.search.ranking.rank_text`. The order of the candidates does not matter.
    """
    documents = list(candidates)
    factors = factors_of(documents, named, kinds)
    above = {document.id: cosines[document.id] - level for document in documents if document.id in cosines}
    lending = {
        document.id: {_ALL: above[document.id]} if above.get(document.id, 0) > 0 else {} for document in documents
    }
    neighbours = Neighbours(documents, lending, questions_among(factors))
    scored: list[tuple[float, str, str | None]] = []
    for document in documents:
        own, loan = above.get(document.id), neighbours.lent_to(document).get(_ALL)
        product = factors[document.id].product
        if loan is not None and (own is None or loan.weight > own):
            scored.append((-loan.weight * product, document.id, loan.neighbour))
        elif own is not None:  # below the level too, the one with the larger factors comes first
            scored.append((-own * product if own > 0 else -own / product, document.id, None))
    scored.sort(key=itemgetter(0, 1))
    return [
        RankedMeaning(name, -score, _match(cosines.get(name), neighbour, factors[name]))
        for score, name, neighbour in scored[:most]
    ]


def _match(cosine: float | None, neighbour: str | None, factors: Factors) -> SemanticMatch:
    return SemanticMatch(
        cosine=cosine,
        neighbour=neighbour,
        person=factors.person,
        length=factors.length,
        question=factors.question,
        kind=factors.kind,
    )


_ALL = ""
"""A cosine stands for all words of the question together."""

"""The question's vector beside those of the documents, as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from firefly_memory.errors import ConfigurationError
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.index import Signatures
from firefly_memory.search.semantic import common_level, to_rank
from firefly_memory.search.signatures import cosines, estimated_cosines, nearest, signatures_from, vectors_from


class Compared(NamedTuple):
    """The documents whose vectors were compared with that of the question."""

    cosines: Mapping[str, float]
    level: float
    """The :func:`~firefly_memory.search.semantic.common_level`."""
    to_rank: Sequence[str]


class Look(NamedTuple):
    """Some documents with their neighbours, and what is known of their vectors."""

    cosines: Mapping[str, float]
    level: float
    candidates: Sequence[Candidate]
    is_complete: bool
    """Whether those that were to be ranked are still there."""


def check_sizes(embedder: Embedder, stored: Iterable[bytes], size: int) -> None:
    """``ConfigurationError`` if a stored vector or signature is of another number of dimensions."""
    if not {*map(len, stored)} <= {size}:
        raise ConfigurationError(
            f"stored vectors of the embedder {embedder.name!r} have another number of dimensions than "
            f"{embedder.dimensions}; give another model another name"
        )


def nearest_by_signature(vector: Any, stored: Signatures, dimensions: int, most: int) -> tuple[list[str], float | None]:
    """The documents whose vectors are compared, and the common level, unless that is better had from the vectors."""
    estimates = estimated_cosines(vector, signatures_from(stored.signatures, dimensions))
    rows = nearest(estimates, stored.ids, most)
    every = len(rows) == len(estimates)
    return [stored.ids[row] for row in rows.tolist()], None if every else common_level(estimates)


def level_of(vector: Any, signatures: Sequence[bytes]) -> float:
    """The common level of a whole scope, by some of its signatures."""
    return common_level(estimated_cosines(vector, signatures_from(signatures, len(vector))))


def compared(vector: Any, vectors: Mapping[str, bytes], level: float | None, most: int) -> Compared:
    """The cosines of some vectors, and which of their documents are ranked. Without a level, it is that of these."""
    ids = sorted(vectors)
    exact = cosines(vector, vectors_from([vectors[each] for each in ids], len(vector))).tolist()
    by_id = dict(zip(ids, exact, strict=True))
    return Compared(by_id, common_level(exact) if level is None else level, to_rank(by_id, most))

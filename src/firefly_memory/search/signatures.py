"""Vectors as they are stored: float32, and one bit for each dimension.

The bits of all documents are compared first: an eighth of a byte for each number. Only the best documents need their
vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import pi, sqrt
from typing import TYPE_CHECKING

from firefly_memory.search.embedders.batches import NUMPY

if TYPE_CHECKING:
    from numpy import float32, int64, uint8
    from numpy.typing import NDArray

    Floats = NDArray[float32]
    Bits = NDArray[uint8]

NEAREST = 400
"""So many documents are compared by their vectors."""


def vector_bytes(vector: Floats) -> bytes:
    """A vector as it is stored."""
    return vector.astype("<f4").tobytes()


def vectors_from(stored: Sequence[bytes], dimensions: int) -> Floats:
    """Stored vectors, a row each."""
    return _rows(stored, "<f4", dimensions)


def signature_bytes(vector: Floats) -> bytes:
    """One bit for each number of a vector: whether it is above zero."""
    with NUMPY:
        import numpy as np
    return np.packbits(vector > 0).tobytes()


def stored_forms(vectors: Floats) -> Iterator[tuple[bytes, bytes]]:
    """The :func:`vector_bytes` and the :func:`signature_bytes` of each row."""
    with NUMPY:
        import numpy as np
    rows, bits = np.ascontiguousarray(vectors, dtype="<f4"), np.packbits(vectors > 0, axis=1)
    return ((row.tobytes(), signature.tobytes()) for row, signature in zip(rows, bits, strict=True))


def signatures_from(stored: Sequence[bytes], dimensions: int) -> Bits:
    """Stored signatures, a row each."""
    return _rows(stored, "u1", -(-dimensions // 8))


def _rows(stored: Sequence[bytes], numbers: str, columns: int) -> NDArray:  # type: ignore[type-arg]
    with NUMPY:
        import numpy as np
    return np.frombuffer(b"".join(stored), dtype=numbers).reshape(len(stored), columns)


def cosines(question: Floats, vectors: Floats) -> Floats:
    """The cosine of the question and each row, 0 for a row of zeros. Rounded: no order depends on the last bits."""
    with NUMPY:
        import numpy as np
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(question)
    exact: Floats = np.divide(vectors @ question, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.round(exact, 5)


def estimated_cosines(question: Floats, signatures: Bits) -> Floats:
    """About the cosine of the question and of the vectors that have these signatures."""
    with NUMPY:
        import numpy as np
    length = float(np.linalg.norm(question))
    if not length:
        return np.zeros(len(signatures), dtype=np.float32)
    columns = signatures.shape[1]
    padded = np.zeros(columns * 8, dtype=np.float32)
    padded[: len(question)] = question / length
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1
    sums = padded.reshape(columns, 8) @ bits.T  # for each column, what each of its 256 values adds
    total = np.zeros(len(signatures), dtype=np.float32)
    for column in range(columns):
        total += sums[column][signatures[:, column]]
    return np.round(total * sqrt(pi / 2 / len(question)), 5)


def nearest(estimates: Floats, ids: Sequence[str], most: int = NEAREST) -> NDArray[int64]:
    """The rows of the largest estimates, in any order; of equal ones at the end those with the first ids."""
    with NUMPY:
        import numpy as np
    if len(estimates) <= most:
        return np.arange(len(estimates))
    least = np.partition(estimates, -most)[-most]
    larger = np.flatnonzero(estimates > least)
    equal = sorted(np.flatnonzero(estimates == least).tolist(), key=ids.__getitem__)
    return np.concatenate([larger, np.array(equal[: most - len(larger)], dtype=larger.dtype)])

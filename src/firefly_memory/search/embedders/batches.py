"""Any number of texts embedded: in batches, tried again after a pause, and what comes back is checked."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from firefly_memory.concurrency.growing_pauses import growing_pauses
from firefly_memory.concurrency.sync_bridge import result_of, run_without_loop
from firefly_memory.errors import EmbedderError, FireflyMemoryError
from firefly_memory.search.embedders.protocol import Embedder, Purpose
from firefly_memory.validation import ImportingExtra

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

BATCH = 64
"""Texts in a call."""
ATTEMPTS = 3
"""Calls for a batch, until its error is raised."""
LONGEST_TEXT = 8_000
"""Characters of a text that are embedded. Most providers refuse texts that are longer than about 8,000 tokens."""

NUMPY = ImportingExtra("search by meaning", "numpy", "vectors")


def embed_all(
    embedder: Embedder,
    texts: Sequence[str],
    purpose: Purpose = "document",
    *,
    pause: Callable[[float], Any] | None = None,
) -> NDArray[float32]:
    """A row for each text. ``EmbedderError`` if the embedder fails each time, or gives back something else.

    A text without anything to embed has a row of zeros, and the embedder is not asked.
    """

    async def embed(batch: Sequence[str]) -> Any:
        return embedder.embed(batch, purpose)

    async def wait(seconds: float) -> None:
        (pause or time.sleep)(seconds)

    return run_without_loop(_embedded(embedder, texts, embed, wait))


async def async_embed_all(
    embedder: Embedder,
    texts: Sequence[str],
    purpose: Purpose = "document",
    *,
    pause: Callable[[float], Any] | None = None,
) -> NDArray[float32]:
    """A row for each text. ``EmbedderError`` if the embedder fails each time, or gives back something else.

    A text without anything to embed has a row of zeros, and the embedder is not asked.
    """

    async def embed(batch: Sequence[str]) -> Any:
        return await embedder.async_embed(batch, purpose)

    async def wait(seconds: float) -> None:
        await result_of((pause or asyncio.sleep)(seconds))

    return await _embedded(embedder, texts, embed, wait)


async def _embedded(
    embedder: Embedder,
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], Awaitable[Any]],
    pause: Callable[[float], Awaitable[object]],
) -> NDArray[float32]:
    with NUMPY:
        import numpy as np
    cleaned = [_cleaned(text) for text in texts]
    if 0 < len(cleaned) <= BATCH and all(cleaned):
        return _checked(embedder, await _tried(embedder, cleaned, embed, pause), len(cleaned))
    rows = np.zeros((len(texts), embedder.dimensions), dtype=np.float32)
    asked = [number for number, text in enumerate(cleaned) if text]
    for start in range(0, len(asked), BATCH):
        numbers = asked[start : start + BATCH]
        batch = [cleaned[number] for number in numbers]
        rows[numbers] = _checked(embedder, await _tried(embedder, batch, embed, pause), len(batch))
    return rows


def _cleaned(text: str) -> str:
    beginning = text[:LONGEST_TEXT]
    if beginning.isascii():  # which is looked through much sooner
        return beginning.replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
    return _NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", beginning).strip()


_NOT_TEXT = re.compile(r"[\0\ud800-\udfff]")


async def _tried(
    embedder: Embedder,
    batch: Sequence[str],
    embed: Callable[[Sequence[str]], Awaitable[Any]],
    pause: Callable[[float], Awaitable[object]],
) -> Any:
    pauses = growing_pauses(first=0.5, longest=8.0)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await embed(batch)
        except FireflyMemoryError:  # another attempt would end in the same way
            raise
        except Exception as error:  # whatever the client of a provider raises
            if attempt == ATTEMPTS:
                raise EmbedderError(embedder.name, f"{type(error).__name__}: {error}") from error
        await pause(next(pauses))
    raise AssertionError


def _checked(embedder: Embedder, vectors: Any, texts: int) -> NDArray[float32]:
    import numpy as np

    try:
        found = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbedderError(embedder.name, "it gave back something else than a list of vectors") from error
    expected = (texts, embedder.dimensions)
    if found.shape != expected:
        shape = " by ".join(map(str, found.shape)) or "no"
        raise EmbedderError(
            embedder.name, f"it gave back {shape} numbers for {texts} texts of {embedder.dimensions} dimensions"
        )
    if not np.isfinite(found).all():
        raise EmbedderError(embedder.name, "it gave back numbers that are not finite")
    return found

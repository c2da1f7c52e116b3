"""Splits a text into chunks, by semchunk. Decision 0061."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from firefly_memory.strategies.base import Configuration
from firefly_memory.validation import ImportingExtra

_SPLITTING = ImportingExtra("splitting a text into chunks", "semchunk", "strategies")

_SEARCHED = 2
"""An overlap begins at the start of a word, if one starts in its first part: this part of it."""


class TextSplitterConfig(Configuration):
    """How long the chunks of a text are, in characters."""

    chunk_size: Annotated[int, Field(ge=1)] = 1000
    """The most characters of a chunk."""
    chunk_overlap: Annotated[int, Field(ge=0)] = 100
    """The most characters at the beginning of a chunk that the chunk before has too."""

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> Self:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(f"chunk_overlap {self.chunk_overlap} must be smaller than chunk_size {self.chunk_size}")
        return self

    def split(self, text: str) -> list[str]:
        """The chunks of ``text``, in order. They end at paragraphs, sentences and words, where the text has them.

        A text without a visible character has no chunk.
        """
        if not text or text.isspace():
            return []
        if len(text) <= self.chunk_size:
            return [text.strip()]
        chunks = []
        former_end = 0
        for start, end in _spans(text, self.chunk_size - self.chunk_overlap):
            chunks.append(text[self._start_of_overlap(text, start, former_end) : end].strip())
            former_end = end
        return chunks

    def _start_of_overlap(self, text: str, start: int, former_end: int) -> int:
        """Where a chunk begins that would begin at ``start`` without overlap."""
        earliest = max(0, start - self.chunk_overlap)
        if not former_end or earliest >= former_end:
            return start
        for number in range(earliest, earliest + (start - earliest) // _SEARCHED):
            if text[number - 1 : number].isspace() and not text[number].isspace():
                return number
        return earliest


def _spans(text: str, size: int) -> list[tuple[int, int]]:
    """The beginnings and ends of pieces with at most ``size`` characters."""
    with _SPLITTING:
        from semchunk.semchunk import chunk
    try:
        spans: Any = chunk(text, size, len, memoize=False, offsets=True)[1]
    except RecursionError:  # runs of white space with a thousand different lengths
        spans = [(start, min(start + size, len(text))) for start in range(0, len(text), size)]
    return [(start, end) for start, end in spans if not text[start:end].isspace()]

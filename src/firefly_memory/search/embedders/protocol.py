"""What an embedder is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, Protocol

Purpose = Literal["document", "query"]
"""What a text is embedded for: to be found, or to find."""

Vector = Sequence[float]


class Embedder(Protocol):
    """Turns texts into vectors, blocking and in an event loop."""

    @property
    def name(self) -> str:
        """Vectors belong to this name. Another model, or another way of asking it, has another name."""
        ...

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text, in their order."""
        ...

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text, in their order."""
        ...


class StaticEmbedder(ABC):
    """An embedder whose vector of a text is the mean of a vector for each token, whatever stands around it.

    A question is then embedded with a weight for each of its words, while stored vectors stay as they are. A class says
    that it can by being a subclass of this one.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Vectors belong to this name."""

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """How many numbers a vector has."""

    @abstractmethod
    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text, in their order."""

    @abstractmethod
    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text, in their order."""

    @abstractmethod
    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        """The vector of a question, given piece by piece with the weight of each."""

"""Embedders of other libraries, and functions, as embedders of this one. None of these libraries is imported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Protocol

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.sync_bridge import in_a_loop, result_of
from firefly_memory.errors import ConfigurationError
from firefly_memory.reprs import even_half_built, shown
from firefly_memory.search.embedders.protocol import Purpose, Vector
from firefly_memory.validation import at_least

Embed = Callable[[list[str]], "Sequence[Vector] | Awaitable[Sequence[Vector]]"]


class _Named:
    """The name and the dimensions of vectors."""

    def __init__(self, name: str, dimensions: int) -> None:
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"name must be a text such as 'openai:text-embedding-3-small', not {shown(name)}")
        self._name = name
        self._dimensions = at_least(1, "dimensions", dimensions)

    @property
    def name(self) -> str:
        """Vectors belong to this name."""
        return self._name

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return self._dimensions

    @even_half_built
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, dimensions={self._dimensions})"


class CallableEmbedder(_Named):
    """A function, blocking or asynchronous, that gives back a vector for each text.

    In an event loop a blocking function runs in a thread. For blocking callers an asynchronous function runs in another
    event loop.
    """

    def __init__(self, documents: Embed, *, name: str, dimensions: int, queries: Embed | None = None) -> None:
        """``queries`` embeds questions, if they are embedded in another way than documents."""
        super().__init__(name, dimensions)
        self._embed = {"document": documents, "query": documents if queries is None else queries}

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        function = self._embed[purpose]
        if iscoroutinefunction(function):
            return in_a_loop.run(function(list(texts)))
        result = function(list(texts))
        return in_a_loop.run(result_of(result)) if isawaitable(result) else result

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        function = self._embed[purpose]
        if iscoroutinefunction(function):
            awaited: Sequence[Vector] = await function(list(texts))
            return awaited
        found: Sequence[Vector] = await result_of(await in_worker_thread(partial(function, list(texts))))
        return found


class _LangChain(Protocol):
    """LangChain's ``Embeddings``."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    def embed_query(self, text: str) -> list[float]: ...

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]: ...

    async def aembed_query(self, text: str) -> list[float]: ...


class LangChainEmbedder(_Named):
    """An ``Embeddings`` of LangChain."""

    def __init__(self, embeddings: _LangChain, *, name: str, dimensions: int) -> None:
        super().__init__(name, dimensions)
        self._embeddings = embeddings

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        if purpose == "query":
            return [self._embeddings.embed_query(text) for text in texts]
        return self._embeddings.embed_documents(list(texts))

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        if purpose == "query":
            return [await self._embeddings.aembed_query(text) for text in texts]
        return await self._embeddings.aembed_documents(list(texts))


class _PydanticAI(Protocol):
    """pydantic-ai's ``Embedder``."""

    @property
    def model(self) -> Any: ...

    async def embed(self, inputs: Sequence[str], /, *, input_type: Purpose) -> Any: ...


class PydanticAIEmbedder(_Named):
    """An ``Embedder`` of pydantic-ai. Blocking callers may be inside a running event loop, which waits meanwhile."""

    def __init__(self, embedder: _PydanticAI, *, dimensions: int, name: str | None = None) -> None:
        """Without ``name`` it has the name of the model, such as ``openai:text-embedding-3-small``."""
        model = embedder.model
        of_model = model if isinstance(model, str) else f"{model.system}:{model.model_name}"
        super().__init__(of_model if name is None else name, dimensions)
        self._embedder = embedder

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        return in_a_loop.run(self.async_embed(texts, purpose))

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        """A vector for each text."""
        result = await self._embedder.embed(list(texts), input_type=purpose)
        vectors: Sequence[Vector] = result.embeddings
        return vectors

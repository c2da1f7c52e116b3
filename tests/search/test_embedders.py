"""Embedders: adapters, batches, attempts, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Embedder as PydanticAI
from pydantic_ai.embeddings import TestEmbeddingModel

from firefly_memory.concurrency.sync_bridge import in_a_loop
from firefly_memory.errors import ConfigurationError, EmbedderError, MissingDependencyError
from firefly_memory.search.embedders.adapters import CallableEmbedder, LangChainEmbedder, PydanticAIEmbedder
from firefly_memory.search.embedders.batches import ATTEMPTS, BATCH, LONGEST_TEXT, async_embed_all, embed_all
from firefly_memory.search.embedders.protocol import Embedder, StaticEmbedder
from tests.search.strategies import texts


def lengths(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


async def async_lengths(texts: Sequence[str]) -> list[list[float]]:
    return lengths(texts)


def later(texts: Sequence[str]) -> Awaitable[list[list[float]]]:
    return async_lengths(texts)


class Embeddings:
    """As LangChain's."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return lengths(texts)

    def embed_query(self, text: str) -> list[float]:
        return [float(len(text)), 2.0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return lengths(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return self.embed_query(text)


def of_functions(documents: Any, queries: Any = None) -> CallableEmbedder:
    return CallableEmbedder(documents, queries=queries, name="lengths", dimensions=2)


EMBEDDERS: dict[str, tuple[Embedder, list[float]]] = {
    "a function": (of_functions(lengths), [5.0, 1.0]),
    "an asynchronous function": (of_functions(async_lengths), [5.0, 1.0]),
    "a function that gives back an awaitable": (of_functions(later), [5.0, 1.0]),
    "another function for questions": (of_functions(lengths, lambda texts: [[0.0, 3.0] for _ in texts]), [0.0, 3.0]),
    "LangChain": (LangChainEmbedder(Embeddings(), name="lengths", dimensions=2), [5.0, 2.0]),
}


@pytest.mark.parametrize("kind", EMBEDDERS)
async def test_each_adapter_embeds_in_both_modes(kind: str) -> None:
    embedder, of_question = EMBEDDERS[kind]
    assert embed_all(embedder, ["one", "three"]).tolist() == [[3.0, 1.0], [5.0, 1.0]]
    assert (await async_embed_all(embedder, ["one", "three"])).tolist() == [[3.0, 1.0], [5.0, 1.0]]
    assert embed_all(embedder, ["where"], "query").tolist() == [of_question]
    assert (await async_embed_all(embedder, ["where"], "query")).tolist() == [of_question]


async def test_an_embedder_of_pydantic_ai_has_the_name_of_its_model() -> None:
    model = TestEmbeddingModel(dimensions=3)
    embedder = PydanticAIEmbedder(PydanticAI(model), dimensions=3)
    assert embed_all(embedder, ["a", "b"]).tolist() == [[1.0] * 3] * 2
    assert (await async_embed_all(embedder, ["a"], "query")).tolist() == [[1.0] * 3]
    assert embedder.name == "test:test"
    assert (
        PydanticAIEmbedder(PydanticAI("openai:text-embedding-3-small"), dimensions=3).name
        == "openai:text-embedding-3-small"
    )
    assert PydanticAIEmbedder(PydanticAI(model), dimensions=3, name="mine").name == "mine"
    assert repr(embedder) == "PydanticAIEmbedder('test:test', dimensions=3)"


def test_many_texts_are_embedded_in_batches_and_blank_ones_without_a_call() -> None:
    batches: list[int] = []

    def counted(texts: list[str]) -> list[list[float]]:
        batches.append(len(texts))
        return lengths(texts)

    texts = ["", *["x" * number for number in range(1, 2 * BATCH)], " \n"]
    rows = embed_all(of_functions(counted), texts)
    assert batches == [BATCH, BATCH - 1]
    assert rows[:, 0].tolist() == [*map(float, range(2 * BATCH)), 0.0]
    assert embed_all(of_functions(counted), []).shape == (0, 2)


def test_a_text_is_embedded_up_to_a_length_and_in_characters_that_can_be_sent() -> None:
    seen: list[str] = []

    def noted(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return lengths(texts)

    embed_all(of_functions(noted), ["x" * (LONGEST_TEXT + 1), "a\0\ud800b"])
    assert seen == ["x" * LONGEST_TEXT, "a\ufffd\ufffdb"]


class Failing:
    """Fails some times, and then embeds."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.left -= 1
        if self.left >= 0:
            raise OSError("busy")
        return lengths(texts)


async def test_a_call_that_fails_is_made_again_after_pauses_that_grow() -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    assert embed_all(of_functions(Failing(ATTEMPTS - 1)), ["one"], pause=pauses.append).tolist() == [[3.0, 1.0]]
    assert (await async_embed_all(of_functions(Failing(1)), ["one"], pause=note)).tolist() == [[3.0, 1.0]]
    assert [0.25 <= pauses[0] <= 0.5, 0.5 <= pauses[1] <= 1.0, 0.25 <= pauses[2] <= 0.5] == [True] * 3


def test_an_embedder_that_always_fails_is_named_with_its_last_error() -> None:
    pauses: list[float] = []
    with pytest.raises(EmbedderError, match="the embedder 'lengths' failed: OSError: busy") as raised:
        embed_all(of_functions(Failing(ATTEMPTS)), ["one"], pause=pauses.append)
    assert isinstance(raised.value.__cause__, OSError)
    assert len(pauses) == ATTEMPTS - 1


def test_an_error_of_this_library_is_raised_at_once() -> None:
    def without_its_package(texts: list[str]) -> list[list[float]]:
        raise MissingDependencyError("this embedder", "other", "embeddings")

    with pytest.raises(MissingDependencyError):
        embed_all(of_functions(without_its_package), ["one"], pause=lambda _: pytest.fail("it waits"))


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        ([[1.0, 2.0, 3.0]], "it gave back 1 by 3 numbers for 1 texts of 2 dimensions"),
        ([[1.0, 2.0], [1.0, 2.0]], "it gave back 2 by 2 numbers"),
        ([], "it gave back 0 numbers"),
        (None, "it gave back"),
        ("text", "something else than a list of vectors"),
        ([[1.0], [1.0, 2.0]], "something else than a list of vectors"),
        ([[1.0, float("nan")]], "numbers that are not finite"),
        ([[1.0, float("inf")]], "numbers that are not finite"),
    ],
)
def test_something_else_than_a_vector_for_each_text_is_refused(vectors: Any, problem: str) -> None:
    with pytest.raises(EmbedderError, match=problem):
        embed_all(of_functions(lambda _: vectors), ["one"])


@pytest.mark.parametrize(("name", "dimensions"), [("", 2), (None, 2), ("x", 0), ("x", 2.0), ("x", True)])
def test_an_embedder_needs_a_name_and_dimensions(name: Any, dimensions: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be"):
        CallableEmbedder(lengths, name=name, dimensions=dimensions)


async def test_a_blocking_call_with_an_asynchronous_function_works_inside_its_event_loop() -> None:
    def inside(texts: list[str]) -> Any:
        return embed_all(of_functions(async_lengths), texts)

    async def in_the_loop() -> Any:
        return inside(["one"])

    assert in_a_loop.run(in_the_loop()).tolist() == [[3.0, 1.0]]


@given(st.lists(texts, max_size=5))
def test_any_texts_can_be_embedded(each: list[str]) -> None:
    rows = embed_all(of_functions(lambda texts: [[float(len(text.encode())), 1.0] for text in texts]), each)
    assert rows.shape == (len(each), 2)
    assert rows.dtype == np.float32


def test_without_numpy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'firefly-memory\[vectors\]'"):
        embed_all(of_functions(lengths), ["one"])


def test_a_static_embedder_says_so_by_its_class() -> None:
    assert not isinstance(of_functions(lengths), StaticEmbedder)
    with pytest.raises(TypeError):
        StaticEmbedder()  # type: ignore[abstract]

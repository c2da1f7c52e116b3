"""Search by meaning with an embedder of one's own, where only the extra ``vectors`` is installed."""

from __future__ import annotations

import logging

import pytest

from firefly_memory import ConfigurationError
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.search.embedders.adapters import CallableEmbedder


def counted(texts: list[str]) -> list[list[float]]:
    return [[float(text.count("a")), float(text.count("b"))] for text in texts]


def test_an_embedder_of_ones_own_finds_by_meaning() -> None:
    knowledge = KnowledgeStore(embedder=CallableEmbedder(counted, name="counted", dimensions=2))
    knowledge.add("notes", ["a a a", "b b b"])
    assert knowledge.search("notes", "abb", 1, "semantic")[0].text == "b b b"


def test_without_the_extra_embeddings_hybrid_is_text_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    knowledge = KnowledgeStore()
    knowledge.add("notes", ["We bought a dog"])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [hit.text for hit in knowledge.search("notes", "dog")] == ["We bought a dog"]
    (said,) = caplog.messages
    assert "firefly-memory[embeddings]" in said
    with pytest.raises(ConfigurationError, match=r"firefly-memory\[embeddings\]"):
        knowledge.search("notes", "dog", mode="semantic")

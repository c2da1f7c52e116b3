"""The default embedder: offline, loaded on use, plain for documents and weighted for questions."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from firefly_memory.errors import MissingDependencyError
from firefly_memory.search.embedders import word_llama
from firefly_memory.search.embedders.batches import async_embed_all, embed_all
from firefly_memory.search.embedders.protocol import StaticEmbedder
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from tests.search.strategies import texts
from tests.support import offline_embedding, workers

EMBEDDER = WordLlamaEmbedder()


def test_it_embeds_with_the_network_cut_and_without_importing_the_package(tmp_path: Path) -> None:
    done = workers.run_command(
        offline_embedding.main, [], tmp_path, {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    )
    assert (done.stdout, done.stderr, done.returncode) == ("near False\n", "", 0)


async def test_a_vector_has_the_length_1_and_is_the_same_in_both_modes() -> None:
    assert isinstance(EMBEDDER, StaticEmbedder)
    assert (EMBEDDER.name, EMBEDDER.dimensions) == ("wordllama:l2_supercat_256", 256)
    texts = ["I adopted a puppy", "We bought a dog", "The invoice is overdue", " "]
    rows = embed_all(EMBEDDER, texts)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1, 0])
    assert (await async_embed_all(EMBEDDER, texts)).tolist() == rows.tolist()


def test_the_words_of_a_question_count_by_their_weights() -> None:
    dog, invoice = embed_all(EMBEDDER, ["dog", "invoice"])
    question = np.asarray(EMBEDDER.embed_weighted([("dog", 3.0), ("invoice", 1.0), ("", 9.0), ("the", 0.0)]))
    assert question @ dog > question @ invoice > 0
    assert np.asarray(EMBEDDER.embed_weighted([("dog", 2.0)])) == pytest.approx(dog, abs=1e-6)
    assert not np.any(EMBEDDER.embed_weighted([]))


def test_each_piece_counts_by_its_weight_alone_however_many_tokens_it_has() -> None:
    one, several = "dog", "internationalization"
    first, second = embed_all(EMBEDDER, [one, several])
    both = np.asarray(EMBEDDER.embed_weighted([(one, 1.0), (several, 1.0)]))
    assert both @ first == pytest.approx(both @ second, abs=1e-5)


def test_the_words_of_the_table_that_are_nearest_to_a_word_come_first() -> None:
    nearest = EMBEDDER.nearest_words("repair")
    words = [word for word, _ in nearest]
    assert words[0] == "repair"
    assert {"fix", "restore"} <= {*words[:12]}
    cosines = [cosine for _, cosine in nearest]
    assert cosines == sorted(cosines, reverse=True)
    assert EMBEDDER.nearest_words("repair") == nearest
    assert len(nearest) <= 32
    assert list(EMBEDDER.nearest_words("")) == []


@settings(max_examples=30)
@given(texts)
def test_any_text_has_a_vector(text: str) -> None:
    for vector in (embed_all(EMBEDDER, [text])[0], np.asarray(EMBEDDER.embed_weighted([(text, 2.0)]))):
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-4) or not vector.any()


@pytest.mark.parametrize("package", ["safetensors.numpy", "tokenizers"])
def test_a_missing_package_is_named_with_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    word_llama._loaded.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'firefly-memory\[embeddings\]'"):
        EMBEDDER.embed(["one"])


def test_where_the_extra_leaves_the_table_out_the_package_itself_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    word_llama._loaded.cache_clear()
    monkeypatch.setattr(word_llama, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"run: pip install 'wordllama>=0\.4"):
        EMBEDDER.embed(["one"])

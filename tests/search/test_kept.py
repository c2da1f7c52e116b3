"""What is kept of words, and the tokens of the default embedder, which are made of words that are kept."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firefly_memory.search import kept
from firefly_memory.search.embedders import word_llama
from firefly_memory.search.kept import Kept
from firefly_memory.search.signatures import signature_bytes, stored_forms, vector_bytes
from tests.search.strategies import HARD_TEXTS, texts


def test_what_is_made_is_kept_while_its_word_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST", 4)
    made: Counter[str] = Counter()

    def make(word: str) -> str:
        made[word] += 1
        return word.upper()

    words = Kept(make, 2)
    for word in ("a", "b", "a", "long", "long", "c", "a", "d", "a", "e", "b"):
        assert words[word] == word.upper()
        assert len(words) <= 2
    assert made == {"a": 1, "b": 2, "long": 2, "c": 1, "d": 1, "e": 1}


def test_threads_may_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST", 7)
    words = Kept(str.upper, 9)
    asked = [f"word {number % 11}" for number in range(4_000)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(words.__getitem__, asked)) == [each.upper() for each in asked]
    assert len(words) <= 3 + 4


pieces = st.sampled_from([" ", "  ", "\u2581", "<s>", "</s>", "<unk>", "<", "\n", "going", "Zürich", "x" * 60, "42"])


@settings(max_examples=200)
@given(st.one_of(texts, st.lists(st.one_of(pieces, st.text(max_size=5))).map("".join)))
@example(" ".join(HARD_TEXTS))
@example("a <s> b")
@example(" ")
def test_the_tokens_of_the_words_are_those_of_the_text(text: str) -> None:
    table = word_llama._table()
    whole = table._tokenizer.encode(word_llama._SURROGATES.sub("\ufffd", text), add_special_tokens=False).ids
    assert table.tokens(text).tolist() == whole


@given(st.lists(st.lists(st.floats(-9, 9, width=32), min_size=11, max_size=11), max_size=5))
def test_many_vectors_are_stored_as_each_of_them_would_be(rows: list[list[float]]) -> None:
    vectors = np.array(rows, dtype=np.float32).reshape(len(rows), 11)
    assert list(stored_forms(vectors)) == [(vector_bytes(each), signature_bytes(each)) for each in vectors]

"""Texts are split into chunks for a knowledge base."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from firefly_memory.strategies import TextSplitterConfig
from tests.support.value_strategies import any_text

HARD_TEXTS = {
    "a megabyte without a space": "x" * 1_000_000,
    "a megabyte of words": "word " * 200_000,
    "sentences": "The fox jumps over the dog. It runs! " * 500,
    "emoji": "👩\u200d👩\u200d👧\u200d👦🏳\ufe0f\u200d🌈😀" * 500,
    "chinese": "漢字。" * 2_000,
    "chinese without a stop": "漢" * 5_000,
    "halves of characters": "a\ud800b" * 2_000,
    "null characters": "a\0b " * 2_000,
    "paragraphs": "\n\n".join(f"Title {n}\n" + "A sentence. " * 9 for n in range(99)),
    "white space of every length": "a".join("\n" * n for n in range(1_400)),
}


@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=list(HARD_TEXTS))
def test_no_chunk_is_longer_than_chunk_size_and_nothing_is_lost(text: str) -> None:
    chunks = TextSplitterConfig().split(text)
    assert max(map(len, chunks)) <= 1000
    assert all(chunk.strip() for chunk in chunks)
    assert all(chunk in text for chunk in chunks[:3] + chunks[-3:])
    apart = TextSplitterConfig(chunk_overlap=0).split(text)
    assert max(map(len, apart)) <= 1000
    assert "".join("".join(apart).split()) == "".join(text.split())


@given(any_text, st.integers(1, 50), st.integers(0, 49))
def test_any_text_is_split_within_the_sizes(text: str, size: int, overlap: int) -> None:
    splitter = TextSplitterConfig(chunk_size=size, chunk_overlap=min(overlap, size - 1))
    chunks = splitter.split(text)
    assert all(len(chunk) <= size and chunk in text and chunk.strip() for chunk in chunks)
    visible = "".join(text.split())
    assert len("".join("".join(chunks).split())) >= len(visible)
    assert splitter.split(text) == chunks


def test_chunks_overlap_from_the_start_of_a_word() -> None:
    text = " ".join(f"word{number}" for number in range(1000))
    chunks = TextSplitterConfig().split(text)
    for before, after in pairwise(chunks):
        shared = after[: after.index(before.split()[-1]) + len(before.split()[-1])]
        assert before.endswith(shared)
        assert 40 <= len(shared) <= 100
        assert after.startswith("word")


def test_without_overlap_no_text_is_in_two_chunks() -> None:
    text = " ".join(map(str, range(5000)))
    chunks = TextSplitterConfig(chunk_size=100, chunk_overlap=0).split(text)
    assert " ".join(chunks) == text


def test_a_chunk_ends_at_a_sentence_where_the_text_has_one() -> None:
    chunks = TextSplitterConfig(chunk_size=60, chunk_overlap=0).split("The fox jumps over the dog. It runs! " * 20)
    assert all(chunk.endswith(("dog.", "runs!")) for chunk in chunks)


@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000"])
def test_a_text_without_a_visible_character_has_no_chunk(text: str) -> None:
    assert TextSplitterConfig().split(text) == []


def test_a_short_text_is_one_chunk() -> None:
    assert TextSplitterConfig().split(" short \n") == ["short"]


def test_the_defaults_are_1000_characters_with_an_overlap_of_100() -> None:
    assert TextSplitterConfig().model_dump() == {"chunk_size": 1000, "chunk_overlap": 100}


@pytest.mark.parametrize("sizes", [(100, 100), (0, 0), (10, -1), (10, 11)])
def test_the_overlap_is_smaller_than_the_size(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValidationError):
        TextSplitterConfig(chunk_size=sizes[0], chunk_overlap=sizes[1])

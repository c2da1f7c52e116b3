"""Fusion of several orders, and the arguments of a search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory.errors import ConfigurationError, InvalidEntryError
from firefly_memory.search.fusion import DEPTH, Fused, fuse
from firefly_memory.search.hits import MODES, Mode, Request, checked_request


def test_ranks_of_both_modes_are_added_with_their_weights() -> None:
    assert fuse({"text": ["a", "b"], "semantic": ["c", "a"]}) == [
        Fused("a", 1 / 21 + 0.5 / 22, {"text": 1, "semantic": 2}),
        Fused("b", 1 / 22, {"text": 2}),
        Fused("c", 0.5 / 21, {"semantic": 1}),
    ]


def test_with_one_mode_alone_its_order_stays() -> None:
    assert [each.id for each in fuse({"text": ["b", "a", "c"]})] == ["b", "a", "c"]
    assert fuse({}) == fuse({"text": [], "semantic": []}) == []


def test_the_first_hundred_of_each_mode_count() -> None:
    ids = [f"{number:03}" for number in range(DEPTH + 5)]
    assert [each.id for each in fuse({"text": ids})] == ids[:DEPTH]


orders = st.lists(st.text("abcd", min_size=1, max_size=2), unique=True, max_size=8)


@given(orders, orders)
def test_fusion_is_the_same_each_time_and_has_every_id_once(text: list[str], semantic: list[str]) -> None:
    fused = fuse({"text": text, "semantic": semantic})
    assert fused == fuse({"semantic": semantic, "text": text})
    assert sorted(each.id for each in fused) == sorted({*text, *semantic})
    assert [(-each.score, each.id) for each in fused] == sorted((-each.score, each.id) for each in fused)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_of_a_search_come_back_checked(mode: Mode) -> None:
    assert checked_request("boat", 5, mode, explain=True) == Request("boat", 5, mode, True)  # noqa: FBT003


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("boat", 0, "best"), "top_k must be a whole number from 1 up, not 0"),
        (("boat", True, "best"), "top_k must be a whole number from 1 up, not True"),
        (("boat", 5, "bm25"), "mode must be 'best', 'hybrid', 'text', 'semantic' or 'fuzzy', not 'bm25'"),
        (("boat", 5, ["text"]), "mode must be"),
        (("boat", 5, "text", 1), "explain must be True or False, not 1"),
    ],
)
def test_wrong_options_are_refused_with_what_would_be_right(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        checked_request(*arguments)


@pytest.mark.parametrize("question", [None, 3, b"boat", ["boat"]])
def test_a_question_that_is_no_text_is_refused(question: object) -> None:
    with pytest.raises(InvalidEntryError, match="query: must be text, not "):
        checked_request(question, 5, "best")

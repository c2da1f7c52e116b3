"""Histories within a number of tokens."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory import TokenEstimator
from firefly_memory.feeds.memories.budget import Block, Budget, Listed, answered_actions, shares
from firefly_memory.feeds.memories.history_blocks import ReadBlock, read_history, without_repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated(TokenEstimator):
    """Believes what a message says."""

    def estimate_message(self, message: Any) -> int:
        return int(message["tokens"])


def said(tokens: int, content: Any = None, **more: Any) -> Listed:
    key = more.get("agent_key")
    return Listed({"tokens": tokens, "content": content, **more}, key)


def budget(max_tokens: int) -> Budget:
    return Budget(max_tokens, Stated())


def tokens_of(blocks: Sequence[Block]) -> int:
    return sum(listed.message["tokens"] for block in blocks for listed in block)


def kept(max_tokens: int, *blocks: Block) -> list[list[Any]]:
    return [[listed.message["content"] for listed in block] for block in budget(max_tokens).fitting(blocks)]


# Shares.


@pytest.mark.parametrize(
    ("needs", "total", "given"),
    [
        ([], 10, []),
        ([5], 10, [5]),
        ([50], 10, [10]),
        ([50, 50], 10, [5, 5]),
        ([2, 50], 10, [2, 8]),
        ([50, 0, 50], 10, [5, 0, 5]),
        ([1, 50, 3], 12, [1, 8, 3]),
        ([50, 50, 50], 10, [3, 3, 4]),
        ([5, 5], 0, [0, 0]),
    ],
)
def test_what_a_block_does_not_need_goes_to_the_others(needs: list[int], total: int, given: list[int]) -> None:
    assert shares(needs, total) == given


@given(st.lists(st.integers(0, 1_000), max_size=5), st.integers(0, 2_000))
def test_shares_use_the_budget_as_far_as_it_is_needed(needs: list[int], total: int) -> None:
    given = shares(needs, total)
    assert sum(given) == min(total, sum(needs))
    assert all(share <= need for share, need in zip(given, needs, strict=True))
    most = max(given, default=0)
    assert all(share == need or share >= most - 1 for share, need in zip(given, needs, strict=True))


# What is kept of a block.


def test_the_newest_messages_are_kept_back_to_the_first_that_finds_no_room() -> None:
    block = [said(1, "a"), said(9, "b"), said(2, "c"), said(3, "d")]
    assert kept(15, block) == [["a", "b", "c", "d"]]
    assert kept(14, block) == [["b", "c", "d"]]
    assert kept(13, block) == [["c", "d"]]
    assert kept(9, block) == [["c", "d"]]


def test_a_message_that_is_larger_than_its_share_hides_none_before_it() -> None:
    block = [said(1, "a"), said(9, "b"), said(2, "c"), said(3, "d")]
    assert kept(8, block) == [["a", "c", "d"]]
    assert kept(2, block) == [["c"]]
    assert kept(1, block) == [["a"]]
    assert kept(0, block) == [[]]


def test_an_action_is_left_out_with_an_answer_that_is_too_large() -> None:
    block = [
        said(1, "task", type="task"),
        said(1, "call", type="action", agent_key="one"),
        said(900, "rows", type="observation", agent_key="one"),
    ]
    assert kept(100, block) == [["task"]]


def test_a_block_that_needs_little_leaves_its_share_to_another() -> None:
    long = [said(1, number) for number in range(20)]
    assert kept(10, long, [said(2, "small")], []) == [[*range(12, 20)], ["small"], []]


@pytest.mark.parametrize("answer", ["observation", "error"])
def test_an_action_and_its_answer_are_kept_together_or_not_at_all(answer: str) -> None:
    block = [said(5, "call", type="action"), said(1, "between"), said(1, "result", type=answer), said(1, "after")]
    assert kept(8, block) == [["call", "between", "result", "after"]]
    assert kept(7, block) == [["call", "result", "after"]]
    assert kept(6, block) == [["after"]]


def test_the_first_open_action_is_answered_first() -> None:
    kinds = ["action", "action", "observation", "task", "error", "observation"]
    assert answered_actions([said(1, type=kind) for kind in kinds]) == {2: 0, 4: 1}


def test_an_answer_belongs_to_an_action_of_the_same_agent() -> None:
    block = [
        said(1, type="action", agent_key="one"),
        said(1, type="action", agent_key="two"),
        said(1, type="observation", agent_key="two"),
        said(1, type="observation", agent_key="three"),
        said(1, type="observation", agent_key="one"),
    ]
    assert answered_actions(block) == {2: 1, 4: 0}


def test_a_tool_call_id_of_an_action_decides() -> None:
    block = [
        said(1, type="action", tool_call_id="a"),
        said(1, type="action", tool_call_id="b"),
        said(1, type="action"),
        said(1, type="observation", tool_call_id="b"),
        said(1, type="error", tool_call_id="unknown"),
        said(1, type="observation", tool_call_id="unknown"),
        said(1, type="observation", tool_call_id=""),
        said(1, type="observation", tool_call_id="a"),
    ]
    assert answered_actions(block) == {3: 1, 4: 2, 7: 0}


def test_an_action_without_an_answer_and_an_answer_without_an_action_are_kept_alone() -> None:
    block = [said(5, "orphan", type="observation"), said(1, "open", type="action")]
    assert kept(5, block) == [["open"]]
    assert kept(6, block) == [["orphan", "open"]]


@pytest.mark.parametrize("kind", [None, 5, ["action"], {"type": "action"}])
def test_odd_types_are_no_actions(kind: Any) -> None:
    assert answered_actions([said(1, type=kind), said(1, type="observation")]) == {}


_LISTED = st.builds(
    lambda tokens, kind, key: said(tokens, type=kind, agent_key=key),
    st.integers(0, 9),
    st.sampled_from(["action", "observation", "error", "task"]),
    st.sampled_from(["one", "two"]),
)


def pairs_of(block: Block) -> set[tuple[int, int]]:
    """The places of actions and their answers, found in another way."""
    waiting: defaultdict[str | None, deque[int]] = defaultdict(deque)
    found = set()
    for place, listed in enumerate(block):
        if listed.message["type"] == "action":
            waiting[listed.agent_key].append(place)
        elif listed.message["type"] in ("observation", "error") and waiting[listed.agent_key]:
            found.add((waiting[listed.agent_key].popleft(), place))
    return found


@given(st.lists(st.lists(_LISTED, max_size=12), min_size=1, max_size=3), st.integers(0, 120))
def test_what_is_kept_fits_and_splits_no_pair(blocks: list[list[Listed]], max_tokens: int) -> None:
    kept = budget(max_tokens).fitting(blocks)
    assert tokens_of(kept) <= max_tokens
    for block, left in zip(blocks, kept, strict=True):
        places = {place for place, listed in enumerate(block) if any(listed is each for each in left)}
        assert [block[place] for place in sorted(places)] == left
        for action, answer in pairs_of(block):
            assert (action in places) == (answer in places)
    if tokens_of(blocks) <= max_tokens:
        assert kept == blocks


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 60))
def test_without_actions_the_newest_messages_are_kept(tokens: list[int], max_tokens: int) -> None:
    block = [said(each, place) for place, each in enumerate(tokens)]
    (left,) = kept(max_tokens, block)
    small = [place for place, each in enumerate(tokens) if each <= max_tokens]
    assert left == small[len(small) - len(left) :]
    if len(left) < len(small):
        assert sum(tokens[place] for place in small[-len(left) - 1 :]) > max_tokens


# Tokens.


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"type": "user_message", "content": "Hello"},
        {"type": "action", "tool": "list_tables", "args": {"schema": "public"}, "agent_key": "one"},
        {"type": "observation", "content": {"tables": ["a", "b"]}},
        {"role": "assistant", "content": "Hello", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {1: None, ("a", 1): {2, 3}, "lone": "\ud800"},
    ],
)
def test_a_message_has_the_tokens_that_the_estimator_counts(message: Any) -> None:
    assert Budget(10_000, TokenEstimator()).tokens(message) == TokenEstimator().estimate_message(message)


def test_a_long_message_is_counted_about_right() -> None:
    message = {"content": "The quick brown fox jumps over the lazy dog. " * 10_000}
    exact = TokenEstimator().estimate_message(message)
    assert abs(Budget(1_000_000, TokenEstimator()).tokens(message) - exact) <= exact / 1_000


@pytest.mark.parametrize("text", ["x" * 1_000_000, "word " * 200_000, "\u4e2d" * 1_000_000, " " * 1_000_000])
def test_a_million_characters_do_not_take_seconds(text: str) -> None:
    started = time.process_time()
    assert Budget(8_000, TokenEstimator()).tokens({"content": text}) > 5_000
    assert time.process_time() - started < 1


# Reading no more than is needed.


class _Feed:
    """A block of a given length; counts what is read of it."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.limits: list[int | None] = []

    async def read(self, limit: int | None) -> Block:
        self.limits.append(limit)
        return self.block if limit is None else self.block[-limit:]


async def history(max_tokens: int | None, *feeds: ReadBlock) -> list[Any]:
    found = await read_history(feeds, None if max_tokens is None else budget(max_tokens))
    return [listed.message["content"] for listed in found]


async def test_without_a_budget_each_block_is_read_once() -> None:
    feeds = [_Feed([said(1, "a")]), _Feed([]), _Feed([said(1, "b")])]
    assert await history(None, *(feed.read for feed in feeds)) == ["a", "b"]
    assert [feed.limits for feed in feeds] == [[None]] * 3


async def test_with_a_budget_of_nothing_nothing_is_read() -> None:
    feed = _Feed([said(0, "a")])
    assert await history(0, feed.read) == []
    assert feed.limits == []


async def test_the_limit_doubles_until_the_budget_is_filled() -> None:
    feed = _Feed([said(10, number) for number in range(10_000)])
    assert await history(300, feed.read) == [*range(9_970, 10_000)]
    assert feed.limits == [16, 32, 64]


async def test_the_limit_doubles_until_the_block_is_at_its_end() -> None:
    feed = _Feed([said(1, number) for number in range(40)])
    assert await history(300, feed.read) == [*range(40)]
    assert feed.limits == [16, 32, 64]


async def test_a_store_that_knows_no_limits_is_read_once() -> None:
    block = [said(1, number) for number in range(40)]
    limits: list[int | None] = []

    async def read(limit: int | None) -> Block:
        limits.append(limit)
        return block

    assert await history(30, read) == [*range(10, 40)]
    assert limits == [16]


async def test_a_history_of_doubled_limits_is_that_of_the_whole_block() -> None:
    kinds = ["task", "action", "observation"]
    block = [said(place % 7 + 1, place, type=kinds[place % 3], agent_key="one") for place in range(500)]
    for max_tokens in range(0, 1_600, 57):
        assert [await history(max_tokens, _Feed(block).read)] == kept(max_tokens, block)


# Each message once.


def contents_without_repeated(*blocks: Block) -> list[list[Any]]:
    return [[listed.message["content"] for listed in block] for block in without_repeated(blocks)]


def test_a_message_is_listed_in_the_first_block_that_has_it() -> None:
    a, b, c = said(1, "a"), said(1, "b"), said(1, "c")
    assert contents_without_repeated([a, b], [b, c], [c, a]) == [["a", "b"], ["c"], []]


def test_equal_messages_are_counted() -> None:
    same = [said(1, "same") for _ in range(5)]
    assert contents_without_repeated(same[:2], same[2:4]) == [["same", "same"], []]
    assert contents_without_repeated(same[:1], same[1:4]) == [["same"], ["same", "same"]]
    assert contents_without_repeated([], same[:2], same[2:4]) == [[], ["same", "same"], []]


def test_messages_with_numbers_are_told_apart_by_them() -> None:
    one, other = Listed({"content": "same"}, None, 1), Listed({"content": "same"}, None, 2)
    assert contents_without_repeated([one], [one, other]) == [["same"], ["same"]]


class _Incomparable:
    def __eq__(self, other: object) -> bool:
        raise ValueError("cannot be compared")

    __hash__ = object.__hash__


def test_messages_of_odd_values_are_compared() -> None:
    deep: list[Any] = []
    for _ in range(50):
        deep = [deep, {"in": deep}] if len(str(deep)) < 1_000 else [deep]
    odd = [{1, 2}, b"bytes", 1.0, True, None, (1, [2]), deep, {"k": {1: [None]}}]
    for value in odd:
        assert contents_without_repeated([said(1, value)], [said(1, value)]) == [[value], []]
    strange = _Incomparable()
    blocks = without_repeated([[said(1, strange)], [said(1, _Incomparable())]])
    assert [len(block) for block in blocks] == [1, 1]


def test_thousands_of_similar_messages_are_compared_in_no_time() -> None:
    block = [said(1, {"rows": [{"deep": str(number)}]}) for number in range(10_000)]
    started = time.process_time()
    assert without_repeated([block, block])[1] == []
    assert time.process_time() - started < 2

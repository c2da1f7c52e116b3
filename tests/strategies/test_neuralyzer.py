"""The Neuralyzer: the oldest interactions leave, and nothing replaces them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart

from firefly_memory.strategies import NeuralyzerStrategy
from tests.support.shaped_messages import SHAPES, WHEN, Shape, turns


def ten(_: Any) -> int:
    """Each message has ten tokens."""
    return 10


STRATEGY = NeuralyzerStrategy(interaction_threshold_qty=3, interaction_keep=1)


async def test_above_the_threshold_only_the_last_interactions_are_kept(shape: Shape) -> None:
    messages = turns(shape, 3)
    assert STRATEGY.apply(messages, count=ten) == messages[4:]
    assert await STRATEGY.async_apply(messages, count=ten) == messages[4:]


def test_below_the_threshold_everything_stays(shape: Shape) -> None:
    messages = turns(shape, 2)
    assert STRATEGY.apply(messages, count=ten) == messages


def test_keep_0_keeps_no_interaction(shape: Shape) -> None:
    assert NeuralyzerStrategy(interaction_threshold_qty=1).apply(turns(shape, 3), count=ten) == []


def test_system_messages_stay(shape: Shape) -> None:
    messages = [shape.system("a"), *turns(shape, 2), shape.system("b"), *turns(shape, 1)]
    assert STRATEGY.apply(messages, count=ten) == [messages[0], messages[5], *messages[6:]]


def test_the_system_prompt_of_a_request_stays_when_the_request_leaves() -> None:
    shape = SHAPES["pydantic-ai"]
    first = ModelRequest([SystemPromptPart("Be brief.", timestamp=WHEN), UserPromptPart("a")], timestamp=WHEN)
    messages = [first, shape.assistant("b"), *turns(shape, 3)]
    assert STRATEGY.apply(messages, count=ten) == [shape.system("Be brief."), *messages[6:]]


def test_nothing_that_is_given_changes_and_a_second_run_does_nothing(shape: Shape) -> None:
    messages = [shape.system("a"), *turns(shape, 5)]
    before = deepcopy(messages)
    once = STRATEGY.apply(messages, count=ten)
    assert messages == before
    assert STRATEGY.apply(once, count=ten) == once


def test_delete_is_off_by_default() -> None:
    assert not NeuralyzerStrategy().delete

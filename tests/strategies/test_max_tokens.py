"""The short-term strategy: the newest interactions that fit the budget."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from firefly_memory import ConditionError, TokenEstimator
from firefly_memory.messages.shapes import read
from firefly_memory.strategies import KeepPlan, MemoryMaxTokensStrategy
from tests.support.shaped_messages import SHAPES, WHEN, PydanticAIJSON, Shape, texts, turns, unpaired


def ten(_: Any) -> int:
    """Each message has ten tokens."""
    return 10


def plan(messages: list[Any], budget: int, *conditions: str) -> KeepPlan:
    return MemoryMaxTokensStrategy(memory_max_tokens=budget, conditions=list(conditions)).plan(messages, ten)


def test_the_walk_goes_backwards_and_keeps_whole_interactions_while_they_fit(shape: Shape) -> None:
    messages = turns(shape, 4)
    kept = plan(messages, 59)
    assert kept.messages == tuple(messages[4:])
    assert kept.places == (4, 5, 6, 7)
    assert kept.tokens == 40
    assert kept.left_out == ("2 of 4 interactions are left out",)
    assert "the budget of 59 tokens is exceeded" in kept.why


def test_an_exact_fit_stays(shape: Shape) -> None:
    assert plan(turns(shape, 4), 60).places == (2, 3, 4, 5, 6, 7)


def test_the_first_interaction_that_does_not_fit_ends_the_walk(shape: Shape) -> None:
    long = [shape.user("long"), *[shape.assistant("more")] * 9]
    messages = [shape.user("short"), *long, shape.user("newest")]
    assert texts(plan(messages, 60).messages) == ["newest"], "the oldest would fit, but stands behind one that does not"


def test_if_even_the_newest_interaction_does_not_fit_the_result_is_empty(shape: Shape) -> None:
    kept = plan(turns(shape, 3), 19)
    assert (kept.messages, kept.places, kept.tokens) == ((), (), 0)
    assert "not even the newest interaction" in kept.why


@pytest.mark.parametrize("budget", [-1, 0])
def test_a_budget_of_minus_one_or_zero_includes_nothing(shape: Shape, budget: int) -> None:
    assert plan(turns(shape, 3), budget).messages == ()
    free = MemoryMaxTokensStrategy(memory_max_tokens=budget).plan(turns(shape, 3), lambda _: 0)
    assert free.messages == (), "also if messages cost nothing"


def test_a_budget_below_minus_one_is_refused() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to -1"):
        MemoryMaxTokensStrategy(memory_max_tokens=-2)


def test_the_default_budget_is_10000_tokens_and_there_are_no_conditions() -> None:
    strategy = MemoryMaxTokensStrategy()
    assert (strategy.memory_strategy_id, strategy.memory_max_tokens, strategy.conditions) == ("max_tokens", 10000, [])


def test_an_interaction_larger_than_the_budget_is_never_cut(shape: Shape) -> None:
    assert plan([shape.user("a"), *[shape.assistant("b")] * 100], 500).messages == ()


def test_a_call_and_its_result_in_a_later_interaction_are_kept_or_left_out_together(shape: Shape) -> None:
    deferred = [
        shape.user("a"),
        shape.assistant(calls=[("1", "f")]),
        shape.user("b"),
        shape.tool("1", "f"),
        shape.user("c"),
    ]
    assert plan(deferred, 50).places == (0, 1, 2, 3, 4)
    assert plan(deferred, 49).places == (4,), "the interaction with the result goes with the call, though it would fit"


def test_system_messages_always_stay_where_they_were_and_are_not_counted(shape: Shape) -> None:
    messages = [shape.system("Be brief."), *turns(shape, 2), shape.system("Be kind."), shape.user("c")]
    assert plan(messages, 10).places == (0, 5, 6)
    assert plan(messages, -1).places == (0, 5)
    assert plan(messages, 50, "message.role != 'system'").places == (0, 1, 2, 3, 4, 5, 6), "nor filtered"


@pytest.mark.parametrize("name", ["pydantic-ai", "pydantic-ai, JSON"])
def test_the_system_prompt_of_a_request_stays_when_its_user_prompt_is_left_out(name: str) -> None:
    system, prompt = SystemPromptPart("Be brief.", timestamp=WHEN), UserPromptPart("a", timestamp=WHEN)
    request: Any = ModelRequest([system, prompt], timestamp=WHEN)
    shape = SHAPES[name]
    if isinstance(shape, PydanticAIJSON):
        request = shape._shaped(request)
    kept = plan([request, shape.assistant("b"), shape.user("c")], 10)
    assert kept.messages == (shape.system("Be brief."), shape.user("c"))
    assert kept.places == (0, 2)
    assert len(read(request).texts) == 2, "the message itself has not changed"


# Conditions


CALLING = "weather?", "I look.", "Cold."


def calling(shape: Shape) -> list[Any]:
    asked, looking, answer = CALLING
    return [
        shape.user(asked),
        shape.assistant(looking, [("1", "weather"), ("2", "news")]),
        shape.tool("1", "weather", "14 degrees"),
        shape.tool("2", "news", "no news", is_error=True),
        shape.assistant(answer),
    ]


def test_a_message_that_fails_a_condition_is_left_out_and_the_call_goes_with_its_result(shape: Shape) -> None:
    kept = plan(calling(shape), 100, "message.role != 'tool'")
    assert texts(kept.messages) == [*CALLING], "the text of the message with the calls stays"
    assert unpaired(kept.messages) == set()
    assert kept.places == (0, 1, 4)
    assert kept.left_out == ("3 messages are left out or shortened by conditions",)


def test_only_the_call_of_the_result_that_is_left_out_goes(shape: Shape) -> None:
    kept = plan(calling(shape), 100, "message.name != 'news'")
    assert texts(kept.messages) == ["weather?", "I look.", "14 degrees", "Cold."]
    assert [call.name for message in kept.messages for call in read(message).tool_calls] == ["weather"]


def test_a_result_goes_with_its_call_that_is_left_out(shape: Shape) -> None:
    kept = plan(calling(shape), 100, "not message.tool_calls")
    assert texts(kept.messages) == ["weather?", "Cold."]


def test_a_message_of_which_nothing_is_left_is_left_out(shape: Shape) -> None:
    messages = [shape.user("a"), shape.assistant(calls=[("1", "f")]), shape.tool("1", "f"), shape.assistant("b")]
    assert plan(messages, 100, "message.role != 'tool'").places == (0, 3)


def test_a_response_with_nothing_but_thinking_left_is_left_out() -> None:
    messages = [
        ModelRequest([UserPromptPart("a")]),
        ModelResponse([ThinkingPart("hm"), ToolCallPart("f", {}, "1")]),
        ModelRequest([ToolReturnPart("f", "x", "1")]),
        ModelResponse([TextPart("b")]),
    ]
    assert plan(messages, 100, "message.role != 'tool'").places == (0, 3)


def test_the_older_functions_of_openai_have_no_ids_and_stay_together() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "I look.", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "x"},
    ]
    kept = plan(messages, 100, "message.role != 'tool'")
    assert kept.messages == (messages[0], {"role": "assistant", "content": "I look."})


def test_several_conditions_join_by_and(shape: Shape) -> None:
    messages = [shape.user("keep this"), shape.assistant("keep that"), shape.user("drop this")]
    assert plan(messages, 100, "message.role == 'user'", "'keep' in message.content").places == (0,)


def test_an_interaction_without_messages_is_dropped(shape: Shape) -> None:
    messages = turns(shape, 3)
    kept = plan(messages, 20, "message.content not in ['question 1', 'answer 1', 'question 2', 'answer 2']")
    assert kept.places == (0, 1), "the empty interactions cost nothing"


def test_conditions_come_before_the_budget(shape: Shape) -> None:
    kept = plan(turns(shape, 4), 40, "message.role == 'user'")
    assert texts(kept.messages) == ["question 0", "question 1", "question 2", "question 3"]


def test_a_deferred_call_whose_result_is_left_out_ties_nothing(shape: Shape) -> None:
    deferred = [shape.user("a"), shape.assistant("b", [("1", "f")]), shape.user("c"), shape.tool("1", "f")]
    assert plan(deferred, 10, "message.role != 'tool'").places == (2,)


def test_an_error_of_a_condition_is_raised_with_the_expression_and_never_taken_for_false(shape: Shape) -> None:
    expression = "message.content < 3"
    with pytest.raises(ConditionError, match=r"the condition 'message\.content < 3' cannot be evaluated") as caught:
        plan(turns(shape, 1), 100, expression)
    assert caught.value.expression == expression


# The plan


def test_nothing_that_is_given_changes(shape: Shape) -> None:
    messages = [shape.system("s"), *calling(shape), *turns(shape, 3)]
    before = deepcopy(messages)
    plan(messages, 60, "message.role != 'tool'")
    assert messages == before


def test_a_plan_is_the_same_each_time_and_readable(shape: Shape) -> None:
    messages = [*turns(shape, 3), *calling(shape)]
    first = plan(messages, 70, "message.role != 'tool'")
    assert first == plan(messages, 70, "message.role != 'tool'")
    assert str(first).startswith(f"{len(first.messages)} messages kept, {first.tokens} tokens: with the next older")
    assert repr(first) == f"KeepPlan({first})"


def test_apply_gives_the_messages_of_the_plan_and_applied_again_the_same_ones(shape: Shape) -> None:
    strategy = MemoryMaxTokensStrategy(memory_max_tokens=45)
    messages = [shape.system("s"), *turns(shape, 4)]
    once = strategy.apply(messages, ten)
    assert once == [messages[0], *messages[5:]]
    assert strategy.apply(once, ten) == once


def test_without_count_the_estimator_counts_contents_and_arguments(shape: Shape) -> None:
    estimator = TokenEstimator()
    messages = [*turns(shape, 2), shape.user("word " * 50), shape.assistant("word " * 50)]
    wanted = sum(estimator.estimate_turn("", "", [message]) for message in messages[-2:])
    assert MemoryMaxTokensStrategy(memory_max_tokens=wanted).plan(messages).places == (4, 5)
    assert MemoryMaxTokensStrategy(memory_max_tokens=wanted - 1).plan(messages).places == ()


def test_instructions_of_earlier_requests_are_not_counted() -> None:
    messages = [ModelRequest([UserPromptPart("a")], instructions="word " * 1000)]
    assert MemoryMaxTokensStrategy(memory_max_tokens=20).plan(messages).places == (0,)


def test_no_messages_are_no_error() -> None:
    assert MemoryMaxTokensStrategy().apply([]) == []


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="memory_max_token\n"):
        MemoryMaxTokensStrategy.model_validate({"memory_max_token": 5})


@pytest.mark.parametrize("name", ["dicts", "pydantic-ai"])
def test_a_hundred_thousand_messages_are_planned(name: str) -> None:
    messages = turns(SHAPES[name], 50_000)
    assert len(plan(messages, 10**9).messages) == 100_000
    assert len(plan(messages, 1_000).messages) == 100

"""When a long-term strategy runs, and which interactions leave."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolReturnPart
from pydantic_ai.usage import RequestUsage

from firefly_memory import ConfigurationError
from firefly_memory.strategies import FlushPlan, NeuralyzerStrategy, SummarizerStrategy
from tests.support.shaped_messages import SHAPES, Shape, turns


def ten(_: Any) -> int:
    """Each message has ten tokens."""
    return 10


def due(messages: list[Any], *, input_tokens: int | None = None, since: int = 0, **fields: Any) -> FlushPlan:
    strategy = NeuralyzerStrategy(**fields)
    return strategy.plan(messages, count=ten, input_tokens=input_tokens, since=since)


def test_a_neuralyzer_with_defaults_never_runs(shape: Shape) -> None:
    plan = NeuralyzerStrategy().plan(turns(shape, 500), count=lambda _: 10**9, input_tokens=10**9)
    assert not plan.is_due
    assert plan.why == "no trigger fired"
    assert plan.old == ()
    assert plan.kept == tuple(range(1000))


def test_the_threshold_of_interactions_fires_from_its_number_on(shape: Shape) -> None:
    assert not due(turns(shape, 2), interaction_threshold_qty=3).is_due
    plan = due(turns(shape, 3), interaction_threshold_qty=3)
    assert plan.is_due
    assert plan.why == "3 interactions, at least 3"
    assert (plan.old, plan.kept, plan.interactions) == ((0, 1, 2, 3, 4, 5), (), 3)


def test_the_threshold_of_tokens_fires_from_its_number_on(shape: Shape) -> None:
    assert not due(turns(shape, 2), interaction_threshold_tokens=41).is_due
    assert due(turns(shape, 2), interaction_threshold_tokens=40).why == "40 tokens, at least 40"


def test_the_threshold_of_input_tokens_fires_strictly_above_its_number(shape: Shape) -> None:
    assert not due(turns(shape, 2), input_tokens_threshold=100, input_tokens=100).is_due
    assert not due(turns(shape, 2), input_tokens_threshold=100).is_due
    plan = due(turns(shape, 2), input_tokens_threshold=100, input_tokens=101)
    assert plan.why == "the last prompt had 101 tokens, more than 100"


def test_messages_of_pydantic_ai_know_the_input_tokens_themselves() -> None:
    shape = SHAPES["pydantic-ai"]
    messages = [shape.user("a"), ModelResponse([TextPart("b")], usage=RequestUsage(input_tokens=101))]
    assert due(messages, input_tokens_threshold=100).is_due
    assert not due(messages, input_tokens_threshold=100, input_tokens=5).is_due, "the argument is believed"


@pytest.mark.parametrize("off", [0, -1])
def test_every_value_of_zero_or_less_means_off(shape: Shape, off: int) -> None:
    names = ("interaction_threshold_qty", "interaction_threshold_tokens", "input_tokens_threshold")
    assert not due(turns(shape, 9), input_tokens=10**6, **dict.fromkeys(names, off)).is_due


def test_triggers_combine_by_any(shape: Shape) -> None:
    plan = due(turns(shape, 3), interaction_threshold_qty=2, interaction_threshold_tokens=1000)
    assert plan.why == "3 interactions, at least 2"
    both = due(turns(shape, 3), interaction_threshold_qty=2, interaction_threshold_tokens=10)
    assert both.why == "3 interactions, at least 2; 60 tokens, at least 10"


def test_system_messages_are_neither_counted_nor_erased(shape: Shape) -> None:
    messages = [shape.system("a"), *turns(shape, 2), shape.system("b")]
    assert not due(messages, interaction_threshold_qty=3).is_due
    assert not due(messages, interaction_threshold_tokens=50).is_due
    plan = due(messages, interaction_threshold_tokens=40)
    assert (plan.old, plan.kept, plan.system) == ((1, 2, 3, 4), (), (0, 5))


# Conditions


def test_an_interaction_counts_if_one_of_its_messages_passes_the_conditions(shape: Shape) -> None:
    messages = [*turns(shape, 3), shape.user("Thanks.")]
    condition = ["'question' in message.content"]
    assert not due(messages, interaction_threshold_qty=4, interaction_conditions=condition).is_due
    assert due(messages, interaction_threshold_qty=3, interaction_conditions=condition).is_due


def test_only_the_tokens_of_messages_that_pass_count(shape: Shape) -> None:
    condition = ["message.role == 'user'"]
    assert not due(turns(shape, 3), interaction_threshold_tokens=31, interaction_conditions=condition).is_due
    assert due(turns(shape, 3), interaction_threshold_tokens=30, interaction_conditions=condition).is_due


def test_conditions_touch_neither_the_input_tokens_nor_the_tools_nor_what_leaves(shape: Shape) -> None:
    messages = [*turns(shape, 2), shape.user("a"), shape.assistant(calls=[("1", "f")]), shape.tool("1", "f")]
    nothing_passes = ["message.role == 'nobody'"]
    for triggers in ({"input_tokens_threshold": 10, "input_tokens": 11}, {"on_tools_success_threshold": ["f"]}):
        plan = due(messages, interaction_conditions=nothing_passes, **triggers)
        assert plan.old == tuple(range(7))


# Tools


def with_tool(shape: Shape, *, is_error: bool) -> list[Any]:
    return [shape.user("a"), shape.assistant(calls=[("1", "save")]), shape.tool("1", "save", is_error=is_error)]


@pytest.mark.parametrize("is_error", [False, True])
def test_a_named_tool_fires_when_it_succeeds_or_when_it_errors(shape: Shape, is_error: bool) -> None:
    messages = with_tool(shape, is_error=is_error)
    success = due(messages, on_tools_success_threshold=["other", "save"])
    error = due(messages, on_tools_error_threshold=["other", "save"])
    assert (success.is_due, error.is_due) == (not is_error, is_error)
    assert (error if is_error else success).why == f"the tool 'save' {'failed' if is_error else 'succeeded'}"


def test_other_tools_fire_nothing(shape: Shape) -> None:
    assert not due(with_tool(shape, is_error=False), on_tools_success_threshold=["load"]).is_due


def test_a_call_without_a_result_is_neither_success_nor_error(shape: Shape) -> None:
    messages = with_tool(shape, is_error=False)[:2]
    assert not due(messages, on_tools_success_threshold=["save"], on_tools_error_threshold=["save"]).is_due


def test_an_interrupted_call_is_neither_success_nor_error() -> None:
    part = ToolReturnPart("save", "interrupted", "1", outcome="interrupted")
    messages = [*with_tool(SHAPES["pydantic-ai"], is_error=False)[:2], ModelRequest([part])]
    assert not due(messages, on_tools_success_threshold=["save"], on_tools_error_threshold=["save"]).is_due


def test_only_results_newer_than_the_last_run_count(shape: Shape) -> None:
    messages = [*with_tool(shape, is_error=False), *turns(shape, 1)]
    assert due(messages, since=2, on_tools_success_threshold=["save"]).is_due
    assert not due(messages, since=3, on_tools_success_threshold=["save"]).is_due


def test_since_must_be_an_index() -> None:
    with pytest.raises(ConfigurationError, match="since must be a whole number from 0 up"):
        due([], since=-1)


# What leaves


@pytest.mark.parametrize(("keep", "old"), [(0, 8), (1, 6), (3, 2), (4, 0), (9, 0)])
def test_all_but_the_last_interactions_leave(shape: Shape, keep: int, old: int) -> None:
    plan = due(turns(shape, 4), interaction_threshold_qty=1, interaction_keep=keep)
    assert plan.old == tuple(range(old))
    assert plan.kept == tuple(range(old, 8))
    assert plan.is_due == (old > 0)


def test_if_nothing_is_old_nothing_happens(shape: Shape) -> None:
    plan = due(turns(shape, 2), interaction_threshold_qty=1, interaction_keep=2)
    assert plan.why == "2 interactions, at least 1, but no interaction is old enough to leave"
    assert str(plan) == f"nothing to do: {plan.why}"


def test_a_call_is_not_parted_from_its_result_in_a_later_interaction(shape: Shape) -> None:
    messages = [
        *turns(shape, 1),
        shape.user("a"),
        shape.assistant(calls=[("1", "f")]),
        shape.user("b"),
        shape.tool("1", "f"),
        shape.user("c"),
    ]
    plan = due(messages, interaction_threshold_qty=1, interaction_keep=2)
    assert plan.old == (0, 1), "the interaction with the call stays with that of the result"


def test_the_newest_interaction_stays_while_a_call_waits_for_its_result(shape: Shape) -> None:
    waiting = [*turns(shape, 2), shape.user("a"), shape.assistant(calls=[("1", "f")])]
    assert due(waiting, interaction_threshold_qty=1).kept == (4, 5)
    assert due([*waiting, shape.tool("1", "f")], interaction_threshold_qty=1).kept == ()


def test_a_plan_is_the_same_each_time_and_readable(shape: Shape) -> None:
    first, second = (due(turns(shape, 4), interaction_threshold_qty=1, interaction_keep=1) for _ in range(2))
    assert first == second
    assert str(first) == "3 interactions (6 messages) leave, 2 stay: 4 interactions, at least 1"
    assert repr(first) == f"FlushPlan({first})"


def test_without_a_threshold_of_tokens_nothing_is_counted(shape: Shape) -> None:
    def count(_: Any) -> int:
        raise AssertionError

    assert NeuralyzerStrategy(interaction_threshold_qty=1).plan(turns(shape, 4), count=count).is_due


# Configuration


@pytest.mark.parametrize(
    "fields",
    [
        {"interaction_keep": -1},
        {"interaction_threshold_qty": -2},
        {"interaction_threshold_tokens": -2},
        {"input_tokens_threshold": -2},
        {"on_tools_error_threshold": [""]},
        {"interaction_conditions": [""]},
        {"interaction_conditions": ["message.role =="]},
        {"unknown": 1},
    ],
    ids=str,
)
def test_fields_that_cannot_be_meant_are_refused(fields: dict[str, Any]) -> None:
    for strategy in (NeuralyzerStrategy, SummarizerStrategy):
        with pytest.raises(ValidationError) as caught:
            strategy.model_validate(fields)
        assert caught.value.errors()[0]["loc"][0] == next(iter(fields))


def test_the_defaults_of_the_shared_fields() -> None:
    strategy = NeuralyzerStrategy()
    assert strategy.model_dump() == {
        "long_term_memory_id": "neuralyzer",
        "input_tokens_threshold": 0,
        "interaction_keep": 0,
        "interaction_conditions": [],
        "interaction_threshold_qty": -1,
        "interaction_threshold_tokens": -1,
        "on_tools_success_threshold": [],
        "on_tools_error_threshold": [],
        "delete": False,
    }


def test_a_hundred_thousand_messages_are_planned() -> None:
    plan = due(turns(SHAPES["dicts"], 50_000), interaction_threshold_tokens=1, interaction_keep=5)
    assert len(plan.old) == 99_990

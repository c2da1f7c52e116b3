"""Each filter chooses the messages that its role's prompt has."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory import ConfigurationError
from firefly_memory.feeds.constants import CONVERSATION_TYPES, PLANNING_TYPES, TRACE_TYPES
from firefly_memory.feeds.history_filters import (
    DefaultHistoryFilter,
    HistoryFilter,
    ManagerHistoryFilter,
    OrchestratorHistoryFilter,
    WorkerHistoryFilter,
)
from tests.support.value_strategies import json_values

FILTERS: list[HistoryFilter] = [
    DefaultHistoryFilter(),
    OrchestratorHistoryFilter(),
    ManagerHistoryFilter(),
    WorkerHistoryFilter(),
]


def message(kind: Any, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": kind, "content": number, **more}


def numbers(messages: list[dict[str, Any]]) -> list[int]:
    return [each["content"] for each in messages]


STRANGE: list[Any] = [
    {},
    {"content": 1},
    {"type": None},
    {"type": []},
    {"type": {}},
    {"role": "user"},
    {"type": 1},
    "x",
]
"""Messages without a type, or with one that is no text."""


# Orchestrator


def conversation(length: int) -> list[dict[str, Any]]:
    """So many messages of people and the assistant, with others between them."""
    said = [message(("user_message", "assistant_message")[each % 2], each) for each in range(length)]
    return [part for each in said for part in (message("observation"), *STRANGE, each, message("final"))]


@pytest.mark.parametrize(
    ("given_to_constructor", "context", "chosen"),
    [
        ({}, None, range(2, 10)),
        ({}, {}, range(2, 10)),
        ({}, {"max_conversation_turns": None}, range(2, 10)),
        ({"max_conversation_turns": 3}, None, range(7, 10)),
        ({"max_conversation_turns": 3}, {"max_conversation_turns": 1}, [9]),
        ({"max_conversation_turns": 3}, {"max_conversation_turns": 10**30}, range(10)),
        ({"max_conversation_turns": 3}, {"max_conversation_turns": 0}, []),
        ({"max_conversation_turns": 0}, None, []),
        ({"max_conversation_turns": 10}, None, range(10)),
        ({"max_conversation_turns": 11}, None, range(10)),
    ],
)
def test_an_orchestrator_gets_the_newest_of_the_conversation(
    given_to_constructor: Any, context: Any, chosen: Any
) -> None:
    found = OrchestratorHistoryFilter(**given_to_constructor).filter_for_prompt(conversation(10), context)
    assert numbers(found) == list(chosen)


@pytest.mark.parametrize("wrong", [-1, "3", 1.0, True, False, [], 10.5])
def test_a_number_of_turns_that_is_none_is_refused(wrong: Any) -> None:
    problem = "^max_conversation_turns must be a whole number from 0 up, not "
    with pytest.raises(ConfigurationError, match=problem):
        OrchestratorHistoryFilter(max_conversation_turns=wrong)
    with pytest.raises(ConfigurationError, match=problem):
        OrchestratorHistoryFilter().filter_for_prompt([], {"max_conversation_turns": wrong})


@pytest.mark.parametrize("kind", sorted(TRACE_TYPES | PLANNING_TYPES | {"final", "synthesis"}))
def test_an_orchestrator_gets_nothing_but_the_conversation(kind: str) -> None:
    assert OrchestratorHistoryFilter().filter_for_prompt([message(kind)]) == []


# Manager

SYNTHESES = [
    *STRANGE,
    message("synthesis", 1, phase_id=0),
    message("synthesis", 2, phase_id=1),
    message("final", 3, phase_id=1),
    message("synthesis", 4),
    message("synthesis", 5, phase_id="p"),
    message("synthesis", 6, phase_id=True),
    message("synthesis", 7, phase_id=[1]),
    message("synthesis", 8, phase_id=1),
    message("synthesis", 9, phase_id=None),
    message("synthesis", 10, phase_id="1"),
    message("synthesis", 11, phase_id=False),
]


@pytest.mark.parametrize(
    ("context", "chosen"),
    [
        ({"previous_phase_id": 1}, [2, 8]),
        ({"previous_phase_id": 1, "phase_id": 1}, [2, 8]),
        ({"previous_phase_id": 0}, [1]),
        ({"previous_phase_id": "p"}, [5]),
        ({"previous_phase_id": "1"}, [10]),
        ({"previous_phase_id": -1}, []),
        ({"previous_phase_id": None, "phase_id": 2}, [2, 8]),
        ({"phase_id": 2}, [2, 8]),
        ({"phase_id": 1}, [1]),
        ({"phase_id": 0}, []),
        ({"phase_id": -3}, []),
        ({"phase_id": 99}, []),
        ({"phase_id": None}, []),
        ({}, []),
        (None, []),
    ],
)
def test_a_manager_gets_the_syntheses_of_the_phase_before(context: Any, chosen: list[int]) -> None:
    assert numbers(ManagerHistoryFilter().filter_for_prompt(SYNTHESES, context)) == chosen


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        ({"phase_id": "2"}, "phase_id must be a whole number, not '2'; for other ids, give previous_phase_id"),
        ({"phase_id": True}, "phase_id must be a whole number, not True"),
        ({"phase_id": 1.5}, "phase_id must be a whole number, not 1.5"),
        ({"previous_phase_id": True}, "previous_phase_id must be a whole number or text, not True"),
        ({"previous_phase_id": [1]}, "previous_phase_id must be a whole number or text, not "),
        ("phase 1", "context must be a mapping or None, not str"),
    ],
)
def test_a_phase_that_is_none_is_refused(context: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ManagerHistoryFilter().filter_for_prompt(SYNTHESES, context)
    assert str(caught.value).startswith(problem)


# Worker


def test_a_worker_gets_what_follows_the_last_task() -> None:
    history = [
        message("task", 1),
        message("action", 2),
        *STRANGE,
        message("task", 3),
        message("user_message", 4),
        message("action", 5),
        *STRANGE,
        message("observation", 6),
        message("suggested_plan", 7),
        message("error", 8),
        message("global_observation", 9),
        message("final", 10),
        message("synthesis", 11),
        message("observation", 12),
    ]
    assert numbers(WorkerHistoryFilter().filter_for_prompt(history, {"phase_id": "any"})) == [5, 6, 8, 9, 12]


@pytest.mark.parametrize("history", [[], STRANGE, [message("action"), message("observation")], [message("task")]])
def test_a_worker_gets_nothing_without_a_task_or_without_steps(history: list[Any]) -> None:
    assert WorkerHistoryFilter().filter_for_prompt(history) == []


# Every filter


def test_the_default_is_everything() -> None:
    history = [message("task"), *STRANGE]
    assert DefaultHistoryFilter().filter_for_prompt(history) == history


@pytest.mark.parametrize("each", FILTERS, ids=lambda each: type(each).__name__)
def test_a_filter_returns_a_new_list_and_takes_any_iterable(each: HistoryFilter) -> None:
    history = [message("task"), message("action"), message("user_message"), message("synthesis", phase_id=1)]
    before = deepcopy(history)
    context = {"phase_id": 2}
    found = each.filter_for_prompt(history, context)
    assert found
    assert found == each.filter_for_prompt(iter(history), context)
    assert all(any(one is other for other in history) for one in found)
    found.clear()
    assert history == before


kinds = (
    st.sampled_from(sorted(CONVERSATION_TYPES | TRACE_TYPES | PLANNING_TYPES | {"synthesis", "final"})) | json_values
)
messages = (
    st.fixed_dictionaries({}, optional={"type": kinds, "phase_id": json_values, "content": json_values}) | json_values
)
contexts = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "max_conversation_turns": st.none() | st.integers(0, 5),
        "phase_id": st.none() | st.integers(-2, 5),
        "previous_phase_id": st.none() | st.integers(-2, 5) | st.text(),
        "other": json_values,
    },
)


@given(st.lists(messages, max_size=8), contexts)
def test_no_history_makes_a_filter_fail(history: list[Any], context: Any) -> None:
    before = deepcopy(history)
    for each in FILTERS:
        found = each.filter_for_prompt(history, context)
        rest = iter(history)
        assert all(any(other is one for other in rest) for one in found)
    assert history == before

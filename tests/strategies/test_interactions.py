"""Messages are grouped by human turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from firefly_memory import ConfigurationError
from firefly_memory.messages.interactions import tied_interactions
from firefly_memory.messages.shapes import read, role_of, tool_ids
from firefly_memory.messages.usage import reported_input_tokens
from firefly_memory.strategies import Interaction, MemoryMaxTokensStrategy, interactions_of
from tests.support.pydantic_ai_messages import EVERYTHING
from tests.support.shaped_messages import SHAPES, Shape
from tests.support.value_strategies import json_values


def places(messages: list[Any]) -> list[tuple[int, ...]]:
    return [interaction.places for interaction in interactions_of(messages, lambda _: 1)]


def test_a_human_message_and_all_assistant_and_tool_messages_until_the_next_are_one_interaction(shape: Shape) -> None:
    messages = [
        shape.user("weather?"),
        shape.assistant("I look.", [("1", "weather")]),
        shape.tool("1", "weather"),
        shape.assistant("Cold."),
        shape.user("Thanks."),
        shape.assistant("Welcome."),
    ]
    assert places(messages) == [(0, 1, 2, 3), (4, 5)]
    first, second = interactions_of(messages, lambda _: 5)
    assert first == Interaction(tuple(messages[:4]), tokens=20, is_headless=False, places=(0, 1, 2, 3))
    assert second.tokens == 10
    assert "4 messages from 0 on, 20 tokens" in repr(first)


def test_consecutive_human_messages_are_interactions_of_one_message(shape: Shape) -> None:
    assert places([shape.user("a"), shape.user("b"), shape.user("c"), shape.assistant("d")]) == [(0,), (1,), (2, 3)]


def test_messages_before_the_first_human_message_form_a_headless_interaction(shape: Shape) -> None:
    messages = [shape.assistant("Hello!"), shape.assistant("How are you?"), shape.user("Fine.")]
    assert places(messages) == [(0, 1), (2,)]
    assert [each.is_headless for each in interactions_of(messages, lambda _: 1)] == [True, False]


def test_system_messages_belong_to_no_interaction(shape: Shape) -> None:
    messages = [shape.system("Be brief."), shape.user("a"), shape.system("Be kind."), shape.assistant("b")]
    assert places(messages) == [(1, 3)]
    assert places([shape.system("Be brief.")]) == []


def test_a_request_with_notes_of_the_program_only_is_of_the_system() -> None:
    note = {"kind": "request", "parts": [{"part_kind": "instruction-delta", "content": "Be kind."}]}
    assert places([note, SHAPES["dicts"].user("a"), note]) == [(1,)]
    assert places([{"kind": "request", "parts": []}]) == [(0,)]


def test_a_result_without_a_call_joins_the_interaction_where_it_stands(shape: Shape) -> None:
    messages = [shape.tool("1", "f"), shape.user("a"), shape.tool("2", "f")]
    assert places(messages) == [(0,), (1, 2)]
    assert tied_interactions(messages) == []


def test_no_messages_have_no_interaction() -> None:
    assert interactions_of([], lambda _: 1) == []


def test_a_request_with_a_system_prompt_and_a_user_prompt_opens_an_interaction() -> None:
    assert places([ModelRequest([SystemPromptPart("Be brief."), UserPromptPart("a")])]) == [(0,)]


def test_tool_results_stay_with_their_call_also_if_the_request_has_a_prompt_beside_them() -> None:
    messages = [
        ModelRequest([UserPromptPart("a")]),
        ModelResponse([ToolCallPart("f", {}, "1")]),
        ModelRequest([ToolReturnPart("f", "x", "1"), UserPromptPart("b")]),
        ModelResponse([TextPart("c")]),
        ModelRequest([UserPromptPart("d")]),
    ]
    assert places(messages) == [(0, 1, 2, 3), (4,)]


def test_a_prompt_beside_results_of_an_earlier_interaction_opens_one_and_both_are_tied() -> None:
    messages = [
        ModelRequest([UserPromptPart("a")]),
        ModelResponse([ToolCallPart("f", {}, "1")]),
        ModelRequest([UserPromptPart("b")]),
        ModelResponse([TextPart("c")]),
        ModelRequest([ToolReturnPart("f", "x", "1"), UserPromptPart("d")]),
    ]
    assert places(messages) == [(0, 1), (2, 3), (4,)]
    assert tied_interactions(messages) == [(0, 2)]


def test_interactions_are_tied_by_a_call_and_its_later_result(shape: Shape) -> None:
    messages = [
        shape.user("a"),
        shape.assistant(calls=[("1", "f")]),
        shape.user("b"),
        shape.user("c"),
        shape.tool("1", "f"),
    ]
    assert tied_interactions(messages) == [(0, 2)]


def test_an_id_that_is_used_again_ties_nothing(shape: Shape) -> None:
    turn = [shape.user("a"), shape.assistant(calls=[("1", "f")]), shape.tool("1", "f")]
    assert tied_interactions(turn * 3) == []


@dataclass
class Said:
    """A message of an application."""

    role: str
    content: str
    tool_calls: list[Any] = field(default_factory=list)


@pytest.mark.parametrize(
    "make", [Said, lambda role, content, **more: SimpleNamespace(role=role, content=content, **more)]
)
def test_objects_with_a_role_are_messages(make: Any) -> None:
    messages = [
        make("system", "Be brief."),
        make("human", "a"),
        make("ai", "b", tool_calls=[{"id": "1", "name": "f"}]),
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        make("user", "c"),
    ]
    assert places(messages) == [(1, 2, 3), (4,)]
    kept = MemoryMaxTokensStrategy(conditions=["message.role != 'tool'"]).plan(messages)
    assert kept.places == (0, 1, 2, 4)
    assert read(kept.messages[2]).texts == ("b",)
    assert read(kept.messages[2]).tool_calls == ()
    assert kept.messages[1] is messages[1], "what stays whole is the object that was given"


@pytest.mark.parametrize("wrong", [-1, 1.5, None, "7", True])
def test_a_count_that_is_no_whole_number_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="count must return a whole number from 0 up"):
        interactions_of([SHAPES["dicts"].user("a")], lambda _: wrong)


@given(json_values)
def test_any_json_value_has_the_role_that_read_finds(value: Any) -> None:
    assert role_of(value) == read(value).role
    assert len(interactions_of([value], lambda _: 1)) == (role_of(value) != "system")


def test_every_message_has_the_role_and_the_tool_ids_that_read_finds(shape: Shape) -> None:
    made = [
        shape.system("a"),
        shape.user("a"),
        shape.assistant("a", [("1", "f"), ("2", "g")]),
        shape.tool("1", "f"),
        *EVERYTHING,
        ModelRequest([UserPromptPart([]), ToolReturnPart("f", "x", "1")]),
        ModelRequest([]),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
        {"role": "developer", "content": "x"},
        "text",
    ]
    for message in made:
        found = read(message)
        assert role_of(message) == found.role
        expected = [(call.id, call.name, True) for call in found.tool_calls]
        assert tool_ids(message) == [*expected, *((result.id, result.name, False) for result in found.tool_results)]


def test_the_newest_response_reports_the_size_of_its_prompt() -> None:
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_ai.usage import RequestUsage

    messages: list[Any] = [
        ModelResponse([TextPart("a")], usage=RequestUsage(input_tokens=7)),
        ModelResponse([TextPart("b")], usage=RequestUsage(input_tokens=9)),
        ModelRequest([UserPromptPart("c")]),
    ]
    assert reported_input_tokens(messages) == 9
    assert reported_input_tokens(ModelMessagesTypeAdapter.dump_python(messages, mode="json")) == 9
    assert reported_input_tokens([messages[0], ModelResponse([TextPart("b")])]) is None
    assert reported_input_tokens([{"role": "assistant", "content": "a"}]) is None
    assert reported_input_tokens([]) is None

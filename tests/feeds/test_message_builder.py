"""Each type of message is made by a function of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from firefly_memory import ConfigurationError, clock
from firefly_memory.feeds import constants, message_builder
from firefly_memory.feeds.items import Message
from firefly_memory.feeds.message_builder import get_message_type_info

NOW = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)


class Case(NamedTuple):
    name: str
    arguments: tuple[Any, ...]
    fields: Message
    required: list[str]
    optional: list[str]

    @property
    def create(self) -> Callable[..., Message]:
        function: Callable[..., Message] = getattr(message_builder, self.name)
        return function


COMMON = ["timestamp", "turn_id"]


def with_content(name: str) -> Case:
    return Case(name, ("x",), {"content": "x"}, ["content"], COMMON)


CASES = {
    constants.USER_MESSAGE: with_content("create_user_message"),
    constants.ASSISTANT_MESSAGE: with_content("create_assistant_message"),
    constants.TASK: with_content("create_task"),
    constants.ACTION: Case(
        "create_action", ("search", {"q": 1}), {"tool": "search", "args": {"q": 1}}, ["tool", "args"], COMMON
    ),
    constants.OBSERVATION: with_content("create_observation"),
    constants.ERROR: Case("create_error", ("x",), {"content": {"error_message": "x"}}, ["content"], COMMON),
    constants.GLOBAL_OBSERVATION: with_content("create_global_observation"),
    constants.FINAL: with_content("create_final"),
    constants.SYNTHESIS: Case(
        "create_synthesis", ("x",), {"content": "x"}, ["content"], ["from_manager", "phase_id", *COMMON]
    ),
    constants.STRATEGIC_PLAN: with_content("create_strategic_plan"),
    constants.SUGGESTED_PLAN: with_content("create_suggested_plan"),
    constants.SCRIPT_INSTRUCTION: with_content("create_script_instruction"),
}

every_type = pytest.mark.parametrize("kind", CASES)


def test_every_constant_has_a_case_and_is_in_one_group() -> None:
    named = {value for name, value in vars(constants).items() if name.isupper() and isinstance(value, str)}
    groups = (
        constants.CONVERSATION_TYPES,
        constants.TRACE_TYPES,
        constants.COMPLETION_TYPES,
        constants.PLANNING_TYPES,
    )
    assert named == set(CASES)
    assert sorted(each for group in groups for each in group) == sorted(CASES)
    assert all(getattr(constants, value.upper()) == value for value in CASES)


@every_type
def test_a_message_has_its_type_its_arguments_and_the_time(kind: str) -> None:
    case = CASES[kind]
    with clock.reading_from(lambda: NOW):
        message = case.create(*case.arguments)
    assert message == {"type": kind, **case.fields, "timestamp": "2025-03-01T12:30:00+00:00"}


@every_type
def test_the_arguments_can_be_named(kind: str) -> None:
    case = CASES[kind]
    named = dict(zip(case.required, case.arguments, strict=True))
    assert case.create(**named, timestamp=1) == case.create(*case.arguments, timestamp=1)


@every_type
def test_other_keywords_become_keys(kind: str) -> None:
    case = CASES[kind]
    message = case.create(*case.arguments, timestamp="t", agent_key="worker_1", is_global=True, note=None)
    extras = {"agent_key": "worker_1", "is_global": True, "note": None}
    assert message == {"type": kind, **case.fields, "timestamp": "t", **extras}


@every_type
@pytest.mark.parametrize("timestamp", [0, 0.0, "", 1741000000.5, "2025-03-01"])
def test_a_timestamp_that_is_given_is_kept(kind: str, timestamp: Any) -> None:
    case = CASES[kind]
    kept = case.create(*case.arguments, timestamp=timestamp)["timestamp"]
    assert kept == timestamp
    assert type(kept) is type(timestamp)


@every_type
def test_a_turn_id_is_a_key_only_if_it_is_given(kind: str) -> None:
    case = CASES[kind]
    assert "turn_id" not in case.create(*case.arguments)
    assert "turn_id" not in case.create(*case.arguments, turn_id=None)
    assert case.create(*case.arguments, turn_id=0)["turn_id"] == 0
    assert case.create(*case.arguments, turn_id="t-1")["turn_id"] == "t-1"


@every_type
def test_the_type_is_no_keyword(kind: str) -> None:
    case = CASES[kind]
    with pytest.raises(ConfigurationError, match=f"the type of this message is '{kind}'"):
        case.create(*case.arguments, type="final")


@every_type
def test_an_alias_is_the_same_function(kind: str) -> None:
    assert getattr(message_builder, f"create_{kind}_entry", None) is CASES[kind].create


@every_type
def test_the_info_of_a_type_names_its_fields(kind: str) -> None:
    info = get_message_type_info(kind)
    assert info is not None
    assert info["required_fields"] == CASES[kind].required
    assert info["optional_fields"] == CASES[kind].optional
    assert (
        info["description"] == (CASES[kind].create.__doc__ or "").partition(";")[0].partition(".")[0].rstrip(".") + "."
    )


def test_the_info_is_the_callers_own() -> None:
    info = get_message_type_info("action")
    assert info is not None
    info["required_fields"].clear()
    assert get_message_type_info("action") != info


@pytest.mark.parametrize("kind", ["", "User_Message", "note", None, 1, [], {}])
def test_there_is_no_info_of_other_types(kind: Any) -> None:
    assert get_message_type_info(kind) is None


def test_an_error_has_its_message_once() -> None:
    given = {"error_message": "no table", "code": 7}
    assert message_builder.create_error(given)["content"] == given
    assert message_builder.create_error({"code": 7})["content"] == {"error_message": {"code": 7}}


def test_a_synthesis_has_its_manager_and_phase_if_they_are_given() -> None:
    create = message_builder.create_synthesis
    assert create("x", "manager_1", 0, timestamp=1) == {
        "type": "synthesis", "content": "x", "from_manager": "manager_1", "phase_id": 0, "timestamp": 1
    }  # fmt: skip
    assert create("x", phase_id="p", timestamp=1) == {
        "type": "synthesis", "content": "x", "phase_id": "p", "timestamp": 1
    }  # fmt: skip


def test_the_messages_of_the_documents_are_made() -> None:
    create = message_builder
    assert create.create_task_entry("Analyze", agent_key="worker_1", timestamp=1) == {
        "type": "task", "content": "Analyze", "agent_key": "worker_1", "timestamp": 1
    }  # fmt: skip
    assert create.create_observation({"tables": ["a"]}, agent_key="worker_1")["content"] == {"tables": ["a"]}

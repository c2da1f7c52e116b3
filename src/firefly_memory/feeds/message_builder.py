"""Messages of every type, each made by a function of its own.

Each function returns a new dict with its ``type``, its arguments and a ``timestamp``: the current instant in ISO 8601
and UTC, if none is given. ``turn_id`` is a key only if it is given. Every other keyword, such as ``agent_key``, becomes
a key of the message. The keyword ``type`` is a ``ConfigurationError``: the function decides the type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypedDict

from firefly_memory import clock
from firefly_memory.errors import ConfigurationError
from firefly_memory.feeds import constants
from firefly_memory.feeds.items import Message

Timestamp = str | float | None
TurnId = str | int | None


def create_user_message(content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any) -> Message:
    """What a person says."""
    return _message(constants.USER_MESSAGE, {"content": content}, timestamp, turn_id, extras)


def create_assistant_message(
    content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any
) -> Message:
    """What the assistant answers."""
    return _message(constants.ASSISTANT_MESSAGE, {"content": content}, timestamp, turn_id, extras)


def create_task(content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any) -> Message:
    """What an agent has to do; its ``agent_key`` says which agent."""
    return _message(constants.TASK, {"content": content}, timestamp, turn_id, extras)


def create_action(
    tool: str, args: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any
) -> Message:
    """A call of a tool, with its arguments."""
    return _message(constants.ACTION, {"tool": tool, "args": args}, timestamp, turn_id, extras)


def create_observation(content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any) -> Message:
    """The result of a tool, or something else that an agent found."""
    return _message(constants.OBSERVATION, {"content": content}, timestamp, turn_id, extras)


def create_error(content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any) -> Message:
    """What went wrong. The message has it as ``{"error_message": content}``; a mapping with the key ``error_message``
    stays as it is."""
    if not (isinstance(content, Mapping) and "error_message" in content):
        content = {"error_message": content}
    return _message(constants.ERROR, {"content": content}, timestamp, turn_id, extras)


def create_global_observation(
    content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any
) -> Message:
    """An observation for every agent of the location."""
    return _message(constants.GLOBAL_OBSERVATION, {"content": content}, timestamp, turn_id, extras)


def create_final(content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any) -> Message:
    """The result of a task."""
    return _message(constants.FINAL, {"content": content}, timestamp, turn_id, extras)


def create_synthesis(
    content: Any,
    from_manager: str | None = None,
    phase_id: str | int | None = None,
    *,
    timestamp: Timestamp = None,
    turn_id: TurnId = None,
    **extras: Any,
) -> Message:
    """What a manager makes of the results of a phase. ``from_manager`` and ``phase_id`` are keys only if given."""
    given = {"from_manager": from_manager, "phase_id": phase_id}
    fields = {"content": content} | {name: value for name, value in given.items() if value is not None}
    return _message(constants.SYNTHESIS, fields, timestamp, turn_id, extras)


def create_strategic_plan(
    content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any
) -> Message:
    """The phases of a job, as they are planned."""
    return _message(constants.STRATEGIC_PLAN, {"content": content}, timestamp, turn_id, extras)


def create_suggested_plan(
    content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any
) -> Message:
    """The steps that a manager suggests to a worker."""
    return _message(constants.SUGGESTED_PLAN, {"content": content}, timestamp, turn_id, extras)


def create_script_instruction(
    content: Any, *, timestamp: Timestamp = None, turn_id: TurnId = None, **extras: Any
) -> Message:
    """One step of a script."""
    return _message(constants.SCRIPT_INSTRUCTION, {"content": content}, timestamp, turn_id, extras)


create_user_message_entry = create_user_message
"""Another name of :func:`create_user_message`."""
create_assistant_message_entry = create_assistant_message
"""Another name of :func:`create_assistant_message`."""
create_task_entry = create_task
"""Another name of :func:`create_task`."""
create_action_entry = create_action
"""Another name of :func:`create_action`."""
create_observation_entry = create_observation
"""Another name of :func:`create_observation`."""
create_error_entry = create_error
"""Another name of :func:`create_error`."""
create_global_observation_entry = create_global_observation
"""Another name of :func:`create_global_observation`."""
create_final_entry = create_final
"""Another name of :func:`create_final`."""
create_synthesis_entry = create_synthesis
"""Another name of :func:`create_synthesis`."""
create_strategic_plan_entry = create_strategic_plan
"""Another name of :func:`create_strategic_plan`."""
create_suggested_plan_entry = create_suggested_plan
"""Another name of :func:`create_suggested_plan`."""
create_script_instruction_entry = create_script_instruction
"""Another name of :func:`create_script_instruction`."""


def _message(
    kind: str, fields: dict[str, Any], timestamp: Timestamp, turn_id: TurnId, extras: dict[str, Any]
) -> Message:
    if "type" in extras:
        raise ConfigurationError(
            f"the type of this message is {kind!r}; a message of another type has its own function"
        )
    message = {"type": kind, **fields, "timestamp": clock.now().isoformat() if timestamp is None else timestamp}
    if turn_id is not None:
        message["turn_id"] = turn_id
    return message | extras


class MessageTypeInfo(TypedDict):
    """What the messages of one type have."""

    description: str
    required_fields: list[str]
    optional_fields: list[str]


class _Type(NamedTuple):
    create: Callable[..., Message]
    description: str


_TYPES = {
    constants.USER_MESSAGE: _Type(create_user_message, "What a person says."),
    constants.ASSISTANT_MESSAGE: _Type(create_assistant_message, "What the assistant answers."),
    constants.TASK: _Type(create_task, "What an agent has to do."),
    constants.ACTION: _Type(create_action, "A call of a tool, with its arguments."),
    constants.OBSERVATION: _Type(create_observation, "The result of a tool, or something else that an agent found."),
    constants.ERROR: _Type(create_error, "What went wrong."),
    constants.GLOBAL_OBSERVATION: _Type(create_global_observation, "An observation for every agent of the location."),
    constants.FINAL: _Type(create_final, "The result of a task."),
    constants.SYNTHESIS: _Type(create_synthesis, "What a manager makes of the results of a phase."),
    constants.STRATEGIC_PLAN: _Type(create_strategic_plan, "The phases of a job, as they are planned."),
    constants.SUGGESTED_PLAN: _Type(create_suggested_plan, "The steps that a manager suggests to a worker."),
    constants.SCRIPT_INSTRUCTION: _Type(create_script_instruction, "One step of a script."),
}


def get_message_type_info(type: str) -> MessageTypeInfo | None:  # noqa: A002 - the key of messages has this name
    """What messages of a type are, and which keys they have beside ``type``; ``None`` for an unknown type.

    ``required_fields`` are the arguments that its function takes without a default.
    """
    found = _TYPES.get(type) if isinstance(type, str) else None
    if found is None:
        return None
    named = [each for each in inspect.signature(found.create).parameters.values() if each.kind is not each.VAR_KEYWORD]
    return {
        "description": found.description,
        "required_fields": [each.name for each in named if each.default is each.empty],
        "optional_fields": [each.name for each in named if each.default is not each.empty],
    }

"""Messages of feeds as messages of pydantic-ai, and the other way."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic_ai.messages import ModelMessage

from firefly_memory.agents.feed_reader import Reader, Role, checked_role
from firefly_memory.agents.feed_writer import Writer
from firefly_memory.feeds.items import Message, Messages


def from_model_messages(
    messages: Iterable[ModelMessage], agent_key: str | None = None, *, role: Role = "assistant"
) -> Messages:
    """The messages of a feed that messages of pydantic-ai become.

    A user's prompt becomes a ``user_message`` and a text of the model an ``assistant_message``. A tool call becomes an
    ``action``, and its result an ``observation`` or, if the call failed, was refused or must be repeated, an ``error``:
    all with ``tool`` and ``tool_call_id``. A request to repeat an answer becomes an ``error``. With
    ``role="worker"`` a prompt becomes a ``task``, the last text of a run a ``final``, and each other text an
    ``observation``, as does a prompt beside tool results.

    Not taken are system prompts, instructions and the thinking of the model. A text stands for each file: its media
    type and its size or place. Values that JSON does not have are written as stores write them; what these refuse is
    an ``InvalidEntryError``. Each message has the ``agent_key``, if one is given.
    """
    checked_role(role)
    return Reader(agent_key, role, is_of_a_person=lambda _: role == "assistant").read(messages)


def to_model_messages(history: Iterable[Message], agent_key: str | None = None) -> list[ModelMessage]:
    """The messages of pydantic-ai that a history becomes, for the agent with a key.

    A ``user_message`` becomes a user's prompt, and an ``assistant_message`` a text of the model. An ``action`` of this
    agent and its answer, the ``observation`` or ``error`` with the same ``tool_call_id``, become a tool call and its
    result, next to each other. Without a ``tool_call_id`` the next answer is taken, and an id made. Everything else
    becomes text of a user's prompt that is marked as data, each message as one line of JSON: what other agents did,
    tasks, results, plans, messages for every agent, messages without a type, and actions without an answer. Nothing
    becomes a system prompt. Neighbouring messages of one side are put together. Texts that are blank are left out.

    ``from_model_messages`` gives the same conversation, actions and answers back.
    """
    return Writer(history, agent_key).write()

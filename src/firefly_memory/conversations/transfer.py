"""Conversations as JSON values, out and in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from firefly_memory.codec import DecodeError
from firefly_memory.conversations.flows import Condition, ConversationFlows
from firefly_memory.conversations.turn_form import NewTurn
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.errors import InvalidEntryError, UnknownConversationError
from firefly_memory.identifiers import original_name
from firefly_memory.messages.storage import JSON, PYDANTIC_AI, decoded, encoded


async def exported(flows: ConversationFlows, conversation_id: str, *, raw_messages: bool) -> dict[str, Any]:
    head = await flows.head(conversation_id)
    if head is None:
        raise UnknownConversationError(conversation_id)
    turns = [turn_as_json(turn, raw_messages=raw_messages) async for turn in flows.iterate_turns(conversation_id)]
    return {
        "conversation_id": conversation_id,
        "turns": turns,
        "summary": None if head.summary is None else original_name(head.summary),
        "summarized_turns": head.evicted_turns,
        **({"dropped_turns": head.dropped_turns} if head.dropped_turns else {}),
        "total_tokens": sum(turn["token_estimate"] for turn in turns),
        **({} if head.owner is None else {"owner": original_name(head.owner)}),
    }


def turn_as_json(turn: ConversationTurn, *, raw_messages: bool) -> dict[str, Any]:
    """A turn as :func:`turn_from_json` reads it."""
    item = {
        "turn_id": turn.turn_id,
        "user_prompt": turn.user_prompt,
        "assistant_response": turn.assistant_response,
        "token_estimate": turn.token_estimate,
        "metadata": turn.metadata,
        "created_at": turn.created_at.isoformat(),
        **({} if turn.input_tokens is None else {"input_tokens": turn.input_tokens}),
    }
    if raw_messages:
        text, form = encoded(turn.raw_messages)
        item["messages_format"] = form
        item["raw_messages"] = json.loads(text or "") if form == PYDANTIC_AI else turn.raw_messages
    return item


async def import_into(flows: ConversationFlows, data: Any, conversation_id: str | None) -> str:
    path = "data"
    if not isinstance(data, Mapping):
        raise InvalidEntryError(path, f"must be what export_conversation() returned, not {type(data).__name__}")
    name = _field(data, path, "conversation_id", str) if conversation_id is None else conversation_id
    items = _field(data, path, "turns", list)
    dropped: int = _field(data, path, "dropped_turns", int, 0)
    if "summarized_turns" not in data:  # of an earlier version, whose exports begin after the turns that were evicted
        items = [
            {**item, "turn_id": number} if isinstance(item, Mapping) else item for number, item in enumerate(items)
        ]
    places = enumerate(items)
    turns = [turn_from_json(item, dropped + number, f"{path}['turns'][{number}]") for number, item in places]
    summary = _field(data, path, "summary", (str, type(None)), None)
    summarized = checked_summarized(data, path, len(turns), dropped)
    for turn in turns:
        flows.check(turn)
    await flows.new_conversation(name, _field(data, path, "owner", (str, type(None)), None))
    for number, turn in enumerate(turns):
        await flows.add_turn(name, turn, Condition(turn_id=number), summarize=False)
    if summary is not None or summarized:
        await flows.replace_summary(name, summary, summarized)
    return name


def checked_summarized(data: Mapping[str, Any], path: str, turns: int, dropped: int = 0) -> int:
    """How many of ``turns`` the summary replaces. They come after the ``dropped`` ones."""
    summarized: int = _field(data, path, "summarized_turns", int, dropped)
    if not 0 <= dropped <= summarized <= dropped + turns:
        problem = f"must be from {max(dropped, 0)} to {dropped + turns}, not {summarized}"
        raise InvalidEntryError(f"{path}['summarized_turns']", problem)
    return summarized - dropped


def turn_from_json(item: Any, number: int, path: str) -> NewTurn:
    """Turn ``number``, read from ``item`` at ``path``."""
    if not isinstance(item, Mapping):
        raise InvalidEntryError(path, f"must be an object, not {type(item).__name__}")
    turn_id = _field(item, path, "turn_id", int)
    if turn_id != number:
        raise InvalidEntryError(f"{path}['turn_id']", f"must be {number}, by its place in the list, not {turn_id}")
    counts = {name: _field(item, path, name, (int, type(None)), None) for name in ("token_estimate", "input_tokens")}
    for name, tokens in counts.items():
        if tokens is not None and tokens < 0:
            raise InvalidEntryError(f"{path}[{name!r}]", f"must not be negative, as {tokens} is")
    return NewTurn(
        user_prompt=_field(item, path, "user_prompt", str),
        assistant_response=_field(item, path, "assistant_response", str),
        raw_messages=_messages(item, path),
        metadata=_field(item, path, "metadata", (dict, type(None)), None),
        created_at=_instant(item, path),
        input_tokens=counts["input_tokens"],
    )


def _messages(item: Mapping[str, Any], path: str) -> list[Any] | None:
    if "raw_messages" not in item and "messages_format" not in item:
        return None
    messages: list[Any] = _field(item, path, "raw_messages", (list, type(None)), None) or []
    form = _field(item, path, "messages_format", (str, type(None)), None)
    if form in (None, JSON):
        return messages
    try:
        return decoded(json.dumps(messages), form)
    except DecodeError as exc:
        raise InvalidEntryError(f"{path}['raw_messages']", f"are not messages of {form} ({exc})") from exc


def _instant(item: Mapping[str, Any], path: str) -> datetime | None:
    text = _field(item, path, "created_at", (str, type(None)), None)
    try:
        moment = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if text is not None and (moment is None or moment.tzinfo is None):
        raise InvalidEntryError(f"{path}['created_at']", f"must be an instant with a time zone, not {text!r}")
    return moment


_REQUIRED = object()


def _field(
    item: Mapping[str, Any], path: str, name: str, kind: type | tuple[type, ...], default: Any = _REQUIRED
) -> Any:
    value = item.get(name, default)
    if value is _REQUIRED:
        raise InvalidEntryError(path, f"has no {name!r}; is this what export_conversation() returned?")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InvalidEntryError(f"{path}[{name!r}]", f"cannot be {type(value).__name__}")
    return value

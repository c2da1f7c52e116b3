"""The history of a feed, written as messages of pydantic-ai."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from firefly_memory.agents.run_messages import value_text
from firefly_memory.errors import InvalidEntryError
from firefly_memory.feeds.constants import ACTION, ASSISTANT_MESSAGE, ERROR, USER_MESSAGE
from firefly_memory.feeds.items import Message
from firefly_memory.feeds.memories.budget import Listed, answered_actions, tool_call_id_of
from firefly_memory.messages.storage import recalled_text, sendable


class Writer:
    """Writes a history as messages of pydantic-ai. ``open_calls`` are the ids of actions without an answer that the
    run will answer: they become the tool calls of a last response."""

    def __init__(self, history: Iterable[Message], agent_key: str | None, open_calls: Collection[str] = ()) -> None:
        self._history = [_checked(message, f"history[{place}]") for place, message in enumerate(history)]
        listed = [Listed(message, _text_at(message, "agent_key")) for message in self._history]
        own = {place for place, each in enumerate(listed) if each.agent_key == agent_key}
        pairs = answered_actions(listed)
        self._calls = {place: call for place in own if (call := _call(self._history[place])) is not None}
        self._answers = {action: answer for answer, action in pairs.items() if action in self._calls}
        self._are_answers = {*self._answers.values()}
        answered = {*pairs.values()}
        open_ids = {place: tool_call_id_of(self._history[place]) for place in sorted(self._calls.keys() - answered)}
        self._open = {call_id: place for place, call_id in open_ids.items() if call_id and call_id in open_calls}
        self._ids = {*filter(None, map(tool_call_id_of, self._history))}
        self._given: set[str] = {*self._open}
        self._sides: list[tuple[type[ModelMessage], list[Any]]] = []
        self._begun: dict[int, datetime | None] = {}
        self._quoted: list[str] = []
        self._waiting: list[tuple[int, ToolCallPart]] = []

    def write(self) -> list[ModelMessage]:
        """The messages."""
        for place, message in enumerate(self._history):
            if message.get("type") == ASSISTANT_MESSAGE:
                self._say(TextPart, message)
            elif place in self._answers:
                self._call(place, self._new_id(message))
            elif self._open.get(tool_call_id_of(message) or "") != place:
                self._answer_calls()
                if place in self._are_answers:
                    continue
                if message.get("type") == USER_MESSAGE:
                    self._say(UserPromptPart, message)
                else:
                    self._quoted.append(value_text(message))
        self._answer_calls()
        for call_id, place in self._open.items():
            self._respond(self._tool_call(place, call_id), self._history[place])
        self._end_quotation()
        return [self._message(number) for number in range(len(self._sides))]

    def _message(self, number: int) -> ModelMessage:
        side, parts = self._sides[number]
        if side is ModelRequest:
            return ModelRequest(parts=parts)
        return ModelResponse(parts=parts, **_at(self._begun[number]))

    def _say(self, kind: type[TextPart | UserPromptPart], message: Message) -> None:
        text = _content_text(message)
        if not text.strip():
            return
        if kind is TextPart:
            self._respond(TextPart(text), message)
        else:
            self._request(UserPromptPart(text, **_at(_instant(message))))

    def _call(self, place: int, call_id: str) -> None:
        call = self._tool_call(place, call_id)
        self._respond(call, self._history[place])
        self._waiting.append((self._answers[place], call))

    def _tool_call(self, place: int, call_id: str) -> ToolCallPart:
        tool, args = self._calls[place]
        return ToolCallPart(tool, args, tool_call_id=call_id)

    def _answer_calls(self) -> None:
        """Write the answers to the calls of the last response."""
        waiting, self._waiting = self._waiting, []
        for place, call in sorted(waiting, key=lambda each: each[0]):
            message = self._history[place]
            is_error = message.get("type") == ERROR
            content = _sendable_value(_error_of(message) if is_error else message.get("content"))
            outcome: Literal["failed", "success"] = "failed" if is_error else "success"
            options = _at(_instant(message))
            self._request(ToolReturnPart(call.tool_name, content, call.tool_call_id, outcome=outcome, **options))

    def _new_id(self, action: Message) -> str:
        """The id of a call, which no other call has."""
        call_id = sendable(tool_call_id_of(action) or "")
        number = len(self._given)
        while not call_id or call_id in self._given:
            number += 1
            made = f"call_{number}"
            call_id = "" if made in self._ids else made
        self._given.add(call_id)
        return call_id

    def _request(self, part: ModelRequestPart) -> None:
        self._end_quotation()
        self._add(ModelRequest, part)

    def _respond(self, part: ModelResponsePart, message: Message) -> None:
        self._end_quotation()
        self._add(ModelResponse, part, _instant(message))

    def _end_quotation(self) -> None:
        if self._quoted:
            lines, self._quoted = self._quoted, []
            self._add(ModelRequest, UserPromptPart(sendable(recalled_text(lines))))

    def _add(self, side: type[ModelMessage], part: Any, instant: datetime | None = None) -> None:
        if not self._sides or self._sides[-1][0] is not side:
            self._begun[len(self._sides)] = instant
            self._sides.append((side, []))
        self._sides[-1][1].append(part)


_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


def _call(message: Message) -> tuple[str, dict[str, Any]] | None:
    """The tool and the arguments of an action that every provider takes as a call."""
    tool, args = message.get("tool"), message.get("args")
    if message.get("type") != ACTION or not isinstance(tool, str) or not _TOOL_NAME.fullmatch(tool):
        return None
    if args is not None and not isinstance(args, dict):
        return None
    try:
        return tool, _json_of({} if args is None else args)
    except _NOT_JSON:
        return None


_NOT_JSON = (RecursionError, TypeError, ValueError)


def _json_of(value: Any) -> Any:
    """A value without what JSON or UTF-8 does not have."""
    return json.loads(sendable(json.dumps(value, ensure_ascii=False, allow_nan=False)))


def _sendable_value(value: Any) -> Any:
    try:
        return _json_of(value)
    except _NOT_JSON:
        return sendable(value_text(value))


def _error_of(message: Message) -> Any:
    """What ``create_error`` was given."""
    content = message.get("content")
    if isinstance(content, dict) and content.keys() == {"error_message"}:
        inner = content["error_message"]
        return content if isinstance(inner, dict) and "error_message" in inner else inner
    return content


def _content_text(message: Message) -> str:
    content = message.get("content")
    return "" if content is None else sendable(value_text(content))


def _text_at(message: Message, key: str) -> str | None:
    value = message.get(key)
    return value if isinstance(value, str) else None


def _checked(message: Any, path: str) -> Message:
    if not isinstance(message, Mapping):
        raise InvalidEntryError(path, f"must be a dict, not {type(message).__name__}")
    return dict(message)


def _instant(message: Message) -> datetime | None:
    """When a message was made, if it says so in ISO 8601."""
    timestamp = message.get("timestamp")
    try:
        return datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else None
    except ValueError:
        return None


def _at(instant: datetime | None) -> dict[str, Any]:
    return {} if instant is None else {"timestamp": instant}

"""Messages of pydantic-ai, read as messages of a feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart

from firefly_memory.agents.run_messages import value_text
from firefly_memory.codec import TEXT
from firefly_memory.errors import ConfigurationError, InvalidEntryError
from firefly_memory.feeds.items import Message, Messages
from firefly_memory.feeds.message_builder import (
    create_action,
    create_assistant_message,
    create_error,
    create_final,
    create_observation,
    create_task,
    create_user_message,
)
from firefly_memory.messages.parts import Part, add_part, file_of, get, result_parts
from firefly_memory.reprs import shown

Role = Literal["assistant", "worker"]
"""Whether an agent talks with a person, or works on tasks."""

_ROLES = ("assistant", "worker")

Value = Callable[[Any, str], Any]
"""A value as JSON has it; the text names it in errors."""


def checked_role(role: Role) -> Role:
    """``ConfigurationError`` for what is no role."""
    if role not in _ROLES:
        raise ConfigurationError(f"role must be 'assistant' or 'worker', not {shown(role)}")
    return role


def json_value(value: Any, path: str) -> Any:
    """A value as a store keeps it; ``InvalidEntryError`` for one that it refuses."""
    return TEXT.decode(TEXT.encode(value, path))


@dataclass(frozen=True)
class Reader:
    """Reads the messages of pydantic-ai as messages of one agent."""

    agent_key: str | None
    role: Role
    is_of_a_person: Callable[[UserPromptPart], bool]
    """Whether a prompt beside tool results is one of a person, or belongs to a result."""
    value: Value = json_value
    has_ended: bool = True
    """Whether the last text of a worker is its result."""

    def read(self, messages: Iterable[ModelMessage]) -> Messages:
        of_run = list(messages)
        return [found for number in range(len(of_run)) for found in self._read(of_run, number)]

    def answer(self, content: Any) -> Message:
        """The message with the result of a run that is no text of the model."""
        if self.role == "worker":
            return create_final(self.value(content, "output"), **self._extras)
        return create_assistant_message(content, **self._extras)

    def _read(self, messages: Sequence[ModelMessage], number: int) -> Iterator[Message]:
        message, path = messages[number], f"messages[{number}]"
        if isinstance(message, ModelRequest):
            yield from self._request(message, path)
        elif isinstance(message, ModelResponse):
            is_last = self.has_ended and _ends_a_run(message, messages[number + 1 : number + 2])
            yield from self._response(message, path, is_last=is_last)
        else:
            raise InvalidEntryError(path, f"must be a message of pydantic-ai, not {type(message).__name__}")

    def _request(self, message: ModelRequest, path: str) -> Iterator[Message]:
        has_results = any(_tool_keys(part) for part in message.parts)
        for number, part in enumerate(message.parts):
            options = self._options(getattr(part, "timestamp", None))
            match part.part_kind:
                case "user-prompt" | "speech":
                    is_prompt = not has_results or (isinstance(part, UserPromptPart) and self.is_of_a_person(part))
                    yield from self._text(self._create_prompt if is_prompt else create_observation, part, options)
                case "tool-return" | "retry-prompt" | "retry-feedback":
                    yield self._answer(part, f"{path}.parts[{number}].content", options)

    def _response(self, message: ModelResponse, path: str, *, is_last: bool) -> Iterator[Message]:
        options = self._options(message.timestamp)
        last = max((number for number, part in enumerate(message.parts) if part.part_kind == "text"), default=None)
        for number, part in enumerate(message.parts):
            where = f"{path}.parts[{number}]"
            match part.part_kind:
                case "text" | "speech" | "file":
                    create = create_final if is_last and number == last else create_observation
                    yield from self._text(
                        create_assistant_message if self.role == "assistant" else create, part, options
                    )
                case "tool-call" | "builtin-tool-call":
                    args = self.value(part.args_as_dict(), f"{where}.args")
                    yield create_action(part.tool_name, args, tool_call_id=part.tool_call_id, **options)
                case "builtin-tool-return":
                    yield self._answer(part, f"{where}.content", self._options(part.timestamp))

    @property
    def _create_prompt(self) -> Callable[..., Message]:
        return create_user_message if self.role == "assistant" else create_task

    def _text(self, create: Callable[..., Message], part: Any, options: dict[str, Any]) -> Iterator[Message]:
        pieces: list[Part] = []
        add_part(pieces, part)
        text = "\n".join(_named_file(piece) if sort == "file" else value_text(piece) for sort, piece in pieces)
        if text.strip():
            yield create(text, **options)

    def _answer(self, part: Any, path: str, options: dict[str, Any]) -> Message:
        keys = _tool_keys(part)
        if part.part_kind.endswith("tool-return") and part.outcome == "success":
            return create_observation(self._content(part, path), **keys, **options)
        return create_error(self._content(part, path), **keys, **options)

    def _content(self, part: Any, path: str) -> Any:
        """The result of a tool, with texts in place of files."""
        pieces = result_parts(part, "return")
        if all(sort != "file" for sort, _ in pieces):
            return self.value(part.content, path)
        values = [_named_file(piece) if sort == "file" else self.value(piece, path) for sort, piece in pieces]
        return values if isinstance(part.content, (list, tuple)) else values[0]

    def _options(self, timestamp: datetime | None) -> dict[str, Any]:
        return {"timestamp": None if timestamp is None else timestamp.isoformat(), **self._extras}

    @property
    def _extras(self) -> dict[str, Any]:
        return {} if self.agent_key is None else {"agent_key": self.agent_key}


def _ends_a_run(message: ModelResponse, following: Sequence[ModelMessage]) -> bool:
    """Whether the texts of a response are the result of a run: nothing is called, nothing broke off, and the model is
    not asked to try again."""
    return (
        message.state == "complete"
        and all(part.part_kind != "tool-call" for part in message.parts)
        and all(not part.part_kind.startswith("retry-") for after in following for part in after.parts)
    )


def _tool_keys(part: Any) -> dict[str, Any]:
    """The tool that a part answers, and the id of the call; nothing for what answers no call."""
    is_answer = part.part_kind in ("tool-return", "builtin-tool-return", "retry-prompt") and part.tool_name
    return {"tool": part.tool_name, "tool_call_id": part.tool_call_id} if is_answer else {}


def _named_file(part: Any) -> str:
    file = file_of(part)
    if file.url is not None and not file.url.startswith("data:"):
        return f"[file {file.media_type}: {file.url}]"
    if file_id := get(part, "file_id"):
        return f"[file {file.media_type}: {file_id}]"
    return f"[file {file.media_type}{f', {len(file.data)} bytes' if isinstance(file.data, bytes) else ''}]"

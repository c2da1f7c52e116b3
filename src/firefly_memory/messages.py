"""Messages of a turn: stored as their own library writes them, read back equal, replayed.

pydantic-ai's messages are written and read by its own adapter, so that whatever it can write, today or in an earlier
version, comes back as it would from its own files. Any other JSON-able values are written by the codec. A turn without
messages is replayed as the two that its texts make.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from firefly_memory.codec import TEXT, DecodeError
from firefly_memory.errors import InvalidEntryError, MissingDependencyError
from firefly_memory.turns import ConversationTurn

PYDANTIC_AI = "pydantic-ai"
JSON = "json"

_PURPOSE = "reading the stored messages of pydantic-ai"


def encoded(messages: Sequence[Any]) -> tuple[str | None, str | None]:
    """The text that stands for ``messages``, and the format it is in; nothing for none."""
    if not messages:
        return None, None
    # Whoever has such a message has loaded pydantic-ai: nobody else has to.
    library = sys.modules.get("pydantic_ai.messages")
    kinds = (library.ModelRequest, library.ModelResponse) if library else ()
    theirs = [isinstance(message, kinds) for message in messages]
    if library is None or not any(theirs):
        return TEXT.encode(list(messages), "raw_messages"), JSON
    if not all(theirs):
        raise InvalidEntryError(
            f"raw_messages[{theirs.index(False)}]",
            "is no message of pydantic-ai, though others are; do not mix the two",
        )
    try:
        return library.ModelMessagesTypeAdapter.dump_json(list(messages)).decode(), PYDANTIC_AI
    except ValueError as exc:  # what pydantic raises for values that JSON does not have, and for lone surrogates
        raise InvalidEntryError("raw_messages", f"pydantic-ai cannot write them as JSON ({exc})") from exc


def decoded(text: str | None, form: str | None) -> list[Any]:
    """The messages that :func:`encoded` was given; ``DecodeError`` for what it did not write."""
    if text is None:
        return []
    if form == PYDANTIC_AI:
        try:
            from pydantic_ai.messages import ModelMessagesTypeAdapter
        except ImportError as exc:
            raise MissingDependencyError(_PURPOSE, "pydantic-ai-slim", "agents") from exc
        try:
            return ModelMessagesTypeAdapter.validate_json(text)
        except ValueError as exc:
            raise DecodeError(str(exc)) from exc
    messages = TEXT.decode(text)
    if form != JSON or not isinstance(messages, list):
        raise DecodeError(f"messages of the unknown format {form!r}")
    return messages


def replayed(turns: Sequence[ConversationTurn], summary: ConversationTurn | None = None) -> list[Any]:
    """What the model sees again: the messages of ``turns``, after ``summary``.

    What has no messages of its own, a turn stored with texts only or the summary, takes the form the others have:
    pydantic-ai's messages, or dicts with ``role`` and ``content`` beside other dicts or where pydantic-ai is missing.
    """
    own = [message for turn in reversed(turns) for message in turn.raw_messages[:1]]
    in_dicts = isinstance(own[0], dict) if own else not _has_pydantic_ai()
    make = _dicts if in_dicts else _model_messages
    messages: list[Any] = []
    for turn in turns if summary is None else [summary, *turns]:
        messages += turn.raw_messages or make(turn)
    return messages


def _has_pydantic_ai() -> bool:
    try:
        return find_spec("pydantic_ai") is not None
    except (ImportError, ValueError):  # it is there, and somebody keeps it from being loaded
        return False


def summary_text(summary: str) -> str:
    """The instruction that tells a model of ``summary``."""
    return f"Summary of the conversation so far:\n{summary}"


def _dicts(turn: ConversationTurn) -> list[Any]:
    if turn.is_summary:
        return [{"role": "system", "content": summary_text(turn.assistant_response)}]
    texts = {"user": turn.user_prompt, "assistant": turn.assistant_response}
    return [{"role": role, "content": text} for role, text in texts.items() if text]


def _model_messages(turn: ConversationTurn) -> list[Any]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    # Not the time of reading: the same turn is to be replayed as the same messages.
    when = turn.created_at
    if turn.is_summary:
        mark = {"firefly_memory": "summary"}  # so that whoever looks for it in a history finds it
        part = SystemPromptPart(summary_text(turn.assistant_response), timestamp=when, metadata=mark)
        return [ModelRequest(parts=[part], timestamp=when)]
    messages: list[Any] = []
    if turn.user_prompt:
        messages.append(ModelRequest(parts=[UserPromptPart(turn.user_prompt, timestamp=when)], timestamp=when))
    if turn.assistant_response:
        messages.append(ModelResponse(parts=[TextPart(turn.assistant_response)], timestamp=when))
    return messages


def first_whole(turns: Sequence[Sequence[Any]]) -> int:
    """The first of some turns, given by their messages, from which on no result lacks its call.

    A call and its result may lie in two turns, when a tool is deferred or waits for approval. A model refuses a result
    whose call it has not seen, so the turns from the result's back to the call's go together.
    """
    first = 0
    seen: dict[str, int] = {}
    for number, messages in enumerate(turns):
        for is_call, call_id in _calls_and_results(messages):
            if is_call:
                seen[call_id] = number
            elif seen.get(call_id, -1) < first:
                first = number + 1
    return first


def calls_left_open(messages: Iterable[Any]) -> set[str]:
    """The ids of the calls among ``messages`` that have no result there."""
    still_open: set[str] = set()
    for is_call, call_id in _calls_and_results(messages):
        if is_call:
            still_open.add(call_id)
        else:
            still_open.discard(call_id)
    return still_open


def _calls_and_results(messages: Iterable[Any]) -> Iterator[tuple[bool, str]]:
    """Whether it is a call, and its id: of pydantic-ai's messages, and of dicts as OpenAI and Anthropic write them."""
    for message in messages:
        if isinstance(message, dict):
            yield from _of_dict(message)
            continue
        for part in getattr(message, "parts", ()):
            kind = getattr(part, "part_kind", "")
            if kind == "tool-call":
                yield True, part.tool_call_id
            elif kind == "tool-return" or (kind == "retry-prompt" and part.tool_name is not None):
                yield False, part.tool_call_id


def _of_dict(message: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    with suppress(AttributeError, KeyError, TypeError):  # any dict may be stored; these are guesses at its meaning
        for call in message.get("tool_calls") or ():
            yield True, str(call["id"])
    if message.get("tool_call_id") is not None:
        yield False, str(message["tool_call_id"])
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield True, str(block.get("id"))
        elif isinstance(block, dict) and block.get("type") == "tool_result":
            yield False, str(block.get("tool_use_id"))

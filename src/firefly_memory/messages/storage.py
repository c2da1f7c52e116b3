"""Messages of a turn: stored as their own library writes them, read back equal, replayed.

pydantic-ai's messages are written and read by its own adapter, so that whatever it can write, today or in an earlier
version, comes back as it would from its own files. Any other JSON-able values are written by the codec. A turn without
messages is replayed as the two that its texts make.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from firefly_memory.codec import TEXT, DecodeError
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.errors import InvalidEntryError
from firefly_memory.messages import pydantic_ai
from firefly_memory.messages.pydantic_ai_values import UnwritableError
from firefly_memory.messages.quoted_text import indented
from firefly_memory.validation import importing_extra, is_installed

PYDANTIC_AI = "pydantic-ai"
JSON = "json"

_PURPOSE = "reading the stored messages of pydantic-ai"


def encoded(messages: Sequence[Any]) -> tuple[str | None, str | None]:
    """The text that stands for ``messages``, and the format it is in; nothing for none."""
    if isinstance(messages, (str, bytes, bytearray)) or not isinstance(messages, Sequence):
        raise InvalidEntryError("raw_messages", f"must be a list of messages, not {type(messages).__name__}")
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
        return pydantic_ai.to_json(messages), PYDANTIC_AI
    except UnwritableError as exc:
        raise InvalidEntryError(f"raw_messages[{exc.number}]{exc.path}", exc.problem) from exc
    except ValueError as exc:  # what pydantic raises for values that JSON does not have, and for lone surrogates
        raise InvalidEntryError("raw_messages", f"pydantic-ai cannot write them as JSON ({exc})") from exc


def decoded(text: str | None, form: str | None) -> list[Any]:
    """The messages that :func:`encoded` was given; ``DecodeError`` for what it did not write."""
    if text is None:
        return []
    if form == PYDANTIC_AI:
        try:
            with importing_extra(_PURPOSE, "pydantic-ai-slim", "agents"):
                return pydantic_ai.from_json(text)
        except (AttributeError, LookupError, TypeError, ValueError) as exc:
            raise DecodeError(str(exc)) from exc
    messages = TEXT.decode(text)
    if form != JSON or not isinstance(messages, list):
        raise DecodeError(f"messages of the unknown format {form!r}")
    return messages


def replayed(turns: Sequence[ConversationTurn], summary: ConversationTurn | None = None) -> list[Any]:
    """What the model sees again: the messages of ``turns``, after ``summary``.

    What has no messages of its own, a turn stored with texts only or the summary, takes the form the others have:
    pydantic-ai's messages, the same as JSON, or dicts with ``role`` and ``content``. Where none has any, pydantic-ai's,
    if it is installed.
    """
    own = next((turn.raw_messages[0] for turn in reversed(turns) if turn.raw_messages), None)
    if own is None:
        make = texts_as_messages if is_installed("pydantic_ai") else _dicts
    elif isinstance(own, dict) and "parts" in own:
        make = _model_dicts
    else:
        make = texts_as_messages if hasattr(own, "parts") else _dicts
    messages: list[Any] = []
    for turn in turns if summary is None else [summary, *turns]:
        messages += turn.raw_messages or make(turn)
    return messages


def summary_text(summary: str) -> str:
    """The instruction that tells a model of ``summary``, no line of which looks like a heading of this library."""
    return f"Summary of the conversation so far:\n  {indented(summary)}"


def sendable(text: str) -> str:
    """``text`` as every model can be sent it: halves of characters, which no UTF-8 has, are replaced."""
    if not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_HALF = re.compile("[\ud800-\udfff]")


def _dicts(turn: ConversationTurn) -> list[Any]:
    if turn.is_summary:
        return [{"role": "system", "content": summary_text(turn.assistant_response)}]
    texts = {"user": turn.user_prompt, "assistant": turn.assistant_response}
    return [{"role": role, "content": text} for role, text in texts.items() if text]


def texts_as_messages(turn: ConversationTurn) -> list[Any]:
    """The messages of pydantic-ai that the texts of ``turn`` make."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    # Not the time of reading: the same turn is to be replayed as the same messages.
    when = turn.created_at
    prompt, response = sendable(turn.user_prompt), sendable(turn.assistant_response)
    if turn.is_summary:
        mark = {"firefly_memory": "summary"}  # so that whoever looks for it in a history finds it
        part = SystemPromptPart(summary_text(response), timestamp=when, metadata=mark)
        return [ModelRequest(parts=[part], timestamp=when)]
    messages: list[Any] = []
    if prompt:
        messages.append(ModelRequest(parts=[UserPromptPart(prompt, timestamp=when)], timestamp=when))
    if response:
        messages.append(ModelResponse(parts=[TextPart(response)], timestamp=when))
    return messages


def _model_dicts(turn: ConversationTurn) -> list[Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return list(ModelMessagesTypeAdapter.dump_python(texts_as_messages(turn), mode="json"))


class Links(NamedTuple):
    """Which turns the calls and results of tools tie together.

    A call and its result may lie in two turns, when a tool is deferred or waits for approval. A model refuses a result
    whose call it has not seen, so such turns go together.
    """

    pairs: list[tuple[int, int]]
    """The turn of a call, and a later one of its result."""
    orphans: list[int]
    """Turns with a result whose call is in none of them."""
    open_calls: list[int]
    """Turns with a call whose result is in none of them."""


def links_of(turns: Iterable[Iterable[Any]]) -> Links:
    """The links between turns, given by their messages."""
    links = Links([], [], [])
    calls: dict[str, int] = {}
    answered: set[str] = set()
    for number, messages in enumerate(turns):
        for is_call, call_id in _calls_and_results(messages):
            if is_call:
                calls[call_id] = number
                answered.discard(call_id)
            elif call_id not in calls:
                links.orphans.append(number)
            else:
                answered.add(call_id)
                if calls[call_id] < number:
                    links.pairs.append((calls[call_id], number))
    links.open_calls.extend(sorted({number for call_id, number in calls.items() if call_id not in answered}))
    return links


def first_whole(turns: Sequence[Sequence[Any]]) -> int:
    """The first of some turns, given by their messages, from which on no result lacks its call."""
    links = links_of(turns)
    first = max(links.orphans, default=-1) + 1
    for call, result in sorted(links.pairs, key=lambda pair: pair[1]):
        if call < first <= result:
            first = result + 1
    return first


def without_orphans(turns: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The messages of each turn without results whose calls are in none; nothing of a turn where they cannot be parted
    from the rest."""
    calls: set[str] = set()
    kept: list[list[Any]] = []
    for messages in turns:
        whole: list[Any] = []
        parted = True
        for message in messages:
            found = list(_calls_and_results([message]))
            orphans = {call_id for is_call, call_id in found if not is_call and call_id not in calls}
            calls.update(call_id for is_call, call_id in found if is_call)
            if not orphans:
                whole.append(message)
            elif hasattr(message, "parts"):
                parts = [part for part in message.parts if getattr(part, "tool_call_id", None) not in orphans]
                whole += [replace(message, parts=parts)] if parts else []
            else:
                parted = parted and len(found) == len(orphans) == 1 and message.get("role") == "tool"
        kept.append(whole if parted else [])
    return kept


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
    if message.get("role") == "tool" and message.get("tool_call_id") is not None:
        yield False, str(message["tool_call_id"])
    blocks = [message]  # an item of OpenAI's responses, or a message with parts
    for name in ("content", "parts"):
        inner = message.get(name)
        blocks += [block for block in inner if isinstance(block, dict)] if isinstance(inner, list) else []
    for block in blocks:
        kind = block.get("type") or block.get("part_kind")
        for name, is_call, id_name in _KINDS:
            if kind == name and isinstance(block.get(id_name), str):
                yield is_call, block[id_name]


_KINDS = (
    ("tool_use", True, "id"),
    ("tool_result", False, "tool_use_id"),
    ("function_call", True, "call_id"),
    ("function_call_output", False, "call_id"),
    ("tool-call", True, "tool_call_id"),
    ("tool-return", False, "tool_call_id"),
)
"""How blocks of Anthropic, items of OpenAI and parts of pydantic-ai as JSON are named, and where their ids are."""

"""Which tool results belong to which tool calls, so that no result is sent to a model without its call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from firefly_memory.messages.parts import get
from firefly_memory.messages.shapes import tool_parts


class Links(NamedTuple):
    """Which turns belong together because of their tool calls and tool results.

    A call and its result may be in two turns, if the tool is deferred or waits for approval. A model refuses a result
    without its call, so such turns stay together.
    """

    pairs: list[tuple[int, int]]
    """The turn of a call, and the later turn of its result."""
    orphans: list[int]
    """Turns with a result whose call is in none of the turns."""
    open_calls: list[int]
    """Turns with a call whose result is in none of the turns."""


def links_of(turns: Iterable[Iterable[Any]]) -> Links:
    """The links between turns. Each turn is given by its messages."""
    links = Links([], [], [])
    calls: dict[str, int] = {}
    open_calls: dict[str, int] = {}
    for number, messages in enumerate(turns):
        for _, call_id, is_call in tool_parts(messages):
            if call_id is None:
                continue
            if is_call:
                calls[call_id] = open_calls[call_id] = number
            elif call_id not in calls:
                links.orphans.append(number)
            else:
                open_calls.pop(call_id, None)
                if calls[call_id] < number:
                    links.pairs.append((calls[call_id], number))
    links.open_calls.extend(sorted(set(open_calls.values())))
    return links


def first_whole(turns: Sequence[Sequence[Any]]) -> int:
    """The number of the first turn from which on every result has its call. Each turn is given by its messages."""
    links = links_of(turns)
    first = max(links.orphans, default=-1) + 1
    for call, result in sorted(links.pairs, key=lambda pair: pair[1]):
        if call < first <= result:
            first = result + 1
    return first


def without_orphans(turns: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The messages of each turn, without results whose calls are in none of the turns.

    A turn is left empty if such a result cannot be separated from the rest of its message.
    """
    calls: set[str] = set()
    return [_without_orphans(messages, calls) for messages in turns]


def _without_orphans(messages: Sequence[Any], calls: set[str]) -> list[Any]:
    """The same for one turn; ``calls`` are the ids of the calls so far, and grow."""
    kept: list[Any] = []
    separable = True
    for message in messages:
        ids = [(call_id, is_call) for _, call_id, is_call in tool_parts([message]) if call_id is not None]
        orphans = {call_id for call_id, is_call in ids if not is_call and call_id not in calls}
        calls.update(call_id for call_id, is_call in ids if is_call)
        if not orphans:
            kept.append(message)
        elif hasattr(message, "parts"):
            parts = [part for part in message.parts if getattr(part, "tool_call_id", None) not in orphans]
            kept += [replace(message, parts=parts)] if parts else []
        else:
            separable = separable and len(ids) == len(orphans) == 1 and get(message, "role") == "tool"
    return kept if separable else []

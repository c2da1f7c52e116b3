"""Messages grouped by interaction: what a human said, and all messages of assistant and tools until the next human.

* A message of the user opens an interaction. Messages before the first one form an interaction that is headless.
* A message of the system belongs to no interaction. A request of pydantic-ai that has only parts of the system is one.
* Tool results stay with their calls: a message with results of calls of the current interaction stays in it, also if it
  has a user prompt beside them.

:func:`~firefly_memory.messages.shapes.read` says how messages of each library are read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from firefly_memory.errors import ConfigurationError
from firefly_memory.messages.parts import SYSTEM_KINDS, get, kind_of
from firefly_memory.messages.shapes import role_of, tool_ids
from firefly_memory.reprs import shown
from firefly_memory.validation import is_whole_number

CountMessage = Callable[[Any], int]
"""Counts the tokens of one message."""


@dataclass(frozen=True, slots=True, repr=False)
class Interaction:
    """A message of the user, and all messages of assistant and tools before the next message of the user."""

    messages: tuple[Any, ...]
    tokens: int
    """The tokens of the messages, as the function ``count`` counts them."""
    is_headless: bool
    """Whether there is no message of the user: the list of messages began without one."""
    places: tuple[int, ...]
    """The index of each message in the list that was given."""

    def __repr__(self) -> str:
        head = ", headless" if self.is_headless else ""
        return f"Interaction({len(self.messages)} messages from {self.places[0]} on, {self.tokens} tokens{head})"


class Group(NamedTuple):
    """The places of the messages of an interaction, without their contents."""

    places: list[int]
    is_headless: bool


class ToolUse(NamedTuple):
    """A tool call and its results."""

    name: Any
    at: list[tuple[int, int]]
    """First for the call, then for each result: the place of the message, and the position among its tool parts."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Messages, read once: their interactions and their tool calls. Nothing is copied."""

    messages: Sequence[Any]
    groups: list[Group]
    system: list[int]
    """The places of the messages that belong to no interaction."""
    uses: list[ToolUse]
    """Every tool call, with its results. A result whose call is not among the messages is in none."""
    crossing: list[ToolUse]
    """The uses whose result is in another interaction than the call."""

    def interaction(self, number: int, count: CountMessage) -> Interaction:
        """The interaction with its messages and tokens."""
        places, is_headless = self.groups[number]
        messages = tuple(self.messages[place] for place in places)
        return Interaction(messages, sum(counted(count, each) for each in messages), is_headless, tuple(places))

    def ties(self, left_out: Container[int] = ()) -> list[tuple[int, int]]:
        """The numbers of two interactions each, where a call in the first one has its result in the second.

        Uses with a message that is left out do not count.
        """
        starts = [places[0] for places, _ in self.groups]
        return sorted(
            {
                (max(0, bisect_right(starts, use.at[0][0]) - 1), bisect_right(starts, use.at[-1][0]) - 1)
                for use in self.crossing
                if not any(place in left_out for place, _ in use.at)
            }
        )


def interactions_of(messages: Sequence[Any], count: CountMessage) -> list[Interaction]:
    """The interactions of ``messages``, in order. ``count`` gives the tokens of one message."""
    grouped = group(messages)
    return [grouped.interaction(number, count) for number in range(len(grouped.groups))]


def tied_interactions(messages: Sequence[Any]) -> list[tuple[int, int]]:
    """The numbers of two interactions each, where a call in the first one has its result in the second.

    That is so if a tool is deferred, or waits for approval. A model refuses a result without its call.
    """
    return group(messages).ties()


def counted(count: CountMessage, message: Any) -> int:
    """The tokens of ``message``; ``ConfigurationError`` unless ``count`` gives a whole number from 0 up."""
    tokens = count(message)
    if type(tokens) is int and tokens >= 0:
        return tokens
    if not is_whole_number(tokens, 0):
        raise ConfigurationError(f"count must return a whole number from 0 up, not {shown(tokens)}")
    return int(tokens)


def group(messages: Sequence[Any]) -> Grouped:
    """``messages`` read once, in linear time."""
    groups: list[Group] = []
    system: list[int] = []
    uses: list[ToolUse] = []
    latest: dict[str | None, ToolUse] = {}  # the latest call of each id: some programs use an id again
    crossing: list[ToolUse] = []
    start = 0  # where the current interaction begins
    for place, message in enumerate(messages):
        ids = tool_ids(message)
        role = _role(message)
        if role == "system":
            system.append(place)
        elif not groups or (role == "user" and not _answers(ids, latest, start)):
            start = place
            groups.append(Group([place], role != "user"))
        else:
            groups[-1].places.append(place)
        for position, (call_id, name, is_call) in enumerate(ids):
            at = (place, position)
            if is_call:
                uses.append(ToolUse(name, [at]))
                latest[call_id] = uses[-1]
            elif call_id in latest:
                latest[call_id].at.append(at)
                if latest[call_id].at[0][0] < start:
                    crossing.append(latest[call_id])
    return Grouped(messages, groups, system, uses, crossing)


def _answers(ids: list[tuple[str | None, Any, bool]], latest: dict[str | None, ToolUse], start: int) -> bool:
    """Whether a message has a result of a call of the interaction that began at ``start``."""
    return any(not is_call and call_id in latest and latest[call_id].at[0][0] >= start for call_id, _, is_call in ids)


def _role(message: Any) -> str | None:
    role = role_of(message)
    if role is None and get(message, "kind") == "request" and _has_only_system_parts(message):
        return "system"
    return role


def is_system(message: Any) -> bool:
    """Whether a message belongs to no interaction, because it is of the system."""
    return _role(message) == "system"


def _has_only_system_parts(message: Any) -> bool:
    parts = get(message, "parts")
    return isinstance(parts, (list, tuple)) and bool(parts) and all(kind_of(part) in SYSTEM_KINDS for part in parts)

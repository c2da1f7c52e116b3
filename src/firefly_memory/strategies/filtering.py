"""Messages of which some are left out: the rest stays valid, as no tool call is parted from its result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firefly_memory.messages.interactions import Grouped
from firefly_memory.messages.removal import system_parts_of, without_tool_parts
from firefly_memory.messages.shapes import tool_ids
from firefly_memory.strategies.conditions import Passes


class Filtered:
    """The messages of ``grouped`` that pass, by place. Messages of the system are not asked.

    A tool call and its results stay or go together: if one is left out, copies without the others take the place of
    their messages. A message of which nothing is left is left out.
    """

    def __init__(self, grouped: Grouped, passes: Passes | None) -> None:
        self.grouped = grouped
        self._passes = passes
        self._changed: dict[int, Any] = {}
        self._failed: set[int] = set()
        if passes is not None:
            self._leave_out(passes)

    def message(self, place: int) -> Any:
        """The message at ``place``, perhaps a copy without some tool calls; ``None`` if it is left out."""
        return self._changed[place] if place in self._changed else self.grouped.messages[place]

    def group(self, number: int) -> list[tuple[int, Any]]:
        """What is left of an interaction: places and messages."""
        places = self.grouped.groups[number].places
        if not self._changed:
            return [(place, self.grouped.messages[place]) for place in places]
        return [(place, message) for place in places if (message := self.message(place)) is not None]

    def changed(self) -> int:
        """How many messages are left out or replaced."""
        return len(self._changed)

    def ties(self) -> list[tuple[int, int]]:
        """The interactions that a call and its result tie, as far as both are left."""
        return self.grouped.ties(self._failed)

    def _leave_out(self, passes: Passes) -> None:
        messages = self.grouped.messages
        self._failed.update(p for places, _ in self.grouped.groups for p in places if not passes(messages[p]))
        self._changed.update(dict.fromkeys(self._failed))
        for place, positions in self._unpaired().items():
            self._changed[place] = without_tool_parts(messages[place], positions)

    def _unpaired(self) -> dict[int, set[int]]:
        """By place: the positions of the tool parts that lose their call or a result."""
        found: dict[int, set[int]] = {}
        for use in self.grouped.uses:
            if any(place in self._failed for place, _ in use.at):
                for place, position in use.at:
                    if place not in self._failed:
                        found.setdefault(place, set()).add(position)
        return found


def system_of(grouped: Grouped, left_out: Iterator[int]) -> dict[int, Any]:
    """The messages of the system, by place, and of the places that are left out the parts of the system."""
    found = {place: grouped.messages[place] for place in grouped.system}
    for place in left_out:
        if (message := system_parts_of(grouped.messages[place])) is not None:
            found[place] = message
    return found


def names_of_calls(grouped: Grouped) -> dict[str, Any]:
    """The name of the tool for each id of a call."""
    return {
        call_id: name
        for message in grouped.messages
        for call_id, name, is_call in tool_ids(message)
        if is_call and call_id is not None
    }

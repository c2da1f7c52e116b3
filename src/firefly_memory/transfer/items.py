"""What archives and copies consist of, and how it is counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

FORMAT = "firefly-memory-archive/1"

ENTRY, CONVERSATION, TURN, DIALOGUE, MESSAGE = "entry", "conversation", "turn", "dialogue", "dialogue_entry"

Item = dict[str, Any]
"""One of these, as a line holds it."""

Placed = AsyncIterator[tuple[Any, Item]]
"""Items, each with its place: these grow from one item to the next, and are the same in every store."""


@dataclass(slots=True)
class Counts:
    """How much an export wrote or an import read. ``dialogues`` are pydantic-ai's conversations, with ``messages``.

    ``left_out`` are messages of turns that an import did not take from an archive that is not trusted.
    """

    entries: int = 0
    conversations: int = 0
    turns: int = 0
    dialogues: int = 0
    messages: int = 0
    left_out: int = field(default=0, compare=False)

    @property
    def total(self) -> int:
        return sum(self.as_dict().values())

    def add(self, kind: str) -> None:
        match kind:
            case "entry":
                self.entries += 1
            case "conversation":
                self.conversations += 1
            case "turn":
                self.turns += 1
            case "dialogue":
                self.dialogues += 1
            case _:
                self.messages += 1

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in Counts.__slots__ if name != "left_out"}


Progress = Callable[[Counts], None]
"""Called again and again while an export or import is under way, with what it has done so far."""

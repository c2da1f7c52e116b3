"""Long-term memory of the in-memory store."""

from __future__ import annotations

from firefly_memory.longterm.in_memory.facts import MemoryFactLog
from firefly_memory.longterm.in_memory.kept import Kept, Memory
from firefly_memory.longterm.in_memory.people import MemoryPeopleLog


class MemoryLongTermLog:
    """A :class:`~firefly_memory.longterm.log.LongTermLog` in dicts."""

    def __init__(self, memory: Memory) -> None:
        self._kept = Kept(memory)
        self.facts = MemoryFactLog(self._kept)
        self.people = MemoryPeopleLog(self._kept)

    def close(self) -> None:
        self._kept.close()

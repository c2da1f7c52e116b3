"""The memory that a window takes, of a short conversation and of one with a million turns.

A process for each: ``python -m benchmarks.window_memory URL CONVERSATION`` reads a window and prints its peaks.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.stores import Places

SIZES = (100, 1_000_000)


@dataclass(frozen=True)
class Peak:
    """What one process took at most."""

    backend: str
    turns: int
    python_kib: float
    """What Python allocated for the window, by tracemalloc."""
    process_kib: float
    """The whole process, with all it has loaded."""

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.backend:<18} window of {self.turns:>9,} turns: {self.python_kib:>8,.0f} KiB of Python's, "
            f"process {self.process_kib:>8,.0f} KiB"
        )


def peaks(places: Places) -> Iterator[Peak]:
    from benchmarks.conversations import fills

    asyncio.run(_make_tables(places))
    urls = {"sqlite": f"sqlite:///{places.ours_path}", "postgresql": places.postgresql_url}
    for backend, url in urls.items():
        if places.only not in backend:
            continue
        for size in SIZES:
            fills(places)[backend][0](f"memory {size}/", 1, size)
        places.settle()
        for size in SIZES:
            command = [sys.executable, "-m", "benchmarks.window_memory", url, f"memory {size}/0"]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            yield Peak(backend, size, **json.loads(printed))


async def _make_tables(places: Places) -> None:
    async with places.stores():
        pass


def _read(url: str, conversation_id: str) -> None:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    from firefly_memory import ConversationMemory, connect

    assert ModelMessagesTypeAdapter.validate_json("[]") == []  # loaded
    with connect(url) as store:
        memory = ConversationMemory(store=store)
        assert memory.get_message_history("another", 4_000) == []
        assert len(memory.get_message_history(conversation_id, 4_000)) > 60
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found is not None
        tracemalloc.start()
        memory.get_message_history(conversation_id, 4_000)
        _, peak = tracemalloc.get_traced_memory()
    print(json.dumps({"python_kib": peak / 1024, "process_kib": float(found[1])}))


if __name__ == "__main__":
    _read(*sys.argv[1:])

"""How long a process takes from its start to what it is for."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time


def start_up(rounds: int) -> dict[str, float]:
    """Milliseconds from the start of a process, interleaved with one that does nothing."""
    with tempfile.TemporaryDirectory() as directory:
        first = (
            "import sys; from firefly_memory import SQLiteStore, MemoryEntry; "
            "SQLiteStore(sys.argv[1]).save('n', MemoryEntry(content=1))"
        )
        existing = f"{directory}/existing.db"
        subprocess.run([sys.executable, "-c", first, existing], check=True)
        commands = {
            "python alone": ["pass"],
            "import firefly_memory": ["import firefly_memory"],
            "import pydantic, sqlalchemy": ["import pydantic, sqlalchemy"],
            "first write, existing file": [first, existing],
            "first write, new file": [first, ""],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(rounds):
            for name, command in commands.items():
                arguments = [part or f"{directory}/new-{number}.db" for part in command]
                started = time.perf_counter()
                subprocess.run([sys.executable, "-c", *arguments], check=True)
                times[name].append((time.perf_counter() - started) * 1e3)
    return {name: round(statistics.median(taken), 1) for name, taken in times.items()}

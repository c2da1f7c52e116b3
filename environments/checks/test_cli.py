"""The command shows a bar on a terminal where only the extra ``cli`` is installed."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

from firefly_memory import MemoryEntry, SQLiteStore


def test_an_export_shows_a_bar_on_a_terminal(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save("n", MemoryEntry(content="kept"))
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    program = Path(sys.executable).with_name("firefly-memory")
    url = f"sqlite:///{tmp_path}/memory.db"
    done = subprocess.run(
        [program, "export", "--url", url], stdout=subprocess.PIPE, stderr=theirs, text=True, check=False
    )
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert done.returncode == 0, shown
    assert "kept" in done.stdout
    assert "/s]" in shown, shown

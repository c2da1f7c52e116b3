"""The command shows a bar and a table on a terminal where only the extra ``cli`` is installed."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

from firefly_memory import MemoryEntry, SQLiteStore

PROGRAM = Path(sys.executable).with_name("firefly-memory")


def on_a_terminal(*arguments: str, is_archive: bool) -> tuple[str, str]:
    """What is shown on the terminal, and what is in the archive on the standard output."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 60))
    output = subprocess.PIPE if is_archive else theirs
    variables = {**os.environ, "TERM": "xterm"}
    done = subprocess.run([PROGRAM, *arguments], stdout=output, stderr=theirs, env=variables, text=True, check=False)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert done.returncode == 0, shown
    return shown, done.stdout


def test_an_export_shows_a_bar_on_a_terminal(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save("n", MemoryEntry(content="kept"))
    shown, archive = on_a_terminal("export", "--url", f"sqlite:///{tmp_path}/memory.db", is_archive=True)
    assert "kept" in archive
    assert "/s]" in shown, shown


def test_a_table_fits_the_terminal() -> None:
    shown, _ = on_a_terminal("db", "history", is_archive=False)
    assert "0001" in shown
    assert max(map(len, shown.splitlines())) <= 60
    code = "import sys, firefly_memory.cli.tables, rich.table; print(rich.table.__name__)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"rich.table\n"

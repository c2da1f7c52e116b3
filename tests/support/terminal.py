"""A program on a terminal of a chosen width, and what it shows there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path


def on_a_terminal(*arguments: str, cwd: Path | None = None, columns: int = 80, **variables: str) -> tuple[int, str]:
    """What Python ends with, given these arguments, and what it shows on both its outputs."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    environment = {**inherited, "TERM": "xterm-256color", **variables}
    child = subprocess.Popen(
        [sys.executable, *arguments], cwd=cwd, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    code = child.wait()
    os.close(ours)
    return code, shown.decode().replace("\r\n", "\n")

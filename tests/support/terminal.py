"""A program on a terminal of a chosen width, and what it shows there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Mapping


def on_a_terminal(*arguments: str, columns: int = 80, variables: Mapping[str, str] | None = None) -> tuple[int, str]:
    """What Python ends with, given these arguments, and what it shows on both its outputs."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    environment = {**inherited, "TERM": "xterm-256color", **(variables or {})}
    child = subprocess.Popen([sys.executable, *arguments], env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
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

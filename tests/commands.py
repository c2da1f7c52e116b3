"""The command ``firefly-memory`` on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path


def shown_on_a_terminal(*arguments: str, cwd: Path) -> bytes:
    """What it shows to somebody who watches, on the standard error."""
    command = [sys.executable, "-m", "firefly_memory.cli", *arguments]
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 120))
    child = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=end)
    os.close(end)
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    assert child.wait() == 0
    os.close(terminal)
    return shown

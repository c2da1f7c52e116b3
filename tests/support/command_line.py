"""The command ``firefly-memory`` in a process of its own, and on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

from firefly_memory.cli import main
from tests.support.workers import run_command


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


def answered_on_a_terminal(answer: bytes, *arguments: str) -> tuple[int, str]:
    """What a command ends with and has shown, if somebody types ``answer`` when it asks."""
    command = [sys.executable, "-m", "firefly_memory.cli", *arguments]
    terminal, end = pty.openpty()
    child = subprocess.Popen(command, stdin=end, stdout=end, stderr=end)
    os.close(end)
    shown, asked = b"", False
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
            if not asked and b"type the name" in shown and shown.endswith(b": "):
                asked = True
                os.write(terminal, answer)
    except OSError:  # the other end is closed
        pass
    code = child.wait()
    os.close(terminal)
    return code, shown.decode()


def run(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """With no setting of this machine but ``variables``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
    return run_command(main, arguments, cwd, {**inherited, **variables})

"""The command on a terminal of a chosen width, and what it shows there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from firefly_memory.cli import main
from tests.support.workers import end_of, start_command


def on_a_terminal(*arguments: str, columns: int = 80, variables: Mapping[str, str] | None = None) -> tuple[int, str]:
    """What ``firefly-memory`` ends with, given these arguments, and what it shows on both its outputs."""
    with _terminal(columns) as (ours, theirs):
        child = start_command(main, arguments, [theirs] * 3, environment=_environment(variables))
        os.close(theirs)
        shown = _shown_at(ours)
        return end_of(child), shown.decode().replace("\r\n", "\n")


def program_on_a_terminal(
    *arguments: str, columns: int = 80, variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The same of Python, given these arguments."""
    with _terminal(columns) as (ours, theirs):
        command, environment = [sys.executable, *arguments], _environment(variables)
        child = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = _shown_at(ours)
        return child.wait(), shown.decode().replace("\r\n", "\n")


def shown_on_a_terminal(*arguments: str, cwd: Path) -> bytes:
    """What ``firefly-memory`` shows to somebody who watches, on the standard error."""
    with _terminal(columns=120) as (ours, theirs), Path(os.devnull).open("r+") as nothing:
        child = start_command(main, arguments, [nothing.fileno(), nothing.fileno(), theirs], cwd=cwd)
        os.close(theirs)
        shown = _shown_at(ours)
        assert end_of(child) == 0
        return shown


def answered_on_a_terminal(answer: bytes, *arguments: str) -> tuple[int, str]:
    """What ``firefly-memory`` ends with and has shown, if somebody types ``answer`` when it asks."""
    answers = [answer]

    def type_the_answer(shown: bytes) -> None:
        if answers and b"type the name" in shown and shown.endswith(b": "):
            os.write(ours, answers.pop())

    with _terminal(columns=80) as (ours, theirs):
        child = start_command(main, arguments, [theirs] * 3)
        os.close(theirs)
        shown = _shown_at(ours, type_the_answer)
        return end_of(child), shown.decode()


@contextmanager
def _terminal(columns: int) -> Iterator[tuple[int, int]]:
    """Our end and theirs. Theirs is to be closed as soon as another process has it, so that ours sees its end."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def _shown_at(ours: int, at_each_part: Callable[[bytes], None] = lambda _: None) -> bytes:
    """All that is shown until the other end is closed."""
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
            at_each_part(shown)
    except OSError:  # the other end is closed
        pass
    return shown


def _environment(variables: Mapping[str, str] | None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    return {**inherited, "TERM": "xterm-256color", **(variables or {})}

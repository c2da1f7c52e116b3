"""What a command prints: lines for people, or one JSON object for machines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import IO, Any

import click

from firefly_memory.cli.invocation import current
from firefly_memory.cli.text import Shown, on_one_line, printable


def show(result: dict[str, Any], lines: Iterable[str]) -> None:
    """Print one or the other, to the standard output."""
    if current().json:
        print(json.dumps(result))
        return
    for line in lines:
        print(printable(line))


def say(line: str) -> None:
    """A line for people beside the output: on the standard error."""
    print(printable(line), file=sys.stderr)


def is_coloured(stream: IO[str]) -> bool:
    """Whether text is coloured: on a terminal that can, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def in_colour(text: str, colour: str, stream: IO[str] | None = None) -> Shown:
    """``text`` on one line, in a colour where ``stream`` shows them; by default the standard output."""
    safe = on_one_line(text)
    return Shown(click.style(safe, fg=colour) if is_coloured(stream or sys.stdout) else safe)

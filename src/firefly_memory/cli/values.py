"""What an option may be: values that no command can use are refused before it begins.

Each function is a ``type=`` of an option. :mod:`click` adds the name of the option to the message.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from firefly_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def a_name(value: str) -> str:
    """Of a store, a part of it or a file. An empty one comes from a variable that is not set, and must not stand for
    what the environment names."""
    if not value.strip():
        raise click.BadParameter("it is empty; give it a value, or leave it out")
    return value


def a_time_out(value: str) -> float:
    from firefly_memory.validation import seconds

    try:
        return seconds("it", float(value))
    except (ValueError, ConfigurationError):
        raise click.BadParameter(f"must be a number of seconds above 0, not {value!r}") from None


def a_whole_number(value: str) -> int:
    from firefly_memory.validation import at_least

    try:
        return at_least(1, "it", int(value))
    except (ValueError, ConfigurationError):
        raise click.BadParameter(f"must be a whole number from 1 up, not {value!r}") from None


def a_file(value: str) -> Path:
    return Path(a_name(value))


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A ``shell_complete=``: the shell itself completes the names of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]

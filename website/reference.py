"""The pages of the reference: which names they document, and the help of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from website.paths import DOCS

FOLDER = DOCS / "reference"
COMMANDS = "<!-- the help of every command -->"

_BLOCK = re.compile(r"^::: (?P<name>[\w.]+)$", re.MULTILINE)


@cache
def documented_names() -> dict[str, str]:
    """Each name of the reference, under its full path and, where this is enough, under its last part."""
    paths = [path for page in sorted(FOLDER.glob("*.md")) for path in _BLOCK.findall(page.read_text())]
    last_parts = [path.rpartition(".")[2] for path in paths]
    short = {last: path for last, path in zip(last_parts, paths, strict=True) if last_parts.count(last) == 1}
    return short | {path: path for path in paths}


def with_commands(markdown: str) -> str:
    """The page of the command line, with the help that each command prints."""
    return markdown.replace(COMMANDS, "\n\n".join(_sections())) if COMMANDS in markdown else markdown


def _sections() -> Iterator[str]:
    import click

    from firefly_memory.cli.commands import COMMANDS as TABLE
    from firefly_memory.cli.commands import GROUPS
    from firefly_memory.cli.group import NAME, Commands

    for path in ["", *(group for group in GROUPS if group), *TABLE]:
        command: click.Command = Commands()
        ctx = click.Context(command, info_name=NAME, terminal_width=76, max_content_width=76)
        for word in path.split():
            assert isinstance(command, click.Group)
            found = command.get_command(ctx, word)
            assert found is not None
            command = found
            ctx = click.Context(command, info_name=word, parent=ctx)
        yield f"## {NAME} {path}".rstrip() + f"\n\n```text\n{command.get_help(ctx).rstrip()}\n```"

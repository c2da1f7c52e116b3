"""A command and its help: what it does, its arguments and options, an example, and the exit codes that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.facets import register_facets_of
from firefly_memory.cli.invocation import current
from firefly_memory.cli.values import a_file, files

HELP = {"help_option_names": ["-h", "--help"]}

MOST = (Exit.DONE, Exit.FAILED, Exit.USAGE)
"""The exit codes that every command has."""

OF_A_STORE = (*MOST, Exit.BEHIND, Exit.AHEAD, Exit.UNREACHABLE, Exit.BUSY)
"""The exit codes of a command that opens a store."""


class Option(click.Option):
    """An option with its place in the help."""

    def __init__(self, *given: Any, section: str = "options", **settings: Any) -> None:
        completed = files if settings.get("type") is a_file else None
        super().__init__(*given, **{"shell_complete": completed, **settings})
        self.section = section


class Argument(click.Argument):
    """An argument with words for the help, in each version of click."""

    def __init__(self, *given: Any, words: str, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.words = words


class WithHelp(click.Command):
    """The help in sections. Contents of examples and exit codes keep their lines."""

    examples: tuple[str, ...] = ()
    exits: Mapping[Exit, str] = {}

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, " ".join(self.collect_usage_pieces(ctx)), prefix="usage: ")

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_commands(ctx, formatter)
        for section, rows in self._sections(ctx).items():
            with formatter.section(section):
                formatter.write_dl(rows)
        if self.examples:
            formatter.write("\nexample:\n" if len(self.examples) == 1 else "\nexamples:\n")
            formatter.write("".join(f"  {each}\n" for each in self.examples))
        if self.exits:
            with formatter.section("exit codes"):
                formatter.write_dl([(str(int(code)), words) for code, words in self.exits.items()])

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        found = super().get_help_option(ctx)
        if found is not None:
            found.help = "show this help and end"
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """For a group."""

    def _sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, Argument):
                found.setdefault("arguments", []).append((param.get_usage_pieces(ctx)[0], param.words))
            elif (record := param.get_help_record(ctx)) is not None:
                found.setdefault(getattr(param, "section", "options"), []).append(record)
        return found


class Command(WithHelp):
    """A command that does something. Options before its name count as if they stood behind it."""

    more: Callable[[], Iterable[click.Parameter]] | None = None
    """Options that are known only when the command is called."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, help_option = super().get_params(ctx)
        return [*own, *(self.more() if self.more else ()), help_option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = [*ctx.meta.pop(BEFORE, []), *args]
        if any(param.name == "facet" for param in self.params) and not ctx.resilient_parsing:
            current().json = "--json" in args  # for the error, if a facet is not there
            register_facets_of(args)
        return super().parse_args(ctx, args)


BEFORE = "firefly_memory.options_before_the_command"
"""Where a group keeps the options that stand before the name of a command, for the command to read."""


def command(
    description: str | None = None,
    *,
    examples: Iterable[str],
    exits: Iterable[Exit] | Mapping[Exit, str] = MOST,
    more: Callable[[], Iterable[click.Parameter]] | None = None,
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function. What it returns is the exit code; ``None`` is :attr:`Exit.DONE`.

    ``description`` is by default what the table of commands says. ``exits`` are the exit codes that the command has, as
    the help names them, with words of their own where they differ from those of other commands.
    """

    def decorate(function: Callable[..., Any]) -> Command:
        made = click.command(cls=Command, help=description, context_settings=HELP)(function)
        made.examples = tuple(examples)
        made.exits = {code: exits[code] if isinstance(exits, Mapping) else WORDS[code] for code in sorted(exits)}
        made.more = more
        return made

    return decorate


def argument(name: str, words: str, **settings: Any) -> Callable[[Any], Any]:
    return click.argument(name, cls=Argument, words=words, **settings)


def option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=Option, **settings)


def flag(*names: str, **settings: Any) -> Callable[[Any], Any]:
    return option(*names, is_flag=True, **settings)

"""The groups of commands. A command is imported when it runs; the help of a group needs none of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from firefly_memory import likely_names
from firefly_memory.cli import commands as table
from firefly_memory.cli.command import HELP, Command, Option, WithHelp
from firefly_memory.cli.options import before_the_command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

NAME = "firefly-memory"


class Commands(WithHelp, click.Group):
    """The commands of the table whose names begin with ``path``."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        super().__init__(
            path or NAME,
            help=table.GROUPS[path].description,
            params=[*([] if path else [_version()]), *before_the_command()],
            context_settings=HELP,
            subcommand_metavar="COMMAND ...",
        )

    def words(self) -> dict[str, str]:
        """Its commands and groups, and what they do, in the order of the table."""
        begin = f"{self.path} " if self.path else ""
        found: dict[str, str] = {}
        for path, line in table.COMMANDS.items():
            if path.startswith(begin):
                name, _, rest = path.removeprefix(begin).partition(" ")
                found.setdefault(name, table.GROUPS[begin + name].words if rest else line.words)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.words())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        path = f"{self.path} {cmd_name}".strip()
        if path in table.GROUPS:
            return Commands(path)
        line = table.COMMANDS.get(path)
        return None if line is None else _loaded(path, line)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args[0] not in names and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {args[0]!r}{self._advice(args[0])}; there are {', '.join(names)}")
        return super().resolve_command(ctx, args)

    def _advice(self, word: str) -> str:
        """What is probably meant: a command of this group, or of another one."""
        known = {path.rpartition(" ")[2]: path for path in table.COMMANDS if path.startswith(self.path)}
        guesses = likely_names.COMMANDS_OF_DB if self.path else likely_names.COMMANDS
        meant = likely_names.meant(word, known, guesses)
        return "" if meant is None else f" (did you mean `{NAME} {known.get(meant, meant)}`?)"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(self.get_help(ctx), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("commands"):
            formatter.write_dl(list(self.words().items()))
        formatter.write(f"\n  `{ctx.command_path} COMMAND --help` has an example and the exit codes.\n")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=words) for name, words in self.words().items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


def _loaded(path: str, line: table.Line) -> click.Command:
    module, _, name = line.where.partition(":")
    command: Command = getattr(import_module(f"{table.__name__}.{module}"), name)
    command.name = path.rpartition(" ")[2]
    if command.help is None:
        command.help = f"{line.words[0].upper()}{line.words[1:]}."
    return command


def _version() -> Option:
    def show(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted and not ctx.resilient_parsing:
            package = import_module("firefly_memory")  # it is loaded, while importlib.metadata takes as long as Python
            click.echo(f"{NAME} {package.__version__}")
            ctx.exit()

    return Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="show the version and end"
    )

"""Each line of the table of commands: its help, its example, and what is loaded for them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import click
import pytest

from firefly_memory import __version__
from firefly_memory.cli import main
from firefly_memory.cli.command import MOST, Command
from firefly_memory.cli.commands import COMMANDS, GROUPS
from firefly_memory.cli.exits import Exit
from firefly_memory.cli.group import NAME, Commands
from firefly_memory.cli.invocation import Invocation
from firefly_memory.settings import PREFIX
from firefly_memory.transfer.archive import MAX_LINE

HEAVY = {
    *(
        "sqlalchemy",
        "alembic",
        "pydantic",
        "pydantic_settings",
        "sqlite3",
        "aiosqlite",
        "asyncpg",
        "psycopg",
        "pymongo",
    ),
    *("bson", "rich", "tqdm", "tiktoken", "pydantic_ai", "importlib.metadata", "firefly_memory.settings"),
}


def found(path: str) -> Command:
    group: click.Command = Commands()
    for name in path.split():
        assert isinstance(group, Commands)
        command = group.get_command(click.Context(group), name)
        assert command is not None
        group = command
    assert isinstance(group, Command)
    return group


def helped(path: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*path.split(), "--help"])
    assert ended.value.code == Exit.DONE
    return capsys.readouterr().out


@pytest.mark.parametrize("path", COMMANDS)
def test_the_help_has_an_example_and_the_exit_codes_of_this_command_only(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = helped(path, capsys)
    assert shown.startswith(f"usage: {NAME} {path} ")
    command = found(path)
    codes = re.findall(r"^  (\d)  ", shown.partition("exit codes:\n")[2], re.MULTILINE)
    assert codes == [str(int(code)) for code in command.exits]
    assert set(MOST) <= command.exits.keys()
    assert all(f"  {example}\n" in shown for example in command.examples)
    assert command.examples
    assert COMMANDS[path].words.split(",")[0].split()[-1] in " ".join(shown.split()) or command.help
    assert all(len(line) <= 80 or line.strip() in command.examples for line in shown.splitlines())


def test_commands_that_ask_no_database_have_no_exit_codes_of_databases() -> None:
    for path in ("db history", "db sql", "db grants", "completion"):
        assert set(found(path).exits) == set(MOST)


@pytest.mark.parametrize("path", COMMANDS)
def test_the_examples_can_be_read(path: str) -> None:
    for example in found(path).examples:
        typed = re.sub(r'^eval "\$\((.*)\)".*|[|>#].*', r"\1", example)
        program, *arguments = shlex.split(typed)
        assert program == NAME
        assert arguments[: len(path.split())] == path.split()
        with click.Context(click.Command(NAME), obj=Invocation()) as parent:
            found(path).make_context(path, arguments[len(path.split()) :], parent=parent)


@pytest.mark.parametrize("path", ["--version", "--help", "db --help", *(f"{path} --help" for path in COMMANDS)])
def test_help_and_version_load_nothing_heavy(path: str) -> None:
    """They answer at once: in 0.1 s, of which Python and click need the most."""
    code = f"""
import sys
from firefly_memory.cli import main
try:
    main({path.split()!r})
except SystemExit as ended:
    print("loaded", *({HEAVY!r} & set(sys.modules)))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "loaded"


def test_the_help_of_a_group_names_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    words = " ".join(helped("", capsys).split())
    assert all(f"{path} {line.words}" in words for path, line in COMMANDS.items() if " " not in path)
    for group in filter(None, GROUPS):
        assert f"{group} {GROUPS[group].words}" in words
        of_group = " ".join(helped(group, capsys).split())
        own = [(path.split()[1], line) for path, line in COMMANDS.items() if path.startswith(f"{group} ")]
        assert own
        assert all(f"{name} {line.words}" in of_group for name, line in own)


def test_without_a_command_the_help_is_shown_and_the_exit_code_says_that_nothing_was_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments in ([], ["db"]):
        shown = helped(" ".join(arguments), capsys)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == Exit.USAGE
        said = capsys.readouterr()
        assert (said.out, said.err) == ("", shown)


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "firefly_memory"]
    ended = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout == f"{NAME} {__version__}\n"
    assert subprocess.run([*command, "fly"], capture_output=True, check=False).returncode == Exit.USAGE


def test_the_help_says_what_other_modules_define(capsys: pytest.CaptureFixture[str]) -> None:
    """Those modules take long to load, so the help does not ask them."""
    assert f"{PREFIX}MONGODB_COLLECTION" in helped("export", capsys)
    assert f"refuse longer lines ({MAX_LINE // 2**20})" in " ".join(helped("import", capsys).split())

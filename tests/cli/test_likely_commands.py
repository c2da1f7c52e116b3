"""A command or an option that does not exist: the error says which one is probably meant."""

from __future__ import annotations

import pytest

from firefly_memory import likely_names
from firefly_memory.cli import main
from firefly_memory.cli.commands import COMMANDS
from firefly_memory.cli.exits import Exit

COMMAND_GUESSES = {
    "migrate": "db upgrade",
    "upgrade": "db upgrade",
    "stamp": "db stamp",
    "list": "ls",
    "get": "show",
    "delete": "rm",
    "erase": "forget",
    "backup": "export",
    "restore": "import",
    "status": "index status",
    "doctr": "doctor",
    "db migrate": "db upgrade",
    "db upgrad": "db upgrade",
    "db status": "db current",
    "db rollback": "db downgrade",
}


def error_of(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == Exit.USAGE
    (error,) = capsys.readouterr().err.splitlines()
    return error


@pytest.mark.parametrize("guess", COMMAND_GUESSES)
def test_a_wrong_command_is_answered_with_the_right_one(guess: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = guess.rpartition(" ")[2]
    right = f"there is no command '{wrong}' (did you mean `firefly-memory {COMMAND_GUESSES[guess]}`?)"
    assert right in error_of(guess, capsys)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("ls --dsn x", "there is no option --dsn (did you mean --url?)"),
        ("rm --force", "there is no option --force (did you mean --yes?)"),
        ("rm --dryrun", "there is no option --dryrun (did you mean --dry-run?)"),
        ("prune --user ada", "there is no option --user (did you mean --owner?)"),
        ("rm --user ada", "there is no option --user;"),  # it has no --owner
        ("fly", "there is no command 'fly'; there are ls, "),
    ],
)
def test_an_option_is_named_only_if_the_command_has_it(
    line: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advice in error_of(line, capsys)


def test_every_command_that_is_suggested_exists() -> None:
    suggested = {*likely_names.COMMANDS.values(), *likely_names.COMMANDS_OF_DB.values()}
    assert suggested - COMMANDS.keys() == {"--help", "--version"}

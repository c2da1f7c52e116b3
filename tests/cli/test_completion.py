"""The shell completes commands, options and files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firefly_memory.cli import COMPLETION, main
from firefly_memory.cli.commands import COMMANDS
from firefly_memory.cli.exits import Exit
from firefly_memory.facets import all_facets

PROGRAM = Path(sys.executable).with_name("firefly-memory")


def completed_by_bash(*words: str) -> list[str]:
    """What bash offers where the last of these words ends."""
    script = f"""
complete() {{ :; }}; compopt() {{ echo "files"; }}
eval "$({PROGRAM} completion bash)"
COMP_WORDS=({" ".join(f"'{each}'" for each in ("firefly-memory", *words))}); COMP_CWORD={len(words)}
_firefly_memory_completion {PROGRAM}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    return ended.stdout.split()


def test_bash_completes_commands() -> None:
    assert completed_by_bash("") == list(dict.fromkeys(path.split()[0] for path in COMMANDS))
    assert completed_by_bash("db", "c") == ["current", "check"]
    assert completed_by_bash("--url", "sqlite:///a.db", "db", "--json", "up") == ["upgrade"]


def test_bash_completes_options_arguments_and_files() -> None:
    options = [
        facet.option_without for facet in all_facets() if isinstance(getattr(facet.moving, "without", None), str)
    ]
    assert "--without-agent-history" in options
    assert completed_by_bash("export", "--without") == options
    assert completed_by_bash("--url-") == ["--url-file"]
    assert completed_by_bash("completion", "") == ["bash", "zsh", "fish"]
    assert completed_by_bash("db", "sql", "--dialect", "p") == ["postgresql"]
    for words in (["export", ""], ["doctor", "--url-file", "x"], ["--env-file", ""]):
        assert completed_by_bash(*words)[0] == "files"


@pytest.mark.parametrize(("shell", "place"), [("zsh", "1"), ("fish", "doc")])
def test_other_shells_show_what_a_command_does(shell: str, place: str) -> None:
    variables = {COMPLETION: f"{shell}_complete", "COMP_WORDS": "firefly-memory doc", "COMP_CWORD": place}
    ended = subprocess.run([PROGRAM], env=os.environ | variables, capture_output=True, text=True, check=True)
    assert "doctor" in ended.stdout
    assert COMMANDS["doctor"].words in ended.stdout
    assert "export" not in ended.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_this_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == Exit.DONE
    script = capsys.readouterr().out
    assert f"{COMPLETION}={shell}_complete" in script
    assert "firefly-memory" in script


def test_there_is_none_for_another_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == Exit.USAGE
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err

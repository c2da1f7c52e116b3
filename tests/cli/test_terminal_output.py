"""What a terminal is sent: coloured text where that is wanted, and never a control character that is data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from firefly_memory import MemoryEntry, SQLiteStore
from firefly_memory.cli.exits import Exit
from firefly_memory.cli.text import chunks, cut, on_one_line, printable, width_of
from tests.support.terminal import on_a_terminal, program_on_a_terminal

pytestmark = pytest.mark.thorough

GREEN, RED = "\x1b[32m", "\x1b[31m"


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SQLiteStore("a.db") as store:
        store.save("n", MemoryEntry())


def test_doctor_and_errors_are_coloured_on_a_terminal() -> None:
    code, shown = on_a_terminal("doctor", "--url", "sqlite:///a.db")
    assert code == Exit.DONE
    assert f"{GREEN}ok      \x1b[0m SQLite: " in shown
    code, shown = on_a_terminal("doctor", "--url", "x:")
    assert code == Exit.USAGE
    assert shown.startswith(f"{RED}firefly-memory:\x1b[0m ")


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_there_are_none_where_they_are_not_wanted(variables: dict[str, str]) -> None:
    for url in ("sqlite:///a.db", "x:"):
        assert "\x1b" not in on_a_terminal("doctor", "--url", url, variables=variables)[1]


def test_there_are_none_in_a_pipe() -> None:
    for url in ("sqlite:///a.db", "x:"):
        command = [sys.executable, "-m", "firefly_memory", "doctor", "--url", url]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "\x1b" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "--url", "sqlite:///\x1b[2J.db"],
        ["import", "--url", "memory:", "\x1b[2J"],
        ["db", "stamp", "\x1b[2J", "--url", "sqlite:///a.db"],
        ["\x1b[2J"],
        ["export", "--\x1b[2J"],
        ["db", "upgrade", "--timeout", "\x1b[2J"],
        ["db", "upgrade", "one", "\x1b[2J"],
    ],
    ids=ascii,
)
def test_an_error_sends_no_escape_sequence(arguments: list[str]) -> None:
    code, shown = on_a_terminal(*arguments, variables={"NO_COLOR": "1"})
    assert code != Exit.DONE
    assert "\x1b" not in shown
    assert r"\x1b[2J" in shown.replace("\\\\", "\\")


def test_without_tqdm_there_is_a_line_now_and_then() -> None:
    code = """
import sys
sys.modules["tqdm"] = None
from firefly_memory.cli import main, progress
progress.EVERY = 0.0
sys.exit(main(["export", "--url", "sqlite:///a.db", "out"]))
"""
    ended, shown = program_on_a_terminal("-c", code)
    assert ended == Exit.DONE
    lines = shown.splitlines()
    assert "exported: 1 entries, 0 conversations with 0 turns" in lines
    assert lines[-1] == "exported 1 entries, 0 conversations with 0 turns"


def test_text_is_cut_by_the_columns_that_it_takes() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 5) == "abcd…"
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"
    assert cut("ab", 1) == "…"
    assert width_of("e\u0301") == 1
    assert list(chunks("日本語x", 3)) == ["日", "本", "語x"]
    assert list(chunks("", 3)) == []


def test_lines_and_tabs_stay_where_they_may() -> None:
    assert printable("a\n\tb\x1b") == "a\n\tb\\x1b"
    assert on_one_line("a\n\tb\x1b") == r"a\n\tb\x1b"

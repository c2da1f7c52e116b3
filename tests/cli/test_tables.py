"""Tables fit the terminal, with rich and without it; in a pipe they are whole. Contents are data."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from typing import Any

import pytest

from tests.support.terminal import program_on_a_terminal

ID = "0123456789abcdef" * 2
LONG = "words and " * 30 + "the end"
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]\r\n\u202etxt\ud800"

TABLE = """
import sys
if {without_rich}:
    sys.modules["rich"] = None
import click
from firefly_memory.cli.invocation import Invocation
from firefly_memory.cli.tables import Column, show_table
columns = [Column("id", is_whole=True), Column("count", align="right"), Column("content")]
with click.Context(click.Command("x"), obj=Invocation(json={is_json})):
    show_table({{"rows": 1}}, columns, {rows!r})
print("rich" in sys.modules and sys.modules["rich"] is not None)
"""


def code(*rows: tuple[Any, ...], without_rich: bool = False, is_json: bool = False) -> list[str]:
    return ["-c", TABLE.format(rows=rows, without_rich=without_rich, is_json=is_json)]


def columns_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line)


def plain(text: str) -> str:
    """Without what rich may have added to colour it."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


@pytest.mark.parametrize("without_rich", [False, True], ids=["rich", "plain"])
@pytest.mark.parametrize("columns", [120, 80, 60, 40, 24])
def test_no_line_is_longer_than_the_terminal(columns: int, without_rich: bool) -> None:
    rows = [(ID, 7, LONG), (ID, 12345, "短い" * 40), (ID, 0, "")]
    ended, shown = program_on_a_terminal(*code(*rows, without_rich=without_rich), columns=columns)
    assert ended == 0, shown
    *lines, with_rich = plain(shown).splitlines()
    assert with_rich == str(not without_rich)
    assert max(map(columns_of, lines)) <= columns
    assert "…" in shown
    assert "the end" not in shown
    if columns >= 60:
        assert shown.count(ID) == 3, "an id is there to be copied"


@pytest.mark.parametrize("without_rich", [False, True], ids=["rich", "plain"])
def test_an_id_is_never_cut(without_rich: bool) -> None:
    _, shown = program_on_a_terminal(*code((ID, 1, "x"), without_rich=without_rich), columns=30)
    firsts = [line.split()[0] for line in plain(shown).splitlines() if re.match(r"[0-9a-f]+( |$)", line)]
    assert "".join(firsts) == ID
    assert len(firsts) > 1


def test_both_forms_have_the_same_columns() -> None:
    rows = [("a", 1, "first"), ("bb", 22, "second")]
    shown = [
        plain(program_on_a_terminal(*code(*rows, without_rich=each))[1]).splitlines()[:-1] for each in (False, True)
    ]
    with_rich, without = ([line.rstrip() for line in lines if not set(line) <= {"─", " ", "-"}] for lines in shown)
    assert with_rich == without == ["id  count  content", "a       1  first", "bb     22  second"]


def test_in_a_pipe_nothing_is_cut_or_coloured() -> None:
    arguments = [sys.executable, *code((ID, 7, LONG))]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=True)
    title, line, with_rich = ended.stdout.splitlines()
    assert title.split() == ["id", "count", "content"]
    assert line == f"{ID}      7  {LONG}"
    assert with_rich == "False", "it is not even loaded"


def test_no_color_and_a_dumb_terminal_get_no_escape_sequence() -> None:
    assert "\x1b[" in program_on_a_terminal(*code(("a", 1, "x")))[1]
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b[3" not in program_on_a_terminal(*code(("a", 1, "x")), variables=variables)[1]


@pytest.mark.parametrize("without_rich", [False, True], ids=["rich", "plain"])
def test_control_characters_in_contents_are_written_out(without_rich: bool) -> None:
    ended, shown = program_on_a_terminal(
        *code(("a", 1, EVIL), without_rich=without_rich), columns=200, variables={"NO_COLOR": "1"}
    )
    assert ended == 0, shown
    assert r"\x1b]0;owned\x07\x1b[2J\x9b31m[red]\r\n\u202etxt\ud800" in shown
    assert all(each.isprintable() or each == "\n" for each in plain(shown))


def test_a_json_object_takes_the_place_of_the_table() -> None:
    ended = subprocess.run(
        [sys.executable, *code((ID, 7, LONG), is_json=True)], capture_output=True, text=True, check=True
    )
    assert json.loads(ended.stdout.splitlines()[0]) == {"rows": 1}


def test_a_command_uses_them() -> None:
    arguments = ["-m", "firefly_memory", "db", "history"]
    _, shown = program_on_a_terminal(*arguments, columns=30)
    assert max(map(len, plain(shown).splitlines())) <= 30
    assert shown.count("(head)") == 1

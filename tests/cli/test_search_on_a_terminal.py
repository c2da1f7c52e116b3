"""Hits on a terminal: a table fits it, and contents are data."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest

from firefly_memory import SQLiteStore
from firefly_memory.cli import main
from firefly_memory.cli.commands.search import MODES
from firefly_memory.cli.exits import Exit
from firefly_memory.knowledge import Chunk, KnowledgeStore
from tests.support.stores_by_options import ran
from tests.support.terminal import on_a_terminal

pytestmark = pytest.mark.thorough

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]\r\n\u202etxt\u2066\x00\ud800 id  fake\ttab"


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    """A store in which every text is hostile, and long."""
    with SQLiteStore(tmp_path / "memory.db") as store:
        texts = [Chunk(f"dog {EVIL * number}", who=EVIL, group=EVIL) for number in (1, 30)]
        KnowledgeStore(store).add("notes", [*texts, Chunk("短い" * 100, group=EVIL)], source={EVIL: [EVIL]})
    return f"sqlite:///{tmp_path}/memory.db"


def width_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line)


def is_harmless(text: str) -> bool:
    """But for what makes text of tables coloured or bold."""
    return all(each.isprintable() or each == "\n" for each in re.sub(r"\x1b\[[\d;]*m", "", text))


@pytest.mark.parametrize("columns", [100, 50])
def test_a_table_fits_the_terminal_and_contents_are_data(hostile: str, columns: int) -> None:
    arguments = ["search", "chunks", "dog owned", "--collection", "notes", "--mode", "text", "--explain"]
    code, shown = on_a_terminal(*arguments, "--url", hostile, columns=columns)
    assert code == Exit.DONE, shown
    assert is_harmless(shown)
    table, *blocks = re.sub(r"\x1b\[[\d;]*m", "", shown).split("\n\n")
    assert max(map(width_of, table.splitlines())) <= columns
    assert [block.split()[0] for block in blocks] == ["1", "2", "3"]
    assert "\\x1b]0;owned" in shown


@pytest.mark.parametrize("mode", MODES)
def test_hostile_contents_look_like_nothing_else(hostile: str, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--collection", "notes", "--mode", mode, "--url", hostile]
    lines, said = ran(capsys, ["search", "chunks", f"dog {EVIL}", "--explain"], options)
    assert is_harmless("\n".join(lines) + said)
    table = lines[: lines.index("")]
    assert [line.split()[0] for line in table] == ["rank", *map(str, range(1, len(table)))]
    (line,), _ = ran(capsys, ["search", "chunks", "dog", "--json"], options)
    rows = json.loads(line)["hits"]
    assert {f"dog {EVIL}", f"dog {EVIL * 30}"} <= {row["text"] for row in rows}
    assert {EVIL: [EVIL]} in [row["source"] for row in rows]


def test_errors_show_hostile_names_as_data(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([EVIL, "dog"], ["chunks", EVIL, "--where", f"{EVIL}=x"]):
        assert main(["search", *arguments, "--url", hostile]) == Exit.USAGE
        assert is_harmless("".join(capsys.readouterr()))

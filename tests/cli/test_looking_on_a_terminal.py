"""Rows on a terminal: tables fit it, contents are data, and nothing is deleted before the answer."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest

from firefly_memory import SQLiteStore
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.looking import resources_of
from tests.support.facet_samples import looked_at, sample_of
from tests.support.terminal import answered_on_a_terminal, on_a_terminal

pytestmark = pytest.mark.thorough

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]\r\n\u202etxt\u2066\x00\ud800 id  fake\ttab"
NAME = f"n/{EVIL}"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store in which every text is hostile, and long."""
    with SQLiteStore(tmp_path / "memory.db") as store:
        for facet in looked_at():
            sample_of(facet.name, "store_hostile")(store, EVIL)
    return f"sqlite:///{tmp_path}/memory.db"


def width_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line)


def is_harmless(text: str) -> bool:
    """But for what makes text of tables coloured or bold."""
    return all(each.isprintable() or each == "\n" for each in re.sub(r"\x1b\[[\d;]*m", "", text))


IN_ARGUMENTS = EVIL.replace(chr(0), "").encode("utf-8", "ignore").decode()

RESOURCES = {resource.kind: resource for facet in looked_at() for resource in resources_of(facet)}


def where(kind: str, value: str) -> list[str]:
    """The options without which rows of the kind are not listed."""
    return [option for field in RESOURCES[kind].needs for option in ("--where", f"{field}={value}")]


LISTS = [
    ["ls"],
    *(["ls", kind, *where(kind, IN_ARGUMENTS)] for kind in RESOURCES),
    ["ls", "entries", "--limit", "1"],
    ["stats"],
]


@pytest.mark.parametrize("columns", [100, 50])
@pytest.mark.parametrize("arguments", LISTS, ids=lambda each: " ".join(each)[:20])
def test_tables_fit_the_terminal_and_contents_are_data(url: str, arguments: list[str], columns: int) -> None:
    code, shown = on_a_terminal(*arguments, "--url", url, columns=columns)
    assert code == Exit.DONE, shown
    assert is_harmless(shown)
    table = re.sub(r"\x1b\[[\d;]*m", "", shown).partition("there are more")[0]
    assert max(map(width_of, table.splitlines())) <= columns


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_row_with_hostile_contents_is_shown(url: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    kept = RESOURCES[kind].why_kept is not None
    assert main(["ls", kind, "--json", *where(kind, EVIL), "--url", url]) == Exit.DONE
    lines = capsys.readouterr().out.splitlines()
    rows = [json.loads(line) for line in lines]
    assert rows
    for row in rows:
        assert main(["show", kind, row["id"], "--url", url]) == Exit.DONE
        shown = capsys.readouterr().out
        assert is_harmless(shown)
        fields = [line.split()[0] for line in shown.splitlines() if not line.startswith(" ")]
        assert fields[: len(row)] == list(row), "no content looks like a field"
        assert main(["show", kind, row["id"], "--url", url, "--json"]) == Exit.DONE
        shown_as_json = json.loads(capsys.readouterr().out)
        assert {name: shown_as_json[name] for name in row} == row
        assert main(["rm", kind, row["id"], "--url", url, "--yes"]) == (Exit.FAILED if kept else Exit.DONE)
        assert is_harmless("".join(capsys.readouterr()))


def test_errors_show_hostile_names_as_data(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["ls", EVIL], ["show", "entries", f"x/{EVIL}"], ["rm", "entries", f"x/{EVIL}", "--yes"]):
        assert main([*arguments, "--url", url]) != Exit.DONE
        assert is_harmless("".join(capsys.readouterr()))


@pytest.mark.parametrize(("answer", "code"), [(b"entries\n", Exit.DONE), (b"y\n", Exit.USAGE), (b"\n", Exit.USAGE)])
def test_at_a_terminal_the_kind_is_asked_for(url: str, tmp_path: Path, answer: bytes, code: Exit) -> None:
    ended, shown = answered_on_a_terminal(answer, "rm", "entries", "--all", "--url", url)
    assert ended == code
    assert "would delete 3 rows of entries" in shown
    assert "type the name of the kind, entries, to do that: " in shown
    assert ("nothing was changed" in shown) == (code != Exit.DONE)
    with SQLiteStore(tmp_path / "memory.db") as store:
        assert store.count(NAME) == (0 if code == Exit.DONE else 3)

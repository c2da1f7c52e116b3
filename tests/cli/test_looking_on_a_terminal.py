"""Rows on a terminal: tables fit it, contents are data, and nothing is deleted before the answer."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConversationMemory, MemoryEntry, SQLiteStore, WorkingMemory
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.feeds.message_stores import SQLMessageStore
from tests.support.terminal import answered_on_a_terminal, on_a_terminal

pytestmark = pytest.mark.thorough

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]\r\n\u202etxt\u2066\x00\ud800 id  fake\ttab"
NAME = f"n/{EVIL}"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store in which every text is hostile, and long."""
    with SQLiteStore(tmp_path / "memory.db") as store:
        for number in range(3):
            content: Any = {EVIL: [EVIL * 30]} if number else "短い" * 100
            store.save(NAME, MemoryEntry(entry_id=f"{number}{EVIL}", key=EVIL, content=content))
        WorkingMemory(store=store, scope_id=EVIL).set(EVIL, EVIL)
        ConversationMemory(store=store).add_turn(EVIL, EVIL, EVIL * 20, metadata={EVIL: EVIL})
        for message in ({"type": EVIL, "agent_key": EVIL, "content": EVIL * 20}, {EVIL: {EVIL: EVIL}}):
            SQLMessageStore(store).append(EVIL, message, owner=EVIL)
    return f"sqlite:///{tmp_path}/memory.db"


def width_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line)


def is_harmless(text: str) -> bool:
    """But for what makes text of tables coloured or bold."""
    return all(each.isprintable() or each == "\n" for each in re.sub(r"\x1b\[[\d;]*m", "", text))


IN_ARGUMENTS = EVIL.replace(chr(0), "").encode("utf-8", "ignore").decode()

LISTS = [
    ["ls"],
    ["ls", "entries"],
    ["ls", "entries", "--limit", "1"],
    ["ls", "working-facts"],
    ["ls", "conversations"],
    ["ls", "turns", "--where", f"conversation_id={IN_ARGUMENTS}"],
    ["ls", "feeds"],
    ["ls", "feed-messages", "--where", f"location={IN_ARGUMENTS}"],
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


NEEDED = {"turns": "conversation_id", "feed-messages": "location"}


@pytest.mark.parametrize("kind", ["entries", "working-facts", "conversations", "turns", "feeds", "feed-messages"])
def test_a_row_with_hostile_contents_is_shown(url: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--where", f"{NEEDED[kind]}={EVIL}"] if kind in NEEDED else []
    assert main(["ls", kind, "--json", *where, "--url", url]) == Exit.DONE
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
        assert main(["rm", kind, row["id"], "--url", url, "--yes"]) == (Exit.FAILED if where else Exit.DONE)
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

"""Hostile archives are refused with a line number, in bounded time and memory."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConfigurationError, CorruptDataError, InMemoryStore
from firefly_memory.archive import import_jsonl
from tests.support.archive_lines import CONVERSATION, ENTRY, HEADER, TURN, archive


class Endless:
    """A file: a first line, and then one without an end. Remembers how much of it was asked for."""

    def __init__(self) -> None:
        self.asked = 0
        self._first = json.dumps(HEADER) + "\n"

    def readline(self, size: int) -> str:
        if self._first:
            first, self._first = self._first, ""
            return first
        self.asked += size
        return "x" * size

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a line of any length would come")


def test_a_line_is_read_only_up_to_its_maximal_length() -> None:
    file = Endless()
    with InMemoryStore() as store, pytest.raises(CorruptDataError, match=r"line 2 .*longer than 1,000 characters"):
        import_jsonl(store, file, max_line=1_000)
    assert file.asked == 1_001


def test_a_line_may_have_the_maximal_length() -> None:
    lines = archive(("entry", {**ENTRY, "content": "x" * 1_000}))
    longest = max(map(len, lines))
    with InMemoryStore() as store:
        assert import_jsonl(store, lines, max_line=longest).entries == 1
        assert import_jsonl(store, io.StringIO("\n".join(lines)), max_line=longest + 1).entries == 1
        with pytest.raises(CorruptDataError, match=r"line 2 .*--max-line"):
            import_jsonl(store, lines, max_line=longest - 1)
    for wrong in (0, -1, True, "64", 1.5, 2**40 + 1, 2**70):
        with pytest.raises(ConfigurationError, match="max_line"):
            import_jsonl(InMemoryStore(), lines, max_line=wrong)  # type: ignore[arg-type]


def test_long_lines_are_saved_in_small_groups() -> None:
    """Or some hundreds of them would be in memory at once."""
    waiting: list[int] = []
    with InMemoryStore() as store:
        entries = [("entry", {**ENTRY, "entry_id": str(number), "content": "x" * 3_000_000}) for number in range(9)]
        import_jsonl(
            store, archive(*entries), progress=lambda _, counts: waiting.append(counts.entries - store.count("n"))
        )
    assert max(waiting) <= 3
    assert waiting[-1] == 0


def _with(name: str, text: str) -> str:
    """The line of an entry in which a member is this text."""
    return json.dumps({"entry": {**ENTRY, name: "HERE"}}).replace('"HERE"', text)


@pytest.mark.parametrize(
    "line",
    [
        _with("content", "[" * 200_000 + "]" * 200_000),
        _with("content", '{"a":' * 200_000 + "1" + "}" * 200_000),
        _with("content", "9" * 5_000),
        _with("content", "NaN"),
        _with("content", "-Infinity"),
        _with("content", "1e999"),
        _with("content", '{"a": 1, "a": 2}'),
        _with("importance", "1e400"),
        _with("created_at", '"0001-01-01T00:00:00+14:00"'),
        _with("created_at", '"9999-12-31T23:59:59-14:00"'),
        _with("created_at", '"2026-01-01"'),
        _with("entry_id", '""'),
        _with("entry_id", json.dumps("x" * 513)),
        _with("namespace", json.dumps("x" * 513)),
        _with("namespace", "null"),
        _with("namespace", "[]"),
        _with("namespace", '""'),
        _with("metadata", "[[1, 2]]"),
        _with("scope", "[]"),
        _with("key", "7"),
        '{"entry": 1, "entry": 2}',
        '{"entry": []}',
        '{"entry": null}',
        '{"entry": "x"}',
        "{}",
        "[]",
        "null",
        "\ufeff{}",
        '{"conversation": {"conversation_id": "c", "created_at": "0001-01-01T00:00:00+14:00"}}',
        '{"conversation": {"conversation_id": ["c"]}}',
        '{"turn": {"conversation_id": "c"}}',
        '{"end": {"entries": 1e999}}',
        '{"end": {"unknown": 1}}',
        '{"end": []}',
    ],
    ids=lambda line: line[-60:],
)
@pytest.mark.parametrize("options", [{}, {"untrusted": True}, {"dry_run": True}], ids=str)
def test_an_unreadable_line_is_named(line: str, options: dict[str, Any]) -> None:
    with InMemoryStore() as store:
        with pytest.raises(CorruptDataError, match="line 2 of the archive"):
            import_jsonl(store, [json.dumps(HEADER), line, *archive()[1:]], **options)
        assert store.namespaces() == []


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({"k" * 1_000_000: {}}),
        _with("created_at", json.dumps("x" * 1_000_000)),
        _with("scope", json.dumps("x" * 1_000_000)),
    ],
    ids=["kind", "instant", "scope"],
)
def test_the_error_about_a_long_line_is_short(line: str) -> None:
    with InMemoryStore() as store, pytest.raises(CorruptDataError, match="line 2 of the archive") as caught:
        import_jsonl(store, [json.dumps(HEADER), line])
    assert len(str(caught.value)) < 1_000


def test_the_argument_only_is_a_text() -> None:
    with pytest.raises(ConfigurationError, match="only must be"):
        import_jsonl(InMemoryStore(), archive(), only=7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "turn",
    [
        {"raw_messages": {}},
        {"raw_messages": "text"},
        {"messages_format": []},
        {"token_estimate": -1},
        {"token_estimate": 1.5},
        {"token_estimate": True},
        {"created_at": "9999-12-31T23:59:59-14:00"},
        {"turn_id": 10**30},
        {"metadata": []},
    ],
    ids=str,
)
@pytest.mark.parametrize("options", [{}, {"untrusted": True}], ids=str)
def test_the_fields_of_a_turn_are_checked(turn: dict[str, Any], options: dict[str, Any]) -> None:
    items = [("conversation", CONVERSATION), ("turn", {**TURN, **turn})]
    if options and "token_estimate" in turn:
        return  # which is not looked at
    with InMemoryStore() as store, pytest.raises(CorruptDataError, match="line 3 of the archive"):
        import_jsonl(store, archive(*items), **options)


def test_the_first_line_has_a_maximal_length_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the file is a pipe that never ends."""
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "firefly_memory.cli", "import", "--url", "sqlite:///a.db", "--max-line", "1"]
    endless = f"{sys.executable} -c \"\nimport sys\nwhile True: sys.stdout.write('x' * 65536)\n\" 2>/dev/null"
    ended = subprocess.run(
        ["bash", "-c", f"{endless} | {' '.join(command)}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert "line 1 of the archive is damaged (it is longer than" in ended.stderr
    assert not Path("a.db").exists()

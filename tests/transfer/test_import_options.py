"""Imports of a part of an archive, dry runs, and the options of the command."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConversationMemory,
    CorruptDataError,
    FileStore,
    InMemoryStore,
    NotSupportedError,
    SQLiteStore,
    adapt,
)
from firefly_memory.archive import async_import_jsonl, import_jsonl
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.transfer.counts import Counts
from tests.support.archive_lines import CONVERSATION, ENTRY, HEADER, OTHER_MESSAGES, TURN, archive
from tests.support.folder_backend import FolderStore

# A part, and none of it


def test_only_imports_a_part() -> None:
    items: list[tuple[str, dict[str, Any]]] = [
        ("entry", {**ENTRY, "namespace": "user:1", "entry_id": "1"}),
        ("entry", {**ENTRY, "namespace": "user:2", "entry_id": "2"}),
        ("conversation", {**CONVERSATION, "conversation_id": "user:2/chat", "summary": "s", "summarized_turns": 1}),
        ("turn", {**TURN, "conversation_id": "user:2/chat"}),
        ("conversation", {**CONVERSATION, "conversation_id": "user:1/chat", "summary": "s", "summarized_turns": 1}),
        ("turn", {**TURN, "conversation_id": "user:1/chat"}),
    ]
    with InMemoryStore() as store:
        assert import_jsonl(store, archive(*items), only="user:1") == Counts(entries=1, conversations=1, turns=1)
        assert store.namespaces() == ["user:1"]
        assert ConversationMemory(store=store).conversation_ids == ["user:1/chat"]
        assert import_jsonl(store, archive(*items), only="").total == 6
        with pytest.raises(CorruptDataError, match="lines are missing"):
            import_jsonl(store, [*archive(*items)[:2], archive(*items)[-1]], only="user:1")


@pytest.mark.parametrize("kind", [InMemoryStore, FileStore, SQLiteStore])
def test_a_dry_run_reads_everything_and_changes_nothing(kind: Any, tmp_path: Path) -> None:
    lines = archive(("entry", ENTRY), ("conversation", CONVERSATION), ("turn", TURN))
    there = tmp_path / "there"
    store = kind() if kind is InMemoryStore else kind(there)
    assert import_jsonl(store, lines, dry_run=True) == Counts(entries=1, conversations=1, turns=1)
    assert not there.exists()
    for bad in (lines[:-1], [*lines[:2], "{", *lines[3:]], archive(("entry", {**ENTRY, "importance": 7}))):
        with pytest.raises(CorruptDataError):
            import_jsonl(store, bad, dry_run=True)
    assert not there.exists()
    with store:
        assert store.namespaces() == []


@pytest.mark.parametrize("kind", [FileStore, FolderStore])
def test_a_dry_run_accepts_a_repeated_id_where_the_store_does(kind: Any, tmp_path: Path) -> None:
    """Ids of entries are unique in a namespace only where a store is files, or has five methods."""
    store = adapt(kind(tmp_path / "there"))
    lines = archive(("entry", ENTRY), ("entry", {**ENTRY, "namespace": "another"}))
    for dry_run in (True, False):
        assert import_jsonl(store, lines, dry_run=dry_run).entries == 2
    assert len(store.load("another")) == 1


def test_a_dry_run_names_items_that_the_store_cannot_keep() -> None:
    conversation = json.dumps({"dialogue": {"conversation_id": "d"}})
    for store in (InMemoryStore(), FileStore("nowhere")):
        with pytest.raises(NotSupportedError, match="line 2 of the archive: the target cannot keep"):
            import_jsonl(store, [json.dumps(HEADER), conversation], dry_run=True)


# The command


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "archive.jsonl"
    lines = archive(
        ("entry", {**ENTRY, "namespace": "user:1"}),
        ("conversation", CONVERSATION),
        ("turn", {**TURN, "token_estimate": 0, "raw_messages": OTHER_MESSAGES}),
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_has_these_options(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    importing = ["import", "--url", "sqlite:///a.db", str(file)]
    assert main([*importing, "--dry-run"]) == Exit.DONE
    assert capsys.readouterr().err == "would import 1 entries, 1 conversations with 1 turns\n"
    assert not Path("a.db").exists()
    assert main([*importing, "--only", "user:"]) == Exit.DONE
    assert capsys.readouterr().err == "imported 1 entries, 0 conversations with 0 turns\n"
    assert main([*importing, "--untrusted", "--dry-run"]) == Exit.DONE
    left_out = "left out 6 things that an untrusted archive may not have"
    assert capsys.readouterr().err == f"would import 1 entries, 1 conversations with 1 turns; {left_out}\n"
    assert main([*importing, "--untrusted", "--quiet"]) == Exit.DONE
    with SQLiteStore("a.db") as store:
        assert "obey" not in str(ConversationMemory(store=store).get_message_history("c"))
    with file.open("a") as longer:
        longer.write("x" * (2**20 + 1))
    importing[2] = "sqlite:///b.db"
    assert main([*importing, "--max-line", "1"]) == Exit.FAILED
    assert "line 6 of the archive is damaged (it is longer than 1,048,576" in capsys.readouterr().err
    assert main([*importing, "--max-line", "99999999999999"]) == Exit.USAGE
    assert "(--max-line 1048576)" in capsys.readouterr().err
    for wrong in ("0", "-1", "much"):
        with pytest.raises(SystemExit):
            main([*importing, "--max-line", wrong])
    assert "must be a whole number from 1 up" in capsys.readouterr().err


def test_an_asynchronous_dry_run_does_not_wait_for_its_event_loop() -> None:
    assert asyncio.run(async_import_jsonl(InMemoryStore(), archive(("entry", ENTRY)), dry_run=True)).entries == 1

"""Conversations with damaged counts: every operation ends with an error that names the conversation."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConversationMemory, CorruptDataError, SQLiteStore
from firefly_memory.testing import Mode
from tests.support.store_caller import MakeStoreCaller


def _damaged(path: Path, column: str, value: Any) -> None:
    with SQLiteStore(path) as store:
        memory = ConversationMemory(store=store)
        for number in range(3):
            memory.add_turn("chat", f"prompt {number}", "answer")
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"UPDATE memory_conversations SET {column} = ?", (value,))
    connection.close()


def _turns(path: Path) -> list[Any]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT * FROM memory_turns").fetchall()
    connection.close()
    return rows


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("turns", "x"),
        ("turns", 0),
        ("turns", 2),
        ("turns", 1.5),
        ("turns", -5),
        ("tokens", 2**63 - 1),
        ("evicted_tokens", "x"),
    ],
)
def test_a_turn_is_refused_if_the_counts_are_damaged(
    column: str, value: Any, mode: Mode, tmp_path: Path, using: MakeStoreCaller
) -> None:
    path = tmp_path / "memory.db"
    _damaged(path, column, value)
    before = _turns(path)
    store = SQLiteStore(path)
    used = using(store, mode)
    memory = ConversationMemory(store=store)
    with pytest.raises(CorruptDataError, match="conversation 'chat' is damaged"):
        if mode is Mode.BLOCKING:
            memory.add_turn("chat", "next", "answer")
        else:
            used.runner.run(asyncio.wait_for(memory.async_add_turn("chat", "next", "answer"), 30))
    assert _turns(path) == before


@pytest.mark.parametrize(("column", "value"), [("turns", "x"), ("evicted_turns", 1.5), ("summary", b"x")])
def test_reading_a_conversation_with_damaged_counts_is_an_error(column: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    _damaged(path, column, value)
    with SQLiteStore(path) as store:
        memory = ConversationMemory(store=store)
        for read in (memory.get_summary, memory.get_window, memory.get_total_tokens):
            with pytest.raises(CorruptDataError, match="conversation 'chat' is damaged"):
                read("chat")

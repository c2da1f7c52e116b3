"""Records of flushes that somebody has damaged: one error, and no endless loop."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from firefly_memory import ConversationMemory, SQLiteStore
from firefly_memory.errors import CorruptDataError
from firefly_memory.strategies import NeuralyzerStrategy


@pytest.mark.parametrize(
    ("change", "reason"),
    [("previous = flush_id", "before itself"), ("created_at = 'x'", "created_at|instant|isoformat|read")],
)
def test_a_damaged_chain_is_an_error(change: str, reason: str, new_sqlite_file: Path, tmp_path: Path) -> None:
    file = shutil.copy(new_sqlite_file, tmp_path / "memory.db")
    with SQLiteStore(file) as store:
        memory = ConversationMemory(
            store=store, long_term=[NeuralyzerStrategy(interaction_threshold_qty=2, interaction_keep=1)]
        )
        name = memory.new_conversation()
        for number in range(3):
            memory.add_turn(name, f"question {number}", "answer")
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(f"UPDATE memory_flushes SET {change}")
        with pytest.raises(CorruptDataError, match=reason):
            memory.list_flushes(name)

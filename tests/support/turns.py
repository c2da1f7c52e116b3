"""Turns for tests of conversations, asked for without a ``ConversationMemory``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from firefly_memory import ConversationTurn
from firefly_memory.conversations.log import Flush, Flushed, StoredTurn
from firefly_memory.identifiers import new_entry_id

NOW = datetime(2024, 5, 6, 7, 8, 9, 123_456, UTC)


def a_turn(prompt: str = "", *, tokens: int = 10, key: str | None = None, at: datetime = NOW) -> StoredTurn:
    metadata = {"number": 2**40, "nested": [{"~dict": [["$a", 1]]}]}
    return StoredTurn(-1, tokens, prompt, "", "[1]", "json", metadata, key, new_entry_id(), at)


def new_id() -> str:
    return f"conversation {uuid4().hex}"


def is_gap_free(turns: Sequence[StoredTurn] | Sequence[ConversationTurn]) -> bool:
    return [turn.turn_id for turn in turns] == list(range(len(turns)))


def a_flush(claim: str, summary: str | None, turns: int, tokens: int, *, dropped: int = 0) -> tuple[Flush, Flushed]:
    """The first flush of a conversation, under a claim: of its first ``turns`` turns, which have so many ``tokens``."""
    flush = Flush(claim, None, "test", turns, 0, 0, None, NOW)
    return flush, Flushed(turns, tokens, summary, dropped, None)

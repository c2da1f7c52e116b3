"""Token sums are exact whole numbers in every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConversationMemory,
    CorruptDataError,
    EntryStore,
    InvalidEntryError,
    SQLiteStore,
    TokenEstimator,
)
from firefly_memory.conversations.log import MOST_TOKENS
from tests.support.databases import execute


@dataclass(frozen=True)
class Fixed(TokenEstimator):
    """Every turn costs the same."""

    tokens: Any = 1

    def estimate_turn(self, user_prompt: str, assistant_response: str, raw_messages: Sequence[Any] = ()) -> Any:
        return self.tokens


async def test_the_largest_token_counts_have_an_exact_sum(store: EntryStore) -> None:
    memory = ConversationMemory(store=store, estimator=Fixed(tokens=MOST_TOKENS))
    for _ in range(3):
        await memory.async_add_turn("c", "p", "a")
    assert await memory.async_get_total_tokens("c") == 3 * MOST_TOKENS
    assert [turn.token_estimate for turn in await memory.async_get_turns("c")] == [MOST_TOKENS] * 3


@pytest.mark.parametrize("tokens", [MOST_TOKENS + 1, 2**63, 10**1000, 1.5, float("inf"), "12", None])
async def test_an_invalid_token_estimate_is_refused(tokens: Any, store: EntryStore) -> None:
    memory = ConversationMemory(store=store, estimator=Fixed(tokens=tokens))
    with pytest.raises(InvalidEntryError, match="token_estimate"):
        await memory.async_add_turn("c", "p", "a")
    assert not await memory.async_list_conversations()


def test_on_sqlite_a_damaged_sum_does_not_become_a_float(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with SQLiteStore(tmp_path / "memory.db") as store:
        memory = ConversationMemory(store=store)
        memory.add_turn("c", "p", "a")
        execute(url, f"UPDATE memory_conversations SET tokens = {2**63 - 1}")
        with pytest.raises(CorruptDataError, match=r"conversation 'c'.*64 bits"):
            memory.add_turn("c", "p", "a")
        assert len(memory.get_turns("c")) == 1
        assert memory.get_total_tokens("c") == 2**63 - 1

"""How many of the oldest turns are summarized."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from firefly_memory import ConversationTurn
from firefly_memory.conversations.policy import how_many_to_evict

CALL = [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]}]
RESULT = [{"role": "tool", "tool_call_id": "1", "content": "x"}]


def turns_with(**messages: list[Any]) -> list[ConversationTurn]:
    """Six turns of ten tokens; ``at_2=…`` are the messages of the turn with number 2."""
    now = datetime(2024, 5, 6, tzinfo=UTC)
    return [
        ConversationTurn(
            turn_id=number,
            user_prompt="p",
            assistant_response="a",
            token_estimate=10,
            raw_messages=messages.get(f"at_{number}", []),
            created_at=now,
        )
        for number in range(6)
    ]


@pytest.mark.parametrize(("due", "count"), [(1, 1), (10, 1), (11, 2), (20, 2), (60, 6), (1000, 6)])
def test_as_many_turns_as_have_the_tokens(due: int, count: int) -> None:
    assert how_many_to_evict(turns_with(), 6, due, overdue=False) == count


@pytest.mark.parametrize(("due", "count"), [(10, 1), (20, 2), (21, 4), (30, 4), (31, 4), (41, 5)])
def test_a_call_and_its_result_go_or_stay_together(due: int, count: int) -> None:
    """The call is in turn 2 and its result in turn 3: one may stop before turn 2 and after turn 3."""
    assert how_many_to_evict(turns_with(at_2=CALL, at_3=RESULT), 6, due, overdue=False) == count


@pytest.mark.parametrize(("overdue", "count"), [(False, 2), (True, 6)])
def test_an_open_call_stays_until_too_much_is_due(overdue: bool, count: int) -> None:
    assert how_many_to_evict(turns_with(at_2=CALL), 6, 60, overdue=overdue) == count


def test_no_more_turns_than_are_allowed() -> None:
    assert how_many_to_evict(turns_with(), 3, 60, overdue=True) == 3
    assert how_many_to_evict(turns_with(at_2=CALL, at_3=RESULT), 3, 60, overdue=True) == 2

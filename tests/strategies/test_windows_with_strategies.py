"""What a short-term strategy leaves of a stored conversation."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from firefly_memory import ConversationMemory, TokenEstimator
from firefly_memory.messages.shapes import role_of
from firefly_memory.messages.tool_links import links_of
from firefly_memory.strategies import MemoryMaxTokensStrategy, NeuralyzerStrategy

TEXTS = st.sampled_from(["", "a", "hello world", "word " * 30, "Found in memory:\n- x", "\ud800"])
CALLS = st.sampled_from(["1", "2", "3"])
CONDITIONS = [
    "message.role != 'tool'",
    "message.role == 'user'",
    "message.role == 'system'",
    "'hello' in (message.content or '')",
]


def _call(text: str, call_id: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": text}
    return {"role": "assistant", "content": text, "tool_calls": [{"id": call_id, "function": function}]}


MESSAGES = st.one_of(
    st.builds(
        lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant", "system"]), TEXTS
    ),
    st.builds(_call, TEXTS, CALLS),
    st.builds(lambda call_id, text: {"role": "tool", "tool_call_id": call_id, "content": text}, CALLS, TEXTS),
    st.sampled_from(["a", "b", 1, None]),
)
TURNS = st.lists(st.tuples(TEXTS, TEXTS, st.lists(MESSAGES, max_size=6)), max_size=6)


@given(
    turns=TURNS,
    budget=st.integers(-1, 120),
    outer=st.integers(1, 200),
    conditions=st.lists(st.sampled_from(CONDITIONS), max_size=2),
    is_flushed=st.booleans(),
)
def test_no_window_exceeds_a_budget_or_parts_a_call_from_its_result(
    turns: list[Any], budget: int, outer: int, conditions: list[str], is_flushed: bool
) -> None:
    memory = ConversationMemory(long_term=[NeuralyzerStrategy(interaction_threshold_qty=4, interaction_keep=2)])
    for prompt, response, messages in turns:
        memory.add_turn("c", prompt, response, messages, summarize=is_flushed)
    strategy = MemoryMaxTokensStrategy(memory_max_tokens=budget, conditions=conditions)
    window = ConversationMemory(store=memory.store, short_term=[strategy], max_tokens=outer).get_window("c")
    assert TokenEstimator().estimate_messages(window.messages) <= outer
    assert window.tokens <= outer
    others = [message for message in window.messages if role_of(message) != "system"]
    assert TokenEstimator().estimate_messages(others) <= max(budget, 0)
    assert not links_of([window.messages]).orphans
    assert not any(phrase.startswith("-") for phrase in window.left_out)


def test_a_message_of_the_system_at_the_end_of_a_turn_does_not_hide_the_tokens_of_the_turn() -> None:
    memory = ConversationMemory(short_term=[MemoryMaxTokensStrategy(memory_max_tokens=5)])
    memory.add_turn("c", "", "", [{"role": "user", "content": "word " * 30}, {"role": "system", "content": "be kind"}])
    assert [message["role"] for message in memory.get_window("c").messages] == ["system"]


def test_a_turn_that_says_nothing_is_not_sent() -> None:
    memory = ConversationMemory(short_term=[MemoryMaxTokensStrategy(memory_max_tokens=-1)])
    memory.add_turn("c", "", "")
    window = memory.get_window("c")
    assert (window.turns, window.tokens) == ((), 0)


def test_a_shorter_turn_counts_no_more_than_the_whole_one() -> None:
    """The estimate of the whole turn was stored by another estimator."""
    low = ConversationMemory(estimator=_Nothing())
    low.add_turn("c", "", "", [{"role": "user", "content": "word " * 30}, {"role": "tool", "content": "x"}])
    strategy = MemoryMaxTokensStrategy(conditions=["message.role != 'tool'"])
    window = ConversationMemory(store=low.store, short_term=[strategy], max_tokens=10).get_window("c")
    assert (window.turns, window.tokens) == ((0,), 1)


class _Nothing(TokenEstimator):
    def estimate_turn(self, *_: Any) -> int:
        return 1

"""Conditions are evaluated and texts are split where only the extra ``strategies`` is installed."""

from __future__ import annotations

from firefly_memory.strategies import MemoryMaxTokensStrategy, MemoryProfile, TextSplitterConfig


def test_a_condition_leaves_out_messages() -> None:
    strategy = MemoryMaxTokensStrategy(conditions=["message.role in ['user', 'assistant']"])
    messages = [{"role": "user", "content": "a"}, {"role": "tool", "content": "b", "tool_call_id": "1"}]
    assert strategy.apply(messages) == messages[:1]


def test_a_text_is_split() -> None:
    chunks = TextSplitterConfig(chunk_size=20, chunk_overlap=5).split("The first sentence. The second sentence.")
    assert max(map(len, chunks)) <= 20
    assert chunks[0] == "The first"


def test_a_profile_is_loaded_from_json() -> None:
    strategy = '{"memory_strategy_id": "max_tokens", "conditions": ["message.role"]}'
    profile = MemoryProfile.model_validate_json(f'{{"short_term_memory_strategy": [{strategy}]}}')
    assert profile.short_term_memory_strategy == [MemoryMaxTokensStrategy(conditions=["message.role"])]

"""Memory strategies and memories of teams are read from YAML where only the extra ``yaml`` is installed."""

from __future__ import annotations

from pathlib import Path

from firefly_memory.feeds import SharedInMemoryMemory, load_memory
from firefly_memory.strategies import MemoryMaxTokensStrategy, MemoryProfile


def test_a_profile_is_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "memory.yaml"
    path.write_text("short_term_memory_strategy:\n  - memory_strategy_id: max_tokens\n    memory_max_tokens: 8000\n")
    expected = [MemoryMaxTokensStrategy(memory_max_tokens=8000)]
    assert MemoryProfile.from_file(path).short_term_memory_strategy == expected


def test_a_memory_is_read_from_yaml() -> None:
    text = "memory: {$preset: worker, agent_key: worker_1}"
    assert isinstance(load_memory(text, context={"JOB_ID": "job-7"}, env={}), SharedInMemoryMemory)

"""Memory strategies are read from YAML where only the extra ``yaml`` is installed."""

from __future__ import annotations

from pathlib import Path

from firefly_memory.strategies import MemoryMaxTokensStrategy, MemoryProfile


def test_a_profile_is_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "memory.yaml"
    path.write_text("short_term_memory_strategy:\n  - memory_strategy_id: max_tokens\n    memory_max_tokens: 8000\n")
    expected = [MemoryMaxTokensStrategy(memory_max_tokens=8000)]
    assert MemoryProfile.from_file(path).short_term_memory_strategy == expected

"""The configurations on the page about strategies, as they stand."""

from __future__ import annotations

import json

import pytest

from firefly_memory.strategies import MemoryProfile
from tests.support.documentation import ROOT, Block, blocks

PAGE = ROOT / "docs" / "strategies.md"
CONFIGURATIONS = [block for block in blocks(PAGE) if block.language == "json"]


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=str)
def test_a_configuration_of_the_page_is_loaded(block: Block) -> None:
    strategy = json.loads(block.text)
    kind = "short_term" if "memory_strategy_id" in strategy else "long_term"
    profile = MemoryProfile.model_validate({f"{kind}_memory_strategy": [strategy]})
    assert MemoryProfile.model_validate_json(profile.model_dump_json()) == profile


def test_the_page_has_a_configuration_of_each_strategy() -> None:
    text = "".join(block.text for block in CONFIGURATIONS)
    assert all(f'"{name}"' in text for name in ("max_tokens", "summarizer", "neuralyzer"))

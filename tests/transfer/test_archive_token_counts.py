"""Token counts of turns in an archive have lower and upper bounds."""

from __future__ import annotations

import io
from typing import Any

import pytest

from firefly_memory import ConversationMemory, CorruptDataError, InMemoryStore, TokenEstimator
from firefly_memory.archive import export_jsonl, import_jsonl
from tests.support.archive_lines import of_turns, window_of


@pytest.mark.parametrize("said", [0, 1, 100])
@pytest.mark.parametrize(
    "turn",
    [
        {"user_prompt": "word " * 20_000},
        {"user_prompt": "中文句子" * 5_000},
        {"raw_messages": [{"role": "user", "content": "word " * 20_000}]},
        {"raw_messages": [{"role": "user", "content": [{"type": "text", "text": "a b c " * 20_000}]}]},
        {"user_prompt": "x" * 2_000_000},
    ],
    ids=["prompt", "Chinese", "message", "parts", "one letter"],
)
def test_an_imported_turn_counts_at_least_a_quarter_of_its_estimate(turn: dict[str, Any], said: int) -> None:
    tokens, _ = window_of(of_turns({**turn, "token_estimate": said}))
    whole, _ = window_of(of_turns({**turn, "token_estimate": None}))
    assert whole / 5 < tokens <= whole


def test_token_counts_of_an_archive_are_used_within_these_bounds() -> None:
    text = "word " * 1_000
    worth = TokenEstimator().estimate_turn(text, "a")
    for said in (worth, worth // 2, worth * 10, 2**31 - 2):
        assert window_of(of_turns({"user_prompt": text, "token_estimate": said}))[0] == said
    with pytest.raises(CorruptDataError, match=r"line 3 .*not above"):
        window_of(of_turns({"token_estimate": 2**31 - 1}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " " * 5_000,
        "=" * 5_000,
        "x" * 5_000,
        "\n" * 5_000,
        "word " * 900,
        "中文" * 900,
        "\U0001f600" * 900,
        "0" * 900,
    ],
    ids=lambda text: repr(text[:4]),
)
def test_an_honest_archive_comes_back_equal(text: str) -> None:
    with InMemoryStore() as store, InMemoryStore() as other:
        memory = ConversationMemory(store=store)
        memory.add_turn("c", text, text)
        memory.add_turn("c", text, text, [{"role": "user", "content": text}])
        file = io.StringIO()
        export_jsonl(store, file)
        import_jsonl(other, io.StringIO(file.getvalue()))
        assert ConversationMemory(store=other).get_turns("c") == memory.get_turns("c")

"""Tokens are counted where only the extra ``tokens`` is installed."""

from __future__ import annotations

from firefly_memory import ConversationMemory, TokenEstimator
from firefly_memory.tokens import PER_MESSAGE

TEXT = "How many tokens does this have?"


def test_tokens_are_counted() -> None:
    estimator = TokenEstimator(model="openai:gpt-4o")
    assert estimator.prepare()
    assert estimator.estimate(TEXT) == 7
    turn = ConversationMemory(estimator=estimator).add_turn("c", TEXT, TEXT)
    assert turn.token_estimate == 2 * (PER_MESSAGE + 7)

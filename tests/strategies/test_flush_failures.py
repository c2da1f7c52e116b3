"""Flushes in trouble: a model that hangs, an answer that is no text, a caller that goes away, a very long conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import ConfigurationError, ConversationMemory, EntryStore, InMemoryStore
from firefly_memory.strategies import LongTermMemoryStrategyBase, NeuralyzerStrategy, SummarizerStrategy, stored
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory, Words
from tests.support.flushing import Summaries, add_turns, summarizer

Make = Callable[..., Memory]


@pytest.fixture(params=list(Mode))
def make(request: pytest.FixtureRequest) -> Make:
    """Makes a ``ConversationMemory`` all of whose methods are to be awaited."""
    return lambda **options: Memory(ConversationMemory(**options), request.param)


class Hanging:
    """A model that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.model = FunctionModel(self._respond)

    async def _respond(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    @property
    def strategy(self) -> SummarizerStrategy:
        return SummarizerStrategy(model=self.model, interaction_threshold_qty=3, interaction_keep=1, cod_max_loops=1)


class Answering(LongTermMemoryStrategyBase):
    """Replaces the oldest turns by ``answer``."""

    long_term_memory_id: str = "answering"
    interaction_threshold_qty: int = 3
    answer: Any

    async def async_apply(self, messages: Any, **_: Any) -> list[Any]:
        return list(messages)

    async def async_summary(self, messages: Any, *, earlier: str | None = None) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


async def test_a_model_that_hangs_is_given_up_when_another_writer_may_try(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "LEASE", timedelta(milliseconds=20))
    errors: list[Exception] = []
    memory = make(long_term=[Hanging().strategy], on_error=lambda error, _: errors.append(error))
    await add_turns(memory, 0, 3)
    assert "there was no summary after" in str(errors[0])
    assert (await memory.get_window("c")).turns == (0, 1, 2)


async def test_an_error_of_the_application_is_reported_as_it_is(make: Make) -> None:
    errors: list[Exception] = []
    strategy = Answering(answer=TimeoutError("of the application"))
    memory = make(long_term=[strategy], on_error=lambda error, _: errors.append(error))
    await add_turns(memory, 0, 3)
    assert [str(error) for error in errors] == ["of the application"]


async def test_a_cancelled_caller_leaves_no_claim_behind(store: EntryStore) -> None:
    hanging = Hanging()
    memory = ConversationMemory(store=store, long_term=[hanging.strategy])
    for number in range(2):
        await memory.async_add_turn("c", f"question {number}", "an answer")
    adding = asyncio.create_task(memory.async_add_turn("c", "question 2", "an answer"))
    await hanging.asked.wait()
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert len(await memory.async_get_turns("c")) == 3, "the turn is stored"
    other = ConversationMemory(store=store, long_term=[summarizer(Summaries())])
    await other.async_summarize("c")
    assert await other.async_get_summary("c") == "summary 1", "nobody waits until a lease has ended"


@pytest.mark.parametrize("answer", ["", " \n", 5, b"text", ["text"]])
async def test_an_answer_without_text_changes_nothing(make: Make, answer: object) -> None:
    errors: list[Exception] = []
    memory = make(long_term=[Answering(answer=answer)], on_error=lambda error, _: errors.append(error))
    await add_turns(memory, 0, 3)
    assert "instead of text or None" in str(errors[0])
    window = await memory.get_window("c")
    assert (window.turns, window.summary) == ((0, 1, 2), None)


async def test_a_summary_that_cancels_itself_does_not_cancel_the_turn(make: Make) -> None:
    errors: list[Exception] = []
    strategy = Answering(answer=asyncio.CancelledError())
    memory = make(long_term=[strategy], on_error=lambda error, _: errors.append(error))
    await add_turns(memory, 0, 3)
    assert len(errors) == 1
    assert (await memory.get_window("c")).turns == (0, 1, 2)


async def test_a_very_long_conversation_is_summarized_in_parts(make: Make) -> None:
    store, summaries = InMemoryStore(), Summaries()
    plain = make(store=store, estimator=Words())
    for number in range(30):
        await plain.add_turn("c", f"question {number}", "word " * 9_000)
    memory = make(store=store, estimator=Words(), long_term=[summarizer(summaries)])
    await add_turns(memory, 30, 31)
    (flush,) = await memory.list_flushes("c")
    assert (flush.first_turn, flush.turns) == (0, 8), "64,000 tokens, and the rest of a turn"
    assert len(summaries.prompts) == 1
    await add_turns(memory, 31, 34)
    assert [each.turns for each in await memory.list_flushes("c")] == [9, 8, 8, 8]
    assert (await memory.get_window("c")).turns == (33,)
    high = make(store=store, estimator=Words(), long_term=[summarizer(summaries, interaction_threshold_tokens=10**6)])
    await high.restore_flush("c", (await high.list_flushes("c"))[-1].flush_id)
    await high.summarize("c")
    assert (await high.get_window("c")).turns == (33,), "the threshold says what a model can read"


async def test_what_calls_no_model_takes_all_turns_at_once(make: Make) -> None:
    store = InMemoryStore()
    plain = make(store=store, estimator=Words())
    for number in range(30):
        await plain.add_turn("c", f"question {number}", "word " * 9_000)
    memory = make(store=store, long_term=[NeuralyzerStrategy(interaction_threshold_qty=3, interaction_keep=1)])
    await memory.summarize("c")
    assert (await memory.get_window("c")).turns == (29,)


def test_a_class_in_place_of_a_strategy_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="long_term must be a list of long-term strategies"):
        ConversationMemory(long_term=[NeuralyzerStrategy])  # type: ignore[list-item]

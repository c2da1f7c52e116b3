"""Strategies on stored conversations: what leaves the window, what is sent of it, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from firefly_memory import ConfigurationError, ConversationMemory, EntryStore, MemoryManager
from firefly_memory.errors import TurnsDroppedError, UnknownConversationError, UnknownFlushError
from firefly_memory.strategies import MemoryMaxTokensStrategy, MemoryProfile, NeuralyzerStrategy
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from firefly_memory.testing.clock import stopped
from tests.support.flushing import Summaries, add_turns, summarizer

Make = Callable[..., Memory]


@pytest.fixture(params=list(Mode))
def make(store: EntryStore, request: pytest.FixtureRequest) -> Make:
    """Makes a ``ConversationMemory`` all of whose methods are to be awaited."""
    return lambda **options: Memory(ConversationMemory(store=store, **options), request.param)


async def test_a_summary_replaces_the_oldest_turns_and_they_stay_stored(make: Make) -> None:
    summaries = Summaries()
    memory = make(long_term=[summarizer(summaries)])
    await add_turns(memory, 0, 2)
    assert (await memory.get_window("c")).turns == (0, 1), "two turns are too few"
    await add_turns(memory, 2, 3)
    window = await memory.get_window("c")
    assert (window.turns, window.summary) == ((2,), "summary 1")
    assert [turn.user_prompt for turn in await memory.get_turns("c")] == ["question 0", "question 1", "question 2"]
    assert "question 0" in summaries.prompts[0]
    assert "question 2" not in summaries.prompts[0], "it is kept"


async def test_an_earlier_summary_is_part_of_the_next_one_and_older_ones_stay(make: Make) -> None:
    summaries = Summaries("Ada is a poet.", "Ada is a poet of Lyon.")
    memory = make(long_term=[summarizer(summaries)])
    await add_turns(memory, 0, 5)
    assert "Ada is a poet." in summaries.prompts[1]
    newest, oldest = await memory.list_flushes("c")
    assert (oldest.first_turn, oldest.turns, oldest.summary) == (0, 2, "Ada is a poet.")
    assert (newest.first_turn, newest.turns, newest.summary) == (2, 2, "Ada is a poet of Lyon.")
    assert [each.strategy for each in (newest, oldest)] == ["summarizer"] * 2
    assert await memory.list_flushes("c", limit=1) == [newest]
    assert await memory.list_flushes("another") == []


async def test_a_flush_is_restored_with_those_after_it(make: Make) -> None:
    memory = make(long_term=[summarizer(Summaries("one", "two", "three"))])
    await add_turns(memory, 0, 7)
    third, second, first = await memory.list_flushes("c")
    await memory.restore_flush("c", second.flush_id)
    window = await memory.get_window("c")
    assert (window.turns, window.summary) == ((2, 3, 4, 5, 6), "one")
    assert [each.flush_id for each in await memory.list_flushes("c")] == [first.flush_id]
    await memory.restore_flush("c", third.flush_id)  # was restored with the second
    assert (await memory.get_window("c")).summary == "one"
    await memory.restore_flush("c", first.flush_id)
    window = await memory.get_window("c")
    assert (window.turns, window.summary) == (tuple(range(7)), None)
    with pytest.raises(UnknownFlushError, match="has no flush 'nothing'"):
        await memory.restore_flush("c", "nothing")
    with pytest.raises(UnknownConversationError):
        await memory.restore_flush("another", first.flush_id)


async def test_a_neuralyzer_erases_turns_from_prompts_and_they_can_be_restored(make: Make) -> None:
    memory = make(long_term=[NeuralyzerStrategy(interaction_threshold_qty=3, interaction_keep=1)])
    await add_turns(memory, 0, 3)
    window = await memory.get_window("c")
    assert (window.turns, window.summary, window.left_out) == ((2,), None, ("2 turns that were erased",))
    assert len(await memory.get_turns("c")) == 3
    (flush,) = await memory.list_flushes("c")
    assert (flush.strategy, flush.summary) == ("neuralyzer", None)
    await memory.restore_flush("c", flush.flush_id)
    assert (await memory.get_window("c")).turns == (0, 1, 2)


async def test_a_neuralyzer_that_deletes_leaves_nothing_to_restore(make: Make) -> None:
    memory = make(long_term=[NeuralyzerStrategy(interaction_threshold_qty=3, interaction_keep=1, delete=True)])
    await add_turns(memory, 0, 2)
    await memory.add_turn("c", "question 2", "answer 2", idempotency_key="k")
    assert [turn.turn_id for turn in await memory.get_turns("c")] == [2]
    await add_turns(memory, 3, 4)
    window = await memory.get_window("c")
    assert window.turns == (2, 3), "the numbers go on"
    (flush,) = await memory.list_flushes("c")
    with pytest.raises(TurnsDroppedError, match="delete=True"):
        await memory.restore_flush("c", flush.flush_id)
    assert (await memory.list_conversations())[0].dropped_turns == 2


async def test_keeping_nothing_keeps_nothing(make: Make) -> None:
    memory = make(long_term=[summarizer(Summaries("all of it"), interaction_keep=0)])
    await add_turns(memory, 0, 3)
    window = await memory.get_window("c")
    assert (window.turns, window.summary) == ((), "all of it")
    await add_turns(memory, 3, 4)
    assert (await memory.get_window("c")).turns == (3,)


async def test_a_short_term_strategy_changes_what_is_sent_and_nothing_stored(make: Make) -> None:
    await add_turns(make(), 0, 4)
    tokens = (await make().get_window("c")).tokens
    memory = make(short_term=[MemoryMaxTokensStrategy(memory_max_tokens=tokens // 2)])
    window = await memory.get_window("c")
    assert window.turns == (2, 3)
    assert window.tokens <= tokens // 2
    assert "MemoryMaxTokensStrategy" in window.left_out[0]
    assert (await make().get_window("c")).turns == (0, 1, 2, 3)
    assert (await make(short_term=[MemoryMaxTokensStrategy(memory_max_tokens=-1)]).get_window("c")).messages == []


async def test_conditions_leave_out_messages_of_stored_turns(make: Make) -> None:
    messages = [
        {"role": "user", "content": "what is the weather?"},
        {"role": "assistant", "content": "I look", "tool_calls": [{"id": "t", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "t", "content": "rain " * 50},
        {"role": "assistant", "content": "It rains."},
    ]
    await make().add_turn("c", "what is the weather?", "It rains.", messages)
    await make().add_turn("c", "thanks", "")
    memory = make(short_term=[MemoryMaxTokensStrategy(conditions=["message.role != 'tool'"])])
    window = await memory.get_window("c")
    assert [message["content"] for message in window.messages] == [
        "what is the weather?",
        "I look",
        "It rains.",
        "thanks",
    ]
    assert "tool_calls" not in window.messages[1]
    assert window.tokens < (await make().get_window("c")).tokens
    assert (await make().get_turns("c"))[0].raw_messages == messages


async def test_strategies_of_a_list_run_one_after_the_other(make: Make) -> None:
    summaries = Summaries()
    memory = make(
        long_term=[
            summarizer(summaries, interaction_threshold_qty=4, interaction_keep=3),
            NeuralyzerStrategy(interaction_threshold_qty=6, interaction_keep=2),
        ]
    )
    await add_turns(memory, 0, 4)
    assert (await memory.get_window("c")).summary == "summary 1"
    assert (await memory.get_window("c")).turns == (1, 2, 3)


async def test_the_last_run_of_each_strategy_is_kept_by_its_place(make: Make) -> None:
    """A tool's result that has triggered a run does not trigger the next one, though its turn is kept."""
    summaries = Summaries()
    strategy = summarizer(summaries, interaction_threshold_qty=0, on_tools_success_threshold=["close_ticket"])
    memory = make(long_term=[NeuralyzerStrategy(), strategy])
    await add_turns(memory, 0, 2)
    assert summaries.prompts == []
    closing = [
        ModelRequest(parts=[UserPromptPart("close it")]),
        ModelResponse(parts=[ToolCallPart("close_ticket", {}, tool_call_id="t")]),
        ModelRequest(parts=[ToolReturnPart("close_ticket", "closed", tool_call_id="t")]),
        ModelResponse(parts=[TextPart("It is closed.")]),
    ]
    await memory.add_turn("c", "close it", "It is closed.", closing)
    assert len(summaries.prompts) == 1
    assert (await memory.get_window("c")).turns == (2,)
    await memory.add_turn("c", "a question", "an answer")
    assert len(summaries.prompts) == 1
    await memory.add_turn("c", "close the other", "It is closed.", closing)
    assert len(summaries.prompts) == 2


async def test_the_size_of_the_last_prompt_is_stored_with_its_turn_and_triggers(make: Make) -> None:
    summaries = Summaries()
    options = {"interaction_threshold_qty": 0, "interaction_threshold_tokens": 0}
    memory = make(long_term=[summarizer(summaries, input_tokens_threshold=1000, **options)])
    await add_turns(memory, 0, 2, input_tokens=1000)
    assert summaries.prompts == [], "it must be more"
    assert [turn.input_tokens for turn in await memory.get_turns("c")] == [1000, 1000]
    response = ModelResponse(parts=[TextPart("hello")], usage=RequestUsage(input_tokens=1001))
    await memory.add_turn("c", "hi", "hello", [ModelRequest(parts=[UserPromptPart("hi")]), response])
    assert len(summaries.prompts) == 1
    await add_turns(memory, 3, 5)
    assert len(summaries.prompts) == 1, "the newest turn reports nothing"


async def test_a_failing_model_loses_nothing_and_a_later_turn_tries_again(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    summaries = Summaries(RuntimeError("no network"), RuntimeError("still none"), "Ada.")
    errors: list[tuple[Exception, str]] = []
    memory = make(long_term=[summarizer(summaries)], on_error=lambda error, name: errors.append((error, name)))
    with stopped() as clock:
        await add_turns(memory, 0, 3)
        ((error, name),) = errors
        assert "no network" in str(error)
        assert name == "c"
        assert "summarizing conversation 'c' failed; nothing is lost" in caplog.text
        assert (await memory.get_window("c")).turns == (0, 1, 2)
        await add_turns(memory, 3, 4)
        assert len(summaries.prompts) == 1, "a pause comes first"
        clock.advance(seconds=6)
        await add_turns(memory, 4, 5)
        assert (len(summaries.prompts), len(errors)) == (2, 2)
        clock.advance(seconds=6)
        await add_turns(memory, 5, 6)
        assert len(summaries.prompts) == 2, "the pause grows"
        clock.advance(seconds=6)
        await add_turns(memory, 6, 7)
    window = await memory.get_window("c")
    assert (window.turns, window.summary) == ((6,), "Ada.")


async def test_the_passes_of_a_summary_are_reported(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    passes: list[tuple[int, int, str]] = []
    caplog.set_level("INFO", "firefly_memory")
    strategy = summarizer(Summaries(), cod_max_loops=3, on_pass=lambda *each: passes.append(each))
    await add_turns(make(long_term=[strategy]), 0, 3)
    assert passes == [(1, 3, "summary 1"), (2, 3, "summary 2"), (3, 3, "summary 3")]
    assert "summary: pass 3 of 3, 9 characters" in caplog.text
    assert "on_pass" not in strategy.model_dump()
    assert "on_pass" not in str(type(strategy).model_json_schema())


async def test_an_error_in_on_error_does_not_reach_the_turn(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("of the application")

    memory = make(long_term=[summarizer(Summaries(RuntimeError("no network")))], on_error=fail)
    await add_turns(memory, 0, 3)
    assert "on_error failed for conversation 'c'" in caplog.text
    assert len(await memory.get_turns("c")) == 3


async def test_a_flush_may_be_left_to_a_later_call(make: Make) -> None:
    summaries = Summaries()
    memory = make(long_term=[summarizer(summaries)])
    await add_turns(make(), 0, 2)
    turn = await memory.add_turn("c", "question 2", "answer 2", summarize=False)
    assert turn.summary_is_due
    await memory.summarize("c")
    await memory.summarize("c")
    assert len(summaries.prompts) == 1


def test_the_options_exclude_each_other() -> None:
    profile = MemoryProfile(long_term_memory_strategy=[NeuralyzerStrategy()])
    with pytest.raises(ConfigurationError, match="not both"):
        ConversationMemory(profile=profile, short_term=[MemoryMaxTokensStrategy()])
    with pytest.raises(ConfigurationError, match="summarizer and long_term"):
        ConversationMemory(profile=profile, summarizer=lambda _: "")
    with pytest.raises(ConfigurationError, match="short_term must be a list of short-term strategies"):
        ConversationMemory(short_term=[NeuralyzerStrategy()])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError, match="long_term must be a list of long-term strategies"):
        ConversationMemory(long_term=NeuralyzerStrategy())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="profile must be a MemoryProfile"):
        MemoryManager(profile={})  # type: ignore[arg-type]


async def test_a_manager_takes_a_profile_and_gives_a_copy_with_another() -> None:
    manager = MemoryManager(profile=MemoryProfile(long_term_memory_strategy=[NeuralyzerStrategy()]))
    for number in range(3):
        manager.add_turn("c", f"question {number}", "")
    assert len(manager.get_message_history("c")) == 3
    other = manager.with_strategies(short_term=[MemoryMaxTokensStrategy(memory_max_tokens=-1)])
    assert other.get_message_history("c") == []
    assert other.store is manager.store
    other.close_sync()
    assert len(manager.get_message_history("c")) == 3, "the copy closes nothing"

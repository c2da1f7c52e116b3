"""Strategies on the conversations of pydantic-ai's agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.exceptions import CallDeferred

from firefly_memory import ConfigurationError, EntryStore, MemoryManager
from firefly_memory.agents import FireflyAgent, Memory
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.reasoning import ReActPattern
from firefly_memory.strategies import KnowledgeBase, MemoryMaxTokensStrategy, MemoryProfile, NeuralyzerStrategy
from tests.support.flushing import Summaries, summarizer
from tests.support.scripted_model import Scripted, stored


async def _talk(agent: Agent[Any, Any], count: int, conversation_id: str = "c") -> None:
    for number in range(count):
        await agent.run(f"question {number}", conversation_id=conversation_id)


async def test_a_profile_of_the_capability_summarizes_what_agents_say(store: EntryStore) -> None:
    scripted, summaries = Scripted(), Summaries("Ada asked much.")
    profile = MemoryProfile(long_term_memory_strategy=[summarizer(summaries)])
    manager = MemoryManager(store=store)
    agent = Agent(scripted.model, capabilities=[Memory(manager, profile=profile)])
    await _talk(agent, 4)
    assert "Ada asked much." in scripted.instructions[-1]
    assert scripted.texts[-1] == ["question 2", "answer 3", "question 3"]
    assert len(manager.conversation.get_turns("c")) == 4
    assert manager.conversation.get_summary("c") == "Ada asked much."


async def test_a_result_of_a_tool_triggers_and_its_turn_is_whole() -> None:
    scripted = Scripted("hello", {"close": {}}, "closed", "bye")
    strategy = NeuralyzerStrategy(on_tools_success_threshold=["close"], interaction_keep=1)
    manager = MemoryManager()
    agent = FireflyAgent(name="desk", model=scripted.model, memory=Memory(manager, long_term=[strategy]))

    @agent.tool_plain
    def close() -> str:
        return "done"

    await _talk(agent, 3)
    assert scripted.texts[-1] == ["question 1", "done", "closed", "question 2"]


async def test_a_short_term_strategy_is_applied_once_for_the_history_of_a_run() -> None:
    scripted, manager = Scripted(), MemoryManager()
    await _talk(Agent(scripted.model, capabilities=[Memory(manager)]), 3)
    strategy = MemoryMaxTokensStrategy(memory_max_tokens=-1)
    await Agent(scripted.model, capabilities=[Memory(manager, short_term=[strategy])]).run("new", conversation_id="c")
    assert scripted.texts[-1] == ["new"]


async def test_a_plan_may_change_the_messages_of_each_request() -> None:
    """``apply`` is a function of messages, as ``Memory(strategies=[…])`` takes it."""
    scripted, manager = Scripted(), MemoryManager()
    await _talk(Agent(scripted.model, capabilities=[Memory(manager)]), 3)
    strategy = MemoryMaxTokensStrategy(memory_max_tokens=30)
    agent = Agent(scripted.model, capabilities=[Memory(manager, strategies=[strategy.apply])])
    await agent.run("new", conversation_id="c")
    assert scripted.texts[-1][-1] == "new"
    assert len(scripted.texts[-1]) < 7


STRICT = [
    MemoryMaxTokensStrategy(memory_max_tokens=-1),
    MemoryMaxTokensStrategy(conditions=["message.role == 'user'"]),
]


@pytest.mark.parametrize("strategy", STRICT, ids=["no budget", "only the user"])
async def test_a_turn_that_waits_for_a_tool_is_sent_whole(strategy: MemoryMaxTokensStrategy) -> None:
    scripted = Scripted("hello", {"ask": {}}, "thanks", "bye")
    memory = Memory(MemoryManager(), short_term=[strategy])
    agent = Agent(scripted.model, output_type=[str, DeferredToolRequests], capabilities=[memory])

    @agent.tool_plain
    def ask() -> str:
        raise CallDeferred

    await _talk(agent, 1)
    waiting = (await agent.run("ask somebody", conversation_id="c")).output
    assert isinstance(waiting, DeferredToolRequests)
    answers = DeferredToolResults(calls={waiting.calls[0].tool_call_id: "42"})
    await agent.run(conversation_id="c", deferred_tool_results=answers)
    assert scripted.texts[-1][-2:] == ["ask somebody", "42"]
    await agent.run("and now", conversation_id="c")
    assert "42" not in scripted.texts[-1]


async def test_a_turn_that_waits_is_sent_without_the_result_of_a_call_that_is_not() -> None:
    scripted = Scripted({"ask": {}}, {"ask": {}}, "thanks")
    memory = Memory(MemoryManager(), short_term=[STRICT[0]])
    agent = Agent(scripted.model, output_type=[str, DeferredToolRequests], capabilities=[memory])

    @agent.tool_plain
    def ask() -> str:
        raise CallDeferred

    waiting = (await agent.run("ask two people", conversation_id="c")).output
    for answer in ("first", "second"):
        assert isinstance(waiting, DeferredToolRequests)
        answers = DeferredToolResults(calls={waiting.calls[0].tool_call_id: answer})
        waiting = (await agent.run(conversation_id="c", deferred_tool_results=answers)).output
    assert waiting == "thanks"
    assert scripted.texts[-1] == ["second"]


@pytest.mark.parametrize("strategy", STRICT, ids=["no budget", "only the user"])
async def test_a_run_that_is_repeated_is_not_stored_twice(strategy: MemoryMaxTokensStrategy) -> None:
    scripted, manager = Scripted("hello", RuntimeError("no network"), "again"), MemoryManager()
    agent = Agent(scripted.model, capabilities=[Memory(manager, short_term=[strategy])])
    await _talk(agent, 1)
    with pytest.raises(RuntimeError):
        await agent.run("go", conversation_id="c", run_id="r")
    await agent.run("go", conversation_id="c", run_id="r")
    assert stored(manager) == [("question 0", "hello"), ("go", ""), ("", "again")]


async def test_reasoning_is_told_what_is_found_for_its_prompt() -> None:
    manager, scripted = MemoryManager(), Scripted("FINAL: Turing")
    KnowledgeStore(manager.store, embedder=None).add("sessions", Chunk("The cat is called Turing."))
    strategy = summarizer(Summaries(), knowledge_base=KnowledgeBase(collection_id="sessions"))
    agent = FireflyAgent(name="desk", model=scripted.model, memory=Memory(manager, long_term=[strategy]))
    await ReActPattern(max_steps=1).execute(agent, "What is the cat called?", conversation_id="c")
    assert "- The cat is called Turing." in scripted.instructions[0]
    assert "Turing." not in str(manager.conversation.get_turns("c"))


def test_the_strategies_of_the_capability_are_in_place_of_the_managers() -> None:
    manager = MemoryManager(long_term=[NeuralyzerStrategy(interaction_threshold_qty=1)])
    memory = Memory(manager, short_term=[MemoryMaxTokensStrategy()])
    assert memory.manager is not manager
    assert memory.manager.store is manager.store
    with pytest.raises(ConfigurationError, match="not both"):
        Memory(manager, profile=MemoryProfile(), short_term=[MemoryMaxTokensStrategy()])
    with_summarizer = MemoryManager(summarizer=lambda _: "")
    with pytest.raises(ConfigurationError, match="summarizer and long_term"):
        Memory(with_summarizer, long_term=[NeuralyzerStrategy()])


def test_the_environment_names_a_file_with_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "profile.json"
    strategy = {"long_term_memory_id": "neuralyzer", "interaction_threshold_qty": 2, "interaction_keep": 1}
    file.write_text(json.dumps({"long_term_memory_strategy": [strategy]}))
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_PROFILE", str(file))
    with MemoryManager.from_config() as manager:
        for number in range(2):
            manager.add_turn("c", f"question {number}", "")
        assert manager.conversation.get_window("c").turns == (1,)
    with MemoryManager.from_config(long_term=[]) as manager:
        for number in range(2):
            manager.add_turn("c", f"question {number}", "")
        assert manager.conversation.get_window("c").turns == (0, 1), "an argument takes the place of the variable"
    memory = Memory.from_spec("memory:", profile=str(file))
    assert memory.profile is not None
    file.write_text("{")
    with pytest.raises(ConfigurationError, match=r"FIREFLY_AGENTIC_MEMORY_PROFILE: .*profile\.json"):
        MemoryManager.from_config()
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_PROFILE", str(tmp_path / "missing.json"))
    with pytest.raises(ConfigurationError, match=r"FIREFLY_AGENTIC_MEMORY_PROFILE: .*missing\.json"):
        MemoryManager.from_config()

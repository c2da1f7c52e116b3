"""System prompts, facts in instructions, and the options of ``Memory``."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    RunContext,
)
from pydantic_ai.agent.spec import AgentSpec
from pydantic_ai.messages import (
    SystemPromptPart,
    TextPart,
)

from firefly_memory import (
    ConfigurationError,
    EntryStore,
    MemoryManager,
    SQLiteStore,
)
from firefly_memory.agents import FireflyAgent, Memory
from firefly_memory.agents.delegation import DelegationRouter
from firefly_memory.pipeline import PipelineEngine
from tests.support.scripted_model import TOLD, Scripted, stored


async def test_a_tools_system_prompt_does_not_replace_the_agents_own(manager: MemoryManager) -> None:
    scripted = Scripted({"verify": {}}, "verified", "again")
    agent = Agent(scripted.model, system_prompt="Never lend.", capabilities=[Memory(manager)])

    @agent.tool
    def verify(ctx: RunContext[None]) -> str:
        ctx.enqueue(SystemPromptPart("The user is verified."))
        return "ok"

    await agent.run("hi", conversation_id="c")
    await agent.run("lend me", conversation_id="c")
    first, *_ = scripted.asked[-1]
    assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt"]
    assert "The user is verified." in str(scripted.texts[-1])
    assert str(scripted.texts[-1]).count("Never lend.") == 1


async def test_each_agent_sends_its_own_system_prompt(manager: MemoryManager) -> None:
    translator = Scripted()
    agent = Agent(translator.model, system_prompt="Translate.", capabilities=[Memory(manager)])
    await agent.run("one", conversation_id="c")
    await agent.run("two", conversation_id="c")
    assert translator.texts[-1] == ["Translate.", "one", "answer 1", "two"]
    coder = Scripted()
    await Agent(coder.model, instructions="Code.", capabilities=[Memory(manager)]).run("three", conversation_id="c")
    assert "Translate." not in coder.texts[-1]
    assert coder.instructions == ["Code."]
    dynamic = Scripted()
    of_today = Agent(dynamic.model, capabilities=[Memory(manager)])
    of_today.system_prompt(lambda: f"prompt {len(dynamic.asked)}")
    for prompt in ("four", "five"):
        await of_today.run(prompt, conversation_id="c")
    assert [texts[0] for texts in dynamic.texts] == ["prompt 0", "prompt 1"]


async def test_a_deleted_fact_is_left_nowhere(store: EntryStore) -> None:
    manager = MemoryManager(store=store, summarize_threshold=10, summarizer=lambda _: "of old times")
    await manager.async_set_fact("secret", "4711")
    for instructions in ("Be brief.", None):
        scripted = Scripted({"recall": {"key": "secret"}}, "done")
        agent = Agent(scripted.model, instructions=instructions, capabilities=[Memory(manager, tools=True)])
        await agent.run("word " * 20, conversation_id="c")
        assert "- secret: 4711" in scripted.instructions[0]
        assert (instructions or "Working") in scripted.instructions[0]
    requests = [turn.raw_messages[0] for turn in manager.conversation.get_turns("c")]
    assert [request.instructions for request in requests] == [None, None]
    await Agent(Scripted().model, instructions="Be kind.", capabilities=[Memory(manager, context=False)]).run("x")
    (other,) = [name for name in manager.conversation.conversation_ids if name != "c"]
    assert manager.conversation.get_turns(other)[0].raw_messages[0].instructions == "Be kind."


async def test_a_fact_that_a_tool_sets_is_in_the_next_request(manager: MemoryManager) -> None:
    scripted = Scripted({"learn": {}}, "done")
    agent = Agent(scripted.model, capabilities=[Memory(manager)])

    @agent.tool_plain
    async def learn() -> str:
        await manager.async_set_fact("language", "pt")
        return "learnt"

    await agent.run("one", conversation_id="c")
    assert scripted.instructions == ["", f"{TOLD}- language: pt"]


async def test_facts_can_belong_to_a_conversation_or_to_a_user(manager: MemoryManager) -> None:
    def remembering() -> Scripted:
        return Scripted({"remember": {"key": "address", "value": "1 Main St"}}, "noted")

    agent: FireflyAgent[str, str] = FireflyAgent(name="a", memory=Memory(manager, tools=True), deps_type=str)
    await agent.run("I live here", model=remembering().model, conversation_id="ada", deps="")
    for conversation_id, told in (("ada", f"{TOLD}- address: 1 Main St"), ("bob", "")):
        scripted = Scripted()
        await agent.run("where?", model=scripted.model, conversation_id=conversation_id, deps="")
        assert scripted.instructions == [told]
    by_user = Memory(manager, tools=True, working_scope=lambda ctx: f"user {ctx.deps}")
    of_users: Agent[str, str] = Agent(deps_type=str, capabilities=[by_user])
    await of_users.run("I live here", model=remembering().model, deps="ada")
    for user, told in (("ada", f"{TOLD}- address: 1 Main St"), ("bob", "")):
        scripted = Scripted()
        await of_users.run("where?", model=scripted.model, deps=user)
        assert scripted.instructions == [told]
    assert manager.working.to_dict() == {}


async def test_the_model_is_asked_to_correct_an_invalid_key(manager: MemoryManager) -> None:
    scripted = Scripted({"remember": {"key": "", "value": "x"}}, {"recall": {"key": "k" * 600}}, "done")
    agent = Agent(scripted.model, capabilities=[Memory(manager, tools=True)])
    assert (await agent.run("one", conversation_id="c")).output == "done"
    said = " ".join(scripted.texts[-1])
    assert "must not be empty" in said
    assert "600 characters long" in said


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"tools": "no"}, "tools"),
        ({"context": 1}, "context"),
        ({"working_scope": "user"}, "working_scope"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Memory(MemoryManager(), **options)


def test_a_store_is_refused_as_a_manager(tmp_path: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"MemoryManager\(store="):
        Memory(SQLiteStore(tmp_path / "a.db"))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"MemoryManager\(store="):
        FireflyAgent(name="a", model="test", memory=SQLiteStore(tmp_path / "a.db"))  # type: ignore[arg-type]


async def test_two_memories_are_refused_whatever_they_are_called() -> None:
    one, other = MemoryManager(), MemoryManager()
    agent = Agent(Scripted().model, capabilities=[Memory(one, id="mine")])
    with pytest.raises(ConfigurationError, match="only one Memory capability; got 2"):
        await agent.run("one", conversation_id="c", capabilities=[Memory(other)])
    assert stored(one) == stored(other) == []


async def test_a_memory_among_the_capabilities_is_the_agents_memory() -> None:
    manager = MemoryManager()
    agent = FireflyAgent(name="a", model=Scripted().model, capabilities=[Memory(manager, max_tokens=10)])
    assert agent.memory is manager
    assert FireflyAgent(name="a", model="test").memory is None


def test_the_schema_of_agent_specs_knows_the_options() -> None:
    schema = str(AgentSpec.model_json_schema_with_capabilities([Memory]))
    for option in ("url", "working_scope", "max_tokens", "tools", "on_conflict"):
        assert f"'{option}'" in schema


async def test_a_successful_run_logs_nothing(manager: MemoryManager, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "firefly_memory")
    await Agent(Scripted().model, capabilities=[Memory(manager)]).run("one", conversation_id="c")
    assert caplog.record_tuples == []
    assert isinstance(manager.conversation.get_turns("c")[0].raw_messages[-1].parts[0], TextPart)


async def test_other_objects_than_strategies_and_steps_are_refused_with_a_hint(manager: MemoryManager) -> None:
    agent = FireflyAgent(name="a", model="test")
    wrong: Any
    for wrong in ([None], len):
        with pytest.raises(ConfigurationError, match="strategies must be"):
            Memory(manager, strategies=wrong)
    nothing: Any = lambda _: None  # noqa: E731
    silent = Agent(Scripted().model, capabilities=[Memory(manager, strategies=[nothing])])
    with pytest.raises(ConfigurationError, match="must return messages"):
        await silent.run("go", conversation_id="c")
    wrong = max
    with pytest.raises(ConfigurationError, match="select"):
        DelegationRouter([agent], wrong)
    wrong = agent
    with pytest.raises(ConfigurationError, match=r"AgentStep\(agent\)"):
        PipelineEngine([wrong])

"""Reasoning patterns: each run has a scope of its own, and one turn with the messages of all steps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelProfile, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from firefly_memory import (
    ConfigurationError,
    EntryStore,
    MemoryManager,
    SQLiteStore,
    StaleConversationError,
)
from firefly_memory.agents import FireflyAgent, Memory
from firefly_memory.errors import StepError
from firefly_memory.reasoning import (
    PlanAndExecutePattern,
    ReActPattern,
    ReasoningPattern,
    ReasoningStepDone,
    Thought,
)
from tests.support.cancellation import tasks_left
from tests.support.scripted_model import TOLD, Scripted

THINK = {"final_result": {"thought": "I need to look."}}


@pytest.fixture
def manager(store: EntryStore) -> MemoryManager:
    return MemoryManager(store=store, working_scope_id="main")


class Noting(ReActPattern):
    """Notes each step as a fact, as the documents do."""

    def before_step(self, state: dict[str, Any], name: str) -> None:
        state["memory"].working.set("at", name)

    async def after_step(self, state: dict[str, Any], step: ReasoningStepDone) -> None:
        await state["memory"].working.async_set(f"{step.name} asked", str(step.prompt))


async def test_the_documented_example_runs() -> None:
    class Pattern(PlanAndExecutePattern):
        def before_step(self, state: dict[str, Any], name: str) -> None:
            state["memory"].working.set("key", "value")

    pattern, agent, mgr = Pattern(), FireflyAgent(name="a", model=TestModel()), MemoryManager()

    result = await pattern.execute(agent, "Analyze this", memory=mgr)

    assert result.facts == {"key": "value"}
    assert [step.name for step in result.steps] == ["plan", "step 1", "answer"]
    assert result.output == result.steps[-1].output


async def test_react_thinks_and_acts_until_there_is_an_answer(manager: MemoryManager) -> None:
    scripted = Scripted(THINK, {"look": {}}, THINK, "it is there")
    agent: Agent[None, str] = Agent(scripted.model, name="a")

    @agent.tool_plain
    def look() -> str:
        return "seen"

    result = await ReActPattern().execute(agent, "Where is it?", memory=manager, conversation_id="c")
    assert result.output == "it is there"
    assert [(step.name, step.prompt) for step in result.steps] == [
        ("thought 1", "Where is it?"),
        ("thought 2", "Go on."),
        ("thought 3", "Go on."),
    ]
    assert result.steps[0].output == Thought(thought="I need to look.")
    (turn,) = manager.conversation.get_turns("c")
    assert (turn.user_prompt, turn.assistant_response) == ("Where is it?", "it is there")
    messages = [message for step in result.steps for message in step.result.new_messages()]
    assert turn.raw_messages == messages, "of all steps"
    assert scripted.texts[-1][:2] == ["Where is it?", "Final result processed."], "a step sees those before it"


async def test_plan_and_execute_runs_each_step_of_its_plan(manager: MemoryManager) -> None:
    plan = {"final_result": {"steps": ["boil water", "brew"]}}
    scripted = Scripted(plan, "it boils", "it is brewed", {"final_result": {"cups": 2}})

    class Tea(BaseModel):
        cups: int

    agent = Agent(scripted.model, output_type=Tea, name="a")
    result = await PlanAndExecutePattern().execute(agent, "Make tea.", memory=manager, conversation_id="c")
    assert result.output == Tea(cups=2), "the agent's own type"
    assert [(step.name, step.output) for step in result.steps][1:3] == [
        ("step 1", "it boils"),
        ("step 2", "it is brewed"),
    ]
    assert "Now do step 2 of the plan: brew" in scripted.texts[2]
    (turn,) = manager.conversation.get_turns("c")
    assert (turn.user_prompt, turn.assistant_response) == ("Make tea.", '{"cups":2}')
    assert len(turn.raw_messages) == 10


async def test_a_second_run_does_not_start_with_the_steps_of_the_first(manager: MemoryManager) -> None:
    manager.set_fact("of", "the parent")
    pattern = Noting()
    scripted = Scripted(THINK, "first", "second")
    agent = FireflyAgent(name="a", model=scripted.model, memory=manager)
    first = await pattern.execute(agent, "one", memory=manager)
    second = await pattern.execute(agent, "two", memory=manager)
    assert first.facts == {"at": "thought 2", "thought 1 asked": "one", "thought 2 asked": "Go on."}
    assert second.facts == {"at": "thought 1", "thought 1 asked": "two"}
    assert scripted.instructions[1:] == [
        f"{TOLD}- at: thought 2\n- thought 1 asked: one",
        f"{TOLD}- at: thought 1",
    ], "the model is told what hooks noted, in this run only"
    assert scripted.texts[2] == ["two"]
    assert manager.working.to_dict() == {"of": "the parent"}
    assert manager.store.namespaces("working:") == ["working:main"]
    assert agent.memory is manager


async def test_the_next_turn_of_a_conversation_sees_the_reasoning_and_no_system_prompt_twice(
    manager: MemoryManager,
) -> None:
    scripted = Scripted(THINK, "first", THINK, "second", "third")
    agent = Agent(scripted.model, name="a", system_prompt="Be brief.", capabilities=[Memory(manager)])
    await ReActPattern().execute(agent, "one", conversation_id="c")
    await ReActPattern().execute(agent, "two", conversation_id="c")
    await agent.run("three", conversation_id="c")
    assert [turn.user_prompt for turn in manager.conversation.get_turns("c")] == ["one", "two", "three"]
    assert scripted.texts[-1] == [
        "Be brief.", "one", "Final result processed.", "Go on.", "first", "two", "Final result processed.", "Go on.",
        "second", "three",
    ]  # fmt: skip


async def test_a_given_history_replaces_the_stored_one(manager: MemoryManager) -> None:
    scripted = Scripted("stored", "given", THINK, "done")
    agent = Agent(scripted.model, name="a", capabilities=[Memory(manager)])
    await agent.run("one", conversation_id="c")
    other = await agent.run("elsewhere")
    await ReActPattern().execute(agent, "two", conversation_id="c", message_history=other.all_messages())
    assert scripted.texts[-1] == ["elsewhere", "given", "two", "Final result processed.", "Go on."]


async def test_simultaneous_runs_are_separate(store: EntryStore) -> None:
    """Every run's model waits until all runs are at the same step."""
    barrier = asyncio.Barrier(20)

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await barrier.wait()
        return ModelResponse(parts=[TextPart(str(info.instructions))])

    class TwoSteps(ReasoningPattern):
        async def reason(self, state: dict[str, Any]) -> Any:
            state["memory"].working.set("prompt", state["prompt"])
            await self.step(state, "first", state["prompt"])
            return await self.step(state, "second", "Again.")

    pattern, manager = TwoSteps(), MemoryManager(store=store)
    agent = FireflyAgent(name="a", model=FunctionModel(respond), memory=manager)
    prompts = [f"prompt {number}" for number in range(20)]
    runs = (pattern.execute(agent, prompt, memory=manager, conversation_id="c") for prompt in prompts)
    results = await asyncio.gather(*runs)
    assert [result.output for result in results] == [f"{TOLD}- prompt: {prompt}" for prompt in prompts]
    assert store.namespaces("working:") == []
    turns = manager.conversation.get_turns("c")
    assert sorted(turn.user_prompt for turn in turns) == sorted(prompts)
    assert {len(turn.raw_messages) for turn in turns} == {4}


async def test_a_failed_run_is_stored_up_to_the_failure(manager: MemoryManager) -> None:
    scripted = Scripted(THINK, RuntimeError("the model is away"))
    agent = Agent(scripted.model, name="a")
    with pytest.raises(RuntimeError, match="the model is away"):
        await Noting().execute(agent, "one", memory=manager, conversation_id="c")
    (turn,) = manager.conversation.get_turns("c")
    assert (turn.user_prompt, turn.assistant_response) == ("one", "")
    assert len(turn.raw_messages) == 4
    assert manager.store.namespaces("working:") == []
    assert (await agent.run("two", conversation_id="c", capabilities=[Memory(manager)])).output == "answer 3"


async def test_a_cancelled_run_is_stored_up_to_the_cancellation(manager: MemoryManager) -> None:
    waiting = asyncio.Event()

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError

    agent = Agent(FunctionModel(respond), name="a")
    task = asyncio.ensure_future(Noting().execute(agent, "one", memory=manager, conversation_id="c"))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [turn.user_prompt for turn in manager.conversation.get_turns("c")] == ["one"]
    assert manager.store.namespaces("working:") == []
    assert tasks_left() == set()


async def test_the_agents_on_conflict_holds_for_the_whole_turn(manager: MemoryManager) -> None:
    class Interrupted(ReActPattern):
        async def after_step(self, state: dict[str, Any], step: ReasoningStepDone) -> None:
            await manager.async_add_turn("c", "another", "was faster")

    agent = FireflyAgent(name="a", model=Scripted().model, memory=manager, on_conflict="reject")
    with pytest.raises(StaleConversationError) as caught:
        await Interrupted().execute(agent, "one", conversation_id="c")
    assert caught.value.result == "answer 1"
    assert [turn.user_prompt for turn in manager.conversation.get_turns("c")] == ["another"]


async def test_an_error_is_raised_even_if_its_turn_cannot_be_stored(manager: MemoryManager, caplog: Any) -> None:
    class Broken(ReActPattern):
        async def after_step(self, state: dict[str, Any], step: ReasoningStepDone) -> None:
            await manager.async_add_turn("c", "another", "was faster")
            raise RuntimeError("of the hook")

    agent = FireflyAgent(name="a", model=Scripted().model, memory=manager, on_conflict="reject")
    with pytest.raises(RuntimeError, match="of the hook"):
        await Broken().execute(agent, "one", conversation_id="c")
    assert "was not stored" in caplog.text


async def test_a_pattern_ends_after_max_steps() -> None:
    scripted = Scripted(*[THINK] * 3)
    agent = Agent(scripted.model, name="a")
    with pytest.raises(StepError, match="no answer after 2 steps"):
        await ReActPattern(max_steps=2).execute(agent, "one")
    assert len(scripted.asked) == 2
    long = Agent(Scripted({"final_result": {"steps": ["a", "b", "c"]}}).model, name="a")
    with pytest.raises(StepError, match="3 steps, more than 2"):
        await PlanAndExecutePattern(max_steps=2).execute(long, "one")
    for pattern in (ReActPattern, PlanAndExecutePattern):
        with pytest.raises(ConfigurationError, match="max_steps"):
            pattern(max_steps=0)


async def test_an_answer_is_returned_although_the_store_was_closed(tmp_path: Any, caplog: Any) -> None:
    store = SQLiteStore(tmp_path / "memory.db")

    class Unplugging(ReActPattern):
        async def after_step(self, state: dict[str, Any], step: ReasoningStepDone) -> None:
            await store.close()

    agent = FireflyAgent(name="a", model=Scripted("the answer").model)
    result = await Unplugging().execute(agent, "one", memory=MemoryManager(store=store), conversation_id="c")
    assert (result.output, result.facts) == ("the answer", {})
    assert "was not stored" in caplog.text


async def test_the_conversation_id_new_starts_a_new_conversation_each_time(manager: MemoryManager) -> None:
    scripted = Scripted()
    agent = FireflyAgent(name="a", model=scripted.model, memory=manager)
    results = [await ReActPattern().execute(agent, prompt, conversation_id="new") for prompt in ("one", "two")]
    assert scripted.texts == [["one"], ["two"]]
    assert "new" not in {result.conversation_id for result in results}
    history = (await agent.run("three", conversation_id="c")).all_messages()
    assert (await ReActPattern().execute(agent, "four", message_history=history)).conversation_id == "c"


async def test_every_kind_of_output_type_works() -> None:
    class Fruit(BaseModel):
        name: str

    for output in (NativeOutput(Fruit), PromptedOutput([Fruit]), ToolOutput(Fruit), Fruit):
        asked: list[AgentInfo] = []

        def respond(messages: list[ModelMessage], info: AgentInfo, asked: list[AgentInfo] = asked) -> ModelResponse:
            asked.append(info)
            if info.output_tools:
                tool = next(each for each in info.output_tools if "name" in str(each.parameters_json_schema))
                return ModelResponse(parts=[ToolCallPart(tool.name, {"name": "fig"})])
            return ModelResponse(parts=[TextPart('{"result": {"kind": "Fruit", "data": {"name": "fig"}}}')])

        profile = ModelProfile(supports_json_schema_output=True)
        agent: Agent[None, Any] = Agent(FunctionModel(respond, profile=profile), name="a", output_type=output)
        result = await ReActPattern().execute(agent, "Which?")
        assert result.output == Fruit(name="fig")


async def test_a_memory_made_for_each_run_must_be_passed() -> None:
    manager = MemoryManager()
    agent: Agent[None, str] = Agent(Scripted().model, name="a", capabilities=[lambda _: Memory(manager)])
    with pytest.raises(ConfigurationError, match="memory="):
        await ReActPattern().execute(agent, "one")
    await ReActPattern().execute(agent, "one", memory=manager, conversation_id="c")
    assert len(manager.conversation.get_turns("c")) == 1


async def test_a_plan_without_a_prompt_has_one_step() -> None:
    result = await PlanAndExecutePattern().execute(FireflyAgent(name="a", model=TestModel()), None)
    assert [step.name for step in result.steps] == ["plan", "step 1", "answer"]


async def test_every_output_is_stored_as_text(manager: MemoryManager) -> None:
    class Odd(ReasoningPattern):
        async def reason(self, state: dict[str, Any]) -> Any:
            await self.step(state, "only", state["prompt"])
            return b"\xff"

    agent = FireflyAgent(name="a", model=Scripted().model, memory=manager)
    assert (await Odd().execute(agent, "one", conversation_id="c")).output == b"\xff"
    assert [turn.assistant_response for turn in manager.conversation.get_turns("c")] == ['"_w=="']

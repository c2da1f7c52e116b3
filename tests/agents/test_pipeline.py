"""Pipelines: steps share a memory, branches have forks of it, and only a merge function merges them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_graph import Graph

from firefly_memory import ConfigurationError, EntryStore, MemoryManager
from firefly_memory.agents import FireflyAgent, Memory
from firefly_memory.errors import StepError
from firefly_memory.pipeline import AgentStep, Parallel, PipelineEngine, PipelineStep, ReasoningStep
from firefly_memory.pipeline.context import PipelineContext
from firefly_memory.pipeline.steps import AnyStep
from firefly_memory.reasoning import ReActPattern
from tests.support.cancellation import tasks_left
from tests.support.scripted_model import TOLD, Scripted


@pytest.fixture
def manager(store: EntryStore) -> MemoryManager:
    return MemoryManager(store=store, working_scope_id="main")


def memory_of(context: PipelineContext) -> MemoryManager:
    assert context.memory is not None
    return context.memory


def returning(name: str, result: Any = None) -> PipelineStep:
    class Returning(PipelineStep):
        async def run(self, context: PipelineContext) -> Any:
            return result

    return Returning(name)


async def boom(context: PipelineContext) -> None:
    raise RuntimeError("out of paper")


def outputs(context: PipelineContext, branches: dict[str, PipelineContext]) -> dict[str, Any]:
    return {name: branch.output for name, branch in branches.items()}


async def test_the_documented_example_runs() -> None:
    agent = FireflyAgent(name="bot", model=Scripted("done", "done").model)
    engine = PipelineEngine([AgentStep(agent), ReasoningStep(ReActPattern(), agent, name="reasoning")])
    data, mgr = "an invoice", MemoryManager()

    ctx = PipelineContext(inputs=data, memory=mgr)
    result = await engine.run(context=ctx)

    assert result.output == "done"
    assert result.context is ctx
    assert ctx.results == {"bot": "done", "reasoning": "done"}
    assert isinstance(engine.graph, Graph)
    assert "bot --> reasoning" in engine.graph.render()


async def test_facts_and_outputs_go_from_step_to_step(manager: MemoryManager) -> None:
    async def extract(context: PipelineContext) -> dict[str, Any]:
        await memory_of(context).async_set_fact("doc_type", "invoice")
        return {"total": 5}

    class Check(PipelineStep):
        async def run(self, context: PipelineContext) -> bool:
            return bool(context.results["extract"]["total"] == 5 and context.inputs == "data")

    scripted = Scripted()
    agent = FireflyAgent(name="agent", model=scripted.model, memory=MemoryManager())
    asked = AgentStep(agent, lambda context: f"Is {context.output} true?", name="asked", instructions="Be brief.")
    context = PipelineContext(inputs="data", memory=manager, conversation_id="c")
    result = await PipelineEngine([extract, AgentStep(agent), Check("check"), asked]).run(context)
    assert context.results == {"extract": {"total": 5}, "agent": "answer 1", "check": True, "asked": "answer 2"}
    assert list(context.results) == ["extract", "agent", "check", "asked"]
    assert result.output == "answer 2"
    assert scripted.texts == [['{"total":5}'], ['{"total":5}', "answer 1", "Is True true?"]]
    assert scripted.instructions[0] == f"{TOLD}- doc_type: invoice"
    assert "Be brief." in scripted.instructions[1]
    assert len(manager.conversation.get_turns("c")) == 2
    assert agent.memory is not manager, "nothing is left on the agent"
    assert agent.memory is not None
    assert not agent.memory.conversation.conversation_ids
    assert manager.get_fact("doc_type") == "invoice", "not a branch: the memory itself"


async def test_without_a_memory_agents_use_their_own() -> None:
    own = MemoryManager()
    agent = Agent(Scripted().model, name="plain", capabilities=[Memory(own)])
    await PipelineEngine([AgentStep(agent, "one")]).run(PipelineContext(conversation_id="c"))
    assert [turn.user_prompt for turn in own.conversation.get_turns("c")] == ["one"]


async def test_reasoning_has_a_scope_of_its_own(manager: MemoryManager) -> None:
    manager.set_fact("of", "the pipeline")
    scripted = Scripted({"final_result": {"thought": "hm"}}, "so it is")
    agent = FireflyAgent(name="thinker", model=scripted.model)
    context = PipelineContext("why?", manager, "c")
    await PipelineEngine([ReasoningStep(ReActPattern(), agent)]).run(context)
    assert context.results == {"thinker": "so it is"}
    (turn,) = manager.conversation.get_turns("c")
    assert (turn.user_prompt, turn.assistant_response, len(turn.raw_messages)) == ("why?", "so it is", 5)
    assert scripted.instructions == ["", ""]
    assert manager.store.namespaces("working:") == ["working:main"]


# Branches


def noting(barrier: asyncio.Barrier) -> Callable[[PipelineContext], Any]:
    async def note(context: PipelineContext) -> dict[str, Any]:
        """What a branch's memory has after all branches have noted something."""
        memory = memory_of(context)
        await memory.async_set_fact("seen by", memory.working.scope_id)
        await barrier.wait()
        return await memory.working.async_to_dict()

    return note


async def test_branches_do_not_see_each_others_facts(store: EntryStore) -> None:
    """Twenty runs of three branches at once."""
    manager = MemoryManager(store=store, working_scope_id="main")
    manager.set_fact("of", "the pipeline")
    note = noting(asyncio.Barrier(60))
    engine = PipelineEngine([Parallel(dict.fromkeys("abc", note), merge=outputs)])
    contexts = [PipelineContext(number, manager) for number in range(20)]
    results = await asyncio.gather(*(engine.run(context) for context in contexts))
    seen = [facts for result in results for facts in result.output.values()]
    assert {len(facts) for facts in seen} == {1}, "its own fact and nothing else"
    assert len({facts["seen by"] for facts in seen}) == 60
    assert manager.working.to_dict() == {"of": "the pipeline"}
    assert store.namespaces("working:") == ["working:main"]
    assert [result.context for result in results] == contexts


async def test_only_merge_decides_which_facts_are_kept(manager: MemoryManager) -> None:
    async def price(context: PipelineContext) -> int:
        await memory_of(context).async_set_fact("price", 5)
        return 5

    async def tax(context: PipelineContext) -> int:
        await memory_of(context).async_set_fact("tax", 1)
        return 1

    async def merge(context: PipelineContext, branches: dict[str, PipelineContext]) -> int:
        await memory_of(context).async_set_fact("price", await memory_of(branches["price"]).async_get_fact("price"))
        assert all(branch.parent is context for branch in branches.values())
        return sum(int(branch.output) for branch in branches.values())

    pricing = Parallel({"price": [returning("before"), price], "tax": tax}, merge=merge, name="pricing")
    context = PipelineContext("data", manager)
    result = await PipelineEngine([returning("first", 1), pricing, returning("last", 2)]).run(context)
    assert result.context.results == {"first": 1, "pricing": 6, "last": 2}
    assert manager.working.to_dict() == {"price": 5}
    assert context.branches["pricing"]["price"].results == {"first": 1, "before": None, "price": 5}, "to be looked at"


@pytest.mark.parametrize("order", ["ab", "ba"])
async def test_the_order_in_which_branches_end_changes_nothing(order: str) -> None:
    done = {name: asyncio.Event() for name in "ab"}

    def ending(name: str) -> AnyStep:
        async def end(context: PipelineContext) -> str:
            if name != order[0]:
                await done[order[0]].wait()
            done[name].set()
            return name

        return end

    engine = PipelineEngine([Parallel({name: ending(name) for name in "ab"}, merge=outputs)])
    result = await engine.run(PipelineContext())
    assert list(result.output.items()) == [("a", "a"), ("b", "b")]


async def test_branches_can_be_nested(manager: MemoryManager) -> None:
    async def count(context: PipelineContext) -> Any:
        return await memory_of(context).working.async_increment("count")

    inner = Parallel({"x": count, "y": [count, returning("z", "last")]}, merge=outputs, name="inner")
    outer = Parallel({"l": [count, inner], "r": count}, merge=outputs, name="outer")
    result = await PipelineEngine([outer, Parallel({"m": count, "n": count}, merge=outputs)]).run(
        PipelineContext(memory=manager)
    )
    assert result.context.results == {"outer": {"l": {"x": 1, "y": "last"}, "r": 1}, "parallel": {"m": 1, "n": 1}}
    assert manager.store.namespaces("working:") == []


# Trouble


async def test_an_error_names_the_step_and_what_was_done_before_stays(manager: MemoryManager) -> None:
    context = PipelineContext("data", manager)
    with pytest.raises(StepError, match=r"step 'boom' failed: RuntimeError: out of paper") as caught:
        await PipelineEngine([returning("first", 1), boom, returning("never")]).run(context)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.step == "boom"
    assert context.results == {"first": 1}
    assert context.output == 1


async def test_a_branch_that_fails_cancels_the_others_and_leaves_no_task(manager: MemoryManager) -> None:
    begun, ended = asyncio.Event(), []

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("model")
        raise AssertionError

    async def fail(context: PipelineContext) -> None:
        await memory_of(context).async_set_fact("k", "v")
        await begun.wait()
        raise RuntimeError("out of paper")

    slow = AgentStep(FireflyAgent(name="slow", model=FunctionModel(respond)), "wait")
    fork = Parallel({"a": [returning("fine", 1), slow], "b": fail}, merge=outputs, name="fork")
    context = PipelineContext("data", manager, "c")
    with pytest.raises(StepError, match=r"step 'fork/b/fail' failed") as caught:
        await PipelineEngine([returning("first", 1), fork]).run(context)
    assert str(caught.value.__cause__) == "out of paper"
    assert ended == ["model"]
    assert tasks_left() == set()
    assert context.results == {"first": 1}
    assert context.branches["fork"]["a"].results == {"first": 1, "fine": 1}
    assert manager.store.namespaces("working:") == []
    assert [turn.user_prompt for turn in manager.conversation.get_turns("c")] == ["wait"], "as far as it came"


async def test_a_cancelled_pipeline_leaves_no_task_and_no_facts(manager: MemoryManager) -> None:
    begun = asyncio.Barrier(3)

    async def wait(context: PipelineContext) -> None:
        await memory_of(context).async_set_fact("k", "v")
        await begun.wait()
        await asyncio.Event().wait()

    context = PipelineContext(memory=manager)
    engine = PipelineEngine([returning("first", 1), Parallel({"a": wait, "b": wait}, merge=outputs)])
    task = asyncio.ensure_future(engine.run(context))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tasks_left() == set()
    assert context.results == {"first": 1}
    assert manager.store.namespaces("working:") == []


async def test_the_error_of_a_failed_merge_names_its_step() -> None:
    def merge(context: PipelineContext, branches: dict[str, PipelineContext]) -> None:
        raise KeyError("total")

    step = Parallel({"a": returning("x"), "b": returning("x")}, merge=merge, name="totals")
    with pytest.raises(StepError, match="step 'totals' failed: KeyError: 'total'"):
        await PipelineEngine([step]).run(PipelineContext())


async def test_steps_after_a_merge_may_branch_again_when_run_twice() -> None:
    engine = PipelineEngine([Parallel({"a": returning("x", 1), "b": returning("x", 2)}, merge=outputs)])
    context = PipelineContext()
    assert (await engine.run(context)).output == (await engine.run(context)).output == {"a": 1, "b": 2}


def not_a_coroutine(context: PipelineContext) -> None:
    """Would block the loop."""


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (list, "has no steps"),
        (lambda: [boom, boom], "more than one step named 'boom'"),
        (lambda: [not_a_coroutine], "coroutine function"),
        (lambda: [AgentStep(Agent(TestModel()))], "has no name"),
        (lambda: [returning("a/b")], "cannot be named 'a/b'"),
        (lambda: [Parallel({"a": boom}, merge=outputs)], "at least two branches"),
        (lambda: [Parallel({"a": boom, "": boom}, merge=outputs)], "cannot be named ''"),
        (lambda: [Parallel({"a": boom, "b": []}, merge=outputs)], "parallel/b has no steps"),
    ],
)
def test_an_invalid_pipeline_is_refused(steps: Callable[[], list[Any]], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        PipelineEngine(steps())


def test_the_output_of_a_step_can_be_none() -> None:
    context = PipelineContext("data")
    context.done("a", None)
    assert context.branch(None).output is None


async def test_inputs_other_than_text_reach_the_model_unchanged() -> None:
    picture = BinaryContent(b"\x89\xff", media_type="image/png")
    for inputs, said in ((["look", picture], ["look", picture]), (picture, [picture]), ({"a": 1}, '{"a":1}')):
        scripted = Scripted("seen")
        agent = FireflyAgent(name="viewer", model=scripted.model)
        await PipelineEngine([AgentStep(agent)]).run(context=PipelineContext(inputs=inputs))
        assert scripted.asked[0][0].parts[0].content == said  # type: ignore[union-attr]


async def test_the_function_of_a_prompt_can_be_a_coroutine() -> None:
    async def asked(context: PipelineContext) -> str:
        return f"about {context.inputs}"

    scripted = Scripted("ok")
    step = AgentStep(FireflyAgent(name="a", model=scripted.model), asked)
    await PipelineEngine([step]).run(context=PipelineContext(inputs="birds"))
    assert scripted.texts == [["about birds"]]


async def test_a_reused_context_begins_with_its_inputs() -> None:
    seen: list[Any] = []

    async def first(context: PipelineContext) -> str:
        seen.append(context.output)
        return "done"

    async def fails_once(context: PipelineContext) -> None:
        if len(seen) == 1:
            raise RuntimeError("out of paper")

    context, engine = PipelineContext(inputs="in"), PipelineEngine([first, fails_once])
    with pytest.raises(StepError):
        await engine.run(context=context)
    await engine.run(context=context)
    assert seen == ["in", "in"]


async def test_options_of_a_run_reach_every_agent() -> None:
    agent: Agent[str, str] = Agent(
        Scripted().model, name="a", deps_type=str, instructions=lambda ctx: f"for {ctx.deps}"
    )
    other = Scripted()
    steps = [AgentStep(agent, "one"), AgentStep(agent, "two", name="b", model=other.model)]
    await PipelineEngine(steps).run(context=PipelineContext(options={"deps": "Ada"}))
    assert other.instructions == ["for Ada"]


async def test_a_step_after_an_output_of_none_sends_no_prompt() -> None:
    async def nothing(context: PipelineContext) -> None: ...

    scripted = Scripted("x")
    await PipelineEngine([nothing, AgentStep(FireflyAgent(name="a", model=scripted.model, instructions="Say x."))]).run(
        PipelineContext()
    )
    assert scripted.texts == [[]]


async def test_a_pipeline_stops_at_an_agent_that_waits_for_approval() -> None:
    payer = Agent(Scripted({"pay": {}}).model, name="payer", output_type=[str, DeferredToolRequests])

    @payer.tool_plain(requires_approval=True)
    def pay() -> str:
        return "paid"

    writer = Agent(Scripted().model, name="writer")
    with pytest.raises(StepError, match=r"writer.*answer or approve"):
        await PipelineEngine([AgentStep(payer), AgentStep(writer)]).run(PipelineContext(inputs="Pay."))
    ended = await PipelineEngine([AgentStep(payer)]).run(PipelineContext(inputs="Pay."))
    assert ended.output is not None

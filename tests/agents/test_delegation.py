"""``DelegationRouter``: the choice of an agent, and the memory that it has for one route only."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from firefly_memory import ConfigurationError, EntryStore, MemoryManager, SQLiteStore
from firefly_memory.agents import FireflyAgent, Memory
from firefly_memory.agents.delegation import (
    AnyAgent,
    CapabilityStrategy,
    DelegationRouter,
    LeastBusyStrategy,
    RandomStrategy,
    RoundRobinStrategy,
    RouteRequest,
)
from tests.support.scripted_model import TOLD, Scripted


class Meeting:
    """A model that remembers its prompt as a fact, waits until all are there, and answers with the facts it is told."""

    def __init__(self, parties: int) -> None:
        self.barrier = asyncio.Barrier(parties)
        self.model = FunctionModel(self._respond)

    async def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked = [part.content for part in messages[-1].parts if isinstance(part, UserPromptPart)]
        if asked:
            return ModelResponse(parts=[ToolCallPart("remember", {"key": "asked", "value": asked[0]})])
        await self.barrier.wait()
        return ModelResponse(parts=[TextPart(info.instructions or "")])


def answering(name: str, text: str | None = None) -> FireflyAgent:
    return FireflyAgent(name=name, model=TestModel(custom_output_text=text or name))


async def chosen(router: DelegationRouter, *prompts: str, **options: Any) -> list[str]:
    return [(await router.route(prompt, **options)).output for prompt in prompts]


async def test_the_documented_example_runs() -> None:
    agent_a, agent_b = answering("a"), answering("b")
    mgr = MemoryManager()

    router = DelegationRouter([agent_a, agent_b], RoundRobinStrategy(), memory=mgr)
    result = await router.route("Translate this text.")

    assert result.output == "a"
    assert len(mgr.conversation.get_turns(result.conversation_id)) == 1


async def test_fifty_routes_at_once_do_not_see_each_others_facts(store: EntryStore) -> None:
    meeting = Meeting(50)
    manager = MemoryManager(store=store, working_scope_id="main")
    manager.set_fact("secret", "of the parent")
    ours = FireflyAgent(name="ours", model=meeting.model, memory=manager, memory_tools=True)
    plain: Agent[None, str] = Agent(meeting.model, name="plain", capabilities=[Memory(manager, tools=True)])
    router = DelegationRouter([ours, plain], memory=manager)
    prompts = [f"prompt {number}" for number in range(50)]
    results = await asyncio.gather(*(router.route(prompt, conversation_id=prompt) for prompt in prompts))
    assert [result.output for result in results] == [f"{TOLD}- asked: {prompt}" for prompt in prompts]
    assert ours.memory is manager
    assert manager.working.to_dict() == {"secret": "of the parent"}
    assert store.namespaces("working:") == ["working:main"], "nothing is left of the routes' facts"
    for prompt in prompts:
        (turn,) = manager.conversation.get_turns(prompt)
        assert (turn.user_prompt, len(turn.raw_messages)) == (prompt, 4), "shared, and stored once"


async def test_a_route_leaves_the_agents_as_they_were() -> None:
    own, routed = MemoryManager(working_scope_id="own"), MemoryManager(working_scope_id="routed")
    own.set_fact("whose", "own")
    scripted = Scripted()
    ours = FireflyAgent(name="ours", model=scripted.model, memory=own)
    plain = Agent(scripted.model, name="plain", capabilities=[Memory(own)])
    for agent in (ours, plain):
        await DelegationRouter([agent], memory=routed).route("one", conversation_id="c")
        await agent.run("two", conversation_id="d")
    assert scripted.instructions == ["", f"{TOLD}- whose: own"] * 2
    assert len(routed.conversation.get_turns("c")) == 2
    assert len(own.conversation.get_turns("d")) == 2
    assert not own.conversation.get_turns("c")
    assert not routed.conversation.get_turns("d")


async def test_a_route_keeps_the_agents_tools_and_memory_options() -> None:
    own, routed = MemoryManager(), MemoryManager()
    scripted = Scripted({"look": {}, "remember": {"key": "k", "value": "v"}}, "done")
    agent: FireflyAgent[None, str] = FireflyAgent(name="ours", model=scripted.model, memory=own, memory_tools=True)
    seen: list[Any] = []

    @agent.agent.tool
    def look(ctx: RunContext[None]) -> str:
        seen.append(ctx.deps)
        return "seen"

    await DelegationRouter([agent], memory=routed).route("one", deps="deps")
    assert seen == ["deps"], "tools are there, and options are those of a run"
    assert scripted.instructions == ["", f"{TOLD}- k: v"]
    without = FireflyAgent(
        name="ours", model=Scripted({"remember": {"key": "k", "value": "v"}}).model, memory_tools=True
    )
    assert (await DelegationRouter([without], memory=routed).route("one")).output == "answer 2"


async def test_without_a_memory_agents_use_their_own() -> None:
    own = MemoryManager()
    agent = FireflyAgent(name="a", model=Scripted().model, memory=own)
    await DelegationRouter([agent]).route("one", conversation_id="c")
    assert len(own.conversation.get_turns("c")) == 1


async def test_a_route_writes_into_the_callers_scope() -> None:
    manager = MemoryManager()
    agent = FireflyAgent(
        name="a", model=Scripted({"remember": {"key": "kind", "value": "invoice"}}, "ok").model, memory_tools=True
    )
    child = manager.fork(working_scope_id="sub-agent-classify")
    await DelegationRouter([agent], memory=manager).route("one", memory=child)
    assert child.get_fact("kind") == "invoice"
    assert manager.get_fact("kind") is None


async def test_conversations_are_shared_by_the_agents(store: EntryStore) -> None:
    scripted = Scripted()
    agents = [FireflyAgent(name=name, model=scripted.model) for name in "ab"]
    router = DelegationRouter(agents, RoundRobinStrategy(), memory=MemoryManager(store=store))
    for prompt in ("one", "two"):
        await router.route(prompt, conversation_id="c")
    assert scripted.texts == [["one"], ["one", "answer 1", "two"]]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_an_interrupted_route_leaves_no_facts_and_is_not_counted_as_running(
    store: EntryStore, cancelled: bool
) -> None:
    begun = asyncio.Event()

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("remember", {"key": "k", "value": "v"})])
        if begun.is_set():
            return ModelResponse(parts=[TextPart("well again")])
        begun.set()
        if cancelled:
            await asyncio.Event().wait()
        raise RuntimeError("the model is away")

    agent = FireflyAgent(name="a", model=FunctionModel(respond), memory_tools=True)
    spy = Recording()
    router = DelegationRouter([agent], spy, memory=MemoryManager(store=store))
    task = asyncio.ensure_future(router.route("one", conversation_id="c"))
    await begun.wait()
    if cancelled:
        task.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else RuntimeError):
        await task
    assert store.namespaces("working:") == []
    assert [turn.user_prompt for turn in MemoryManager(store=store).conversation.get_turns("c")] == ["one"]
    assert (await router.route("two", conversation_id="c")).output == "well again"
    assert [request.in_flight for request in spy.requests] == [(0,), (0,)]


async def test_an_answer_is_returned_although_the_store_was_closed(tmp_path: Any, caplog: Any) -> None:
    store = SQLiteStore(tmp_path / "memory.db")

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await store.close()
        return ModelResponse(parts=[TextPart("here it is")])

    router = DelegationRouter([Agent(FunctionModel(respond), name="a")], memory=MemoryManager(store=store))
    assert (await router.route("one")).output == "here it is"
    assert "was not stored" in caplog.text
    assert "were not deleted" in caplog.text


async def test_a_memory_chosen_for_each_run_is_replaced_too() -> None:
    own, routed = MemoryManager(), MemoryManager()
    agent = Agent(Scripted().model, name="a", capabilities=[lambda _: Memory(own)])
    await DelegationRouter([agent], memory=routed).route("one", conversation_id="c")
    assert not own.conversation.get_turns("c")
    assert len(routed.conversation.get_turns("c")) == 1


class Recording:
    def __init__(self) -> None:
        self.requests: list[RouteRequest] = []

    async def select(self, agents: Sequence[AnyAgent], request: RouteRequest) -> AnyAgent:
        self.requests.append(request)
        return agents[-1]


# Strategies


async def test_round_robin_chooses_agents_in_turn() -> None:
    router = DelegationRouter([answering(name) for name in "abc"])
    assert await chosen(router, *"1234") == ["a", "b", "c", "a"]


async def test_the_random_strategy_follows_its_seed() -> None:
    agents = [answering(name) for name in "abc"]
    first = await chosen(DelegationRouter(agents, RandomStrategy(seed=7)), *"12345678")
    assert await chosen(DelegationRouter(agents, RandomStrategy(seed=7)), *"12345678") == first
    assert set(first) == {"a", "b", "c"}


async def test_the_least_busy_agent_is_chosen() -> None:
    """The first three are kept waiting, so the fourth finds both with work, the second with less."""
    go, begun = asyncio.Event(), asyncio.Semaphore(0)

    def waiting(name: str) -> Agent[None, str]:
        async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            begun.release()
            await go.wait()
            return ModelResponse(parts=[TextPart(name)])

        return Agent(FunctionModel(respond), name=name)

    router = DelegationRouter([waiting("a"), waiting("b")], LeastBusyStrategy(), memory=MemoryManager())
    routes = []
    for _ in range(4):
        routes.append(asyncio.ensure_future(router.route("one")))
        await begun.acquire()
    go.set()
    assert [(await route).output for route in routes] == ["a", "b", "a", "b"]


async def test_the_capability_strategy_chooses_by_tags_and_words() -> None:
    agents = [answering(name) for name in ("translator", "coder", "reviewer")]
    can = {"translator": ["Translate", "French"], "coder": ["code", "python"], "reviewer": ["code", "review"]}
    router = DelegationRouter(agents, CapabilityStrategy(can), memory=MemoryManager())
    prompts = ["Translate this text.", "Write code in Python", "review this code, please"]
    assert await chosen(router, *prompts) == ["translator", "coder", "reviewer"]
    router = DelegationRouter(agents, CapabilityStrategy(can))
    assert await chosen(router, "any", "any", "any", tags=["code"]) == ["coder", "reviewer", "coder"]
    assert await chosen(router, "translate", tags={"code", "review"}) == ["reviewer"], "tags decide where there are any"
    assert (await router.route(["some", "french"])).output == "translator"
    with pytest.raises(ConfigurationError, match=r"no agent can do \['cook'\].*'coder': \['code', 'python'\]"):
        await router.route("any", tags={"cook"})
    with pytest.raises(ConfigurationError, match="any word of the prompt"):
        await router.route("nothing that anybody knows")
    idlest = DelegationRouter(agents, CapabilityStrategy(can, among=LeastBusyStrategy()))
    assert await chosen(idlest, "any", "any", tags=["code"]) == ["coder", "coder"]


async def test_a_custom_strategy_chooses_the_agent() -> None:
    strategy = Recording()
    router = DelegationRouter([answering("a"), answering("b")], strategy)
    assert await chosen(router, "one", tags=["x"], conversation_id="c") == ["b"]
    assert strategy.requests == [RouteRequest("one", frozenset({"x"}), "c", (0, 0))]


async def test_invalid_agents_tags_and_choices_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one agent"):
        DelegationRouter([], RoundRobinStrategy())
    with pytest.raises(ConfigurationError, match="tags of 'a'"):
        CapabilityStrategy({"a": "code"})
    stranger = answering("stranger")

    class Elsewhere:
        def select(self, agents: Sequence[AnyAgent], request: RouteRequest) -> AnyAgent:
            return stranger

    router = DelegationRouter([answering("a")], Elsewhere())
    with pytest.raises(ConfigurationError, match=r"Elsewhere chose .*stranger.* none of the agents"):
        await router.route("one")
    with pytest.raises(ConfigurationError, match="several texts"):
        await router.route("one", tags="code")
    manager = MemoryManager()
    with pytest.raises(ConfigurationError, match="only one Memory capability; got 2"):
        Agent(TestModel(), capabilities=[Memory(manager), Memory(manager.fork())])


@pytest.mark.parametrize("package", ["agents", "pipeline", "reasoning"])
def test_without_pydantic_ai_the_error_names_the_extra(package: str) -> None:
    code = f"import sys; sys.modules['pydantic_ai'] = None; import firefly_memory.{package}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"MissingDependencyError: firefly_memory.{package} needs" in done.stderr
    assert "pip install 'firefly-memory[agents]'" in done.stderr


async def test_a_route_may_be_streamed(manager: MemoryManager) -> None:
    manager.set_fact("of", "the parent")
    scripted = Scripted({"remember": {"key": "k", "value": "v"}}, "streamed")
    router = DelegationRouter([FireflyAgent(name="a", model=scripted.model, memory_tools=True)], memory=manager)
    async with router.route_stream("one", conversation_id="c") as stream:
        assert await stream.get_output() == "streamed"
    assert [turn.assistant_response for turn in manager.conversation.get_turns("c")] == ["streamed"]
    assert manager.working.to_dict() == {"of": "the parent"}
    assert scripted.instructions[0] == ""


async def test_an_agent_without_a_name_keeps_no_name() -> None:
    nameless = Agent(Scripted().model)
    await DelegationRouter([nameless], memory=MemoryManager()).route("one")
    assert nameless.name is None


async def test_a_tag_may_have_several_words() -> None:
    learner, cook = answering("learner"), answering("cook")
    router = DelegationRouter(
        [learner, cook], CapabilityStrategy({"learner": ["machine learning", "C++"], "cook": ["cooking"]})
    )
    assert (await router.route("Teach me Machine  learning and machine learning")).output == "learner"
    assert (await router.route("I like C++.")).output == "learner"
    with pytest.raises(ConfigurationError, match="no agent can do"):
        await router.route("learning machine")


async def test_capabilities_of_unknown_agents_are_refused() -> None:
    router = DelegationRouter([answering("coder")], CapabilityStrategy({"codr": ["code"]}))
    with pytest.raises(ConfigurationError, match=r"no agent is named \['codr'\]; they are named \['coder'\]"):
        await router.route("code")

"""Agent runs that fail, are cancelled, wait or meet other runs: they are stored, and the next run succeeds."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic_ai import (
    Agent,
    AgentRunResult,
    AgentRunResultEvent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
)
from pydantic_ai.messages import (
    ModelMessage,
)

from firefly_memory import (
    DatabaseStoreError,
    EntryStore,
    MemoryManager,
    StaleConversationError,
    StoreClosedError,
    connect,
)
from firefly_memory.agents import Memory
from tests.support.agent_worker import runs_until_one_ends
from tests.support.backends import Place
from tests.support.cancellation import cancelled_at
from tests.support.scripted_model import Scripted, stored

pytestmark = pytest.mark.thorough


async def test_a_failed_run_stores_its_messages(manager: MemoryManager) -> None:
    scripted = Scripted({"look": {}}, RuntimeError("the provider is down"), "fine")
    agent = Agent(scripted.model, capabilities=[Memory(manager)])

    @agent.tool_plain
    def look() -> str:
        return "seen"

    with pytest.raises(RuntimeError, match="provider is down"):
        await agent.run("one", conversation_id="c")
    assert stored(manager) == [("one", "")]
    result = await agent.run("two", conversation_id="c")
    assert result.output == "fine"
    assert scripted.texts[-1] == ["one", "seen", "two"]


async def test_a_failed_tool_leaves_no_unanswered_call(manager: MemoryManager) -> None:
    scripted = Scripted({"look": {}}, "fine")
    agent = Agent(scripted.model, capabilities=[Memory(manager)])

    @agent.tool_plain
    def look() -> str:
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError):
        await agent.run("one", conversation_id="c")
    result = await agent.run("two", conversation_id="c")
    assert result.output == "fine"
    assert_every_call_is_answered(scripted.asked[-1])


def assert_every_call_is_answered(messages: list[ModelMessage]) -> None:
    parts = [part for message in messages for part in message.parts]
    calls = [part.tool_call_id for part in parts if part.part_kind == "tool-call"]
    answers = [part.tool_call_id for part in parts if part.part_kind in ("tool-return", "retry-prompt")]
    assert calls == answers


@pytest.mark.parametrize("url", ["memory:", "sqlite:///memory.db"])
async def test_a_run_cancelled_at_any_point_leaves_a_history_that_the_next_run_accepts(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over every await of a run with calls of tools."""
    monkeypatch.chdir(tmp_path)
    async with connect(url) as store:
        manager = MemoryManager(store=store)

        async def go(conversation_id: str, stop_at: int) -> bool:
            scripted = Scripted({"look": {}, "think": {}}, {"look": {}}, "done")
            agent = Agent(scripted.model, capabilities=[Memory(manager)])

            @agent.tool_plain
            async def look() -> str:
                await asyncio.sleep(0)
                return "seen"

            @agent.tool_plain
            async def think() -> str:
                await asyncio.sleep(0)
                raise ModelRetry("again")

            run = asyncio.ensure_future(agent.run("one", conversation_id=conversation_id))
            for _ in range(stop_at):
                if run.done():
                    break
                await asyncio.sleep(0)
            finished = run.done()
            run.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await run
            await check_that_the_next_run_goes_on(manager, conversation_id)
            return finished

        for stop_at in range(2_000):
            if await go(f"c{stop_at}", stop_at):
                break
        assert 20 < stop_at < 1_999
        turns = [await manager.conversation.async_get_turns(f"c{n}") for n in range(stop_at)]
        broken_off = {len(of_one[0].raw_messages) for of_one in turns if len(of_one) == 2}
        # In memory no thread decides how far a run comes.
        assert broken_off >= ({1, 3, 5} if url == "memory:" else {1}), "what happened was kept, however far it came"


async def test_a_run_can_be_cancelled_at_each_of_its_own_awaits(store: EntryStore) -> None:
    manager = MemoryManager(store=store)
    for wait in range(1, 200):
        conversation_id = f"c{wait}"
        scripted = Scripted({"look": {}}, {"look": {}}, "done")
        agent = Agent(scripted.model, capabilities=[Memory(manager)])

        @agent.tool_plain
        async def look() -> str:
            await asyncio.sleep(0)
            return "seen"

        whole = agent.run("one", conversation_id=conversation_id)
        try:
            await cancelled_at(wait, whole)
            break
        except asyncio.CancelledError:
            await check_that_the_next_run_goes_on(manager, conversation_id)
    assert 3 < wait < 199


async def check_that_the_next_run_goes_on(manager: MemoryManager, conversation_id: str) -> None:
    following = Scripted("fine")
    agent = Agent(following.model, capabilities=[Memory(manager)])
    assert (await agent.run("two", conversation_id=conversation_id)).output == "fine"
    assert_every_call_is_answered(following.asked[-1])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mongodb"])
async def test_a_run_killed_at_each_of_its_waits_leaves_a_history_that_the_next_run_accepts(
    kind: str, place: Place
) -> None:
    urls = {
        "sqlite": lambda: f"sqlite:///{place.directory}/memory.db",
        "postgresql": place.postgresql,
        "mongodb": place.mongodb,
    }
    url, conversation_id = urls[kind](), f"killed-{uuid4().hex}"
    runs = runs_until_one_ends(url, conversation_id)
    assert runs > 3
    async with connect(url) as store:
        manager = MemoryManager(store=store)
        for number in range(1, runs):
            await check_that_the_next_run_goes_on(manager, f"{conversation_id}-{number}")
            prompts = [prompt for prompt, _ in stored(manager, f"{conversation_id}-{number}")]
            assert prompts in (["zero", "two"], ["zero", "one", "two"]), "nothing that was stored is lost"
        assert [prompt for prompt, _ in stored(manager, f"{conversation_id}-{runs}")] == ["zero", "one"]


async def test_a_deferred_call_waits_for_its_result(manager: MemoryManager) -> None:
    scripted = Scripted({"ask_boss": {"question": "may I?"}}, "the boss agrees", "later")
    agent: Agent[None, Any] = Agent(
        scripted.model, output_type=[str, DeferredToolRequests], capabilities=[Memory(manager)]
    )

    @agent.tool_plain
    def ask_boss(question: str) -> str:
        raise CallDeferred

    paused = await agent.run("do it", conversation_id="c")
    assert isinstance(paused.output, DeferredToolRequests)
    (call,) = paused.output.calls
    results = DeferredToolResults(calls={call.tool_call_id: "yes"})
    resumed = await agent.run(deferred_tool_results=results, conversation_id="c")
    assert resumed.output == "the boss agrees"
    assert_every_call_is_answered(scripted.asked[1])
    await agent.run("and then?", conversation_id="c")
    assert_every_call_is_answered(scripted.asked[2])
    assert scripted.texts[2] == ["do it", "yes", "the boss agrees", "and then?"]
    assert len(stored(manager)) == 3


# Trouble and conflicts


async def test_an_answer_is_returned_although_it_could_not_be_stored(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = connect(f"sqlite:///{tmp_path}/memory.db")
    scripted = Scripted({"unplug": {}}, "the answer")
    agent = Agent(scripted.model, capabilities=[Memory(MemoryManager(store=store))])

    @agent.tool_plain
    async def unplug() -> str:
        await store.close()
        return "gone"

    result = await agent.run("one", conversation_id="c")
    assert result.output == "the answer"
    assert "was not stored" in caplog.text


@pytest.mark.parametrize("on_conflict", ["append", "reject", "branch"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_that_must_store_its_turn_raises_the_stores_error_with_its_result(
    tmp_path: Any, on_conflict: Any, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = connect(f"sqlite:///{tmp_path}/memory.db")
    scripted = Scripted({"unplug": {}}, "the answer")
    memory = Memory(MemoryManager(store=store), must_store=True, on_conflict=on_conflict)
    agent = Agent(scripted.model, capabilities=[memory])

    @agent.tool_plain
    async def unplug() -> str:
        await store.close()
        return "gone"

    async def run() -> None:
        if not streamed:
            await agent.run("one", conversation_id="c")
            return
        async with agent.run_stream("one", conversation_id="c") as stream:
            await stream.get_output()

    with pytest.raises(StoreClosedError) as caught:
        await run()
    assert caught.value.result.output == "the answer"
    assert "was not stored" in caplog.text


async def test_a_run_that_fails_raises_its_own_error_although_it_must_store_its_turn(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = connect(f"sqlite:///{tmp_path}/memory.db")
    memory = Memory(MemoryManager(store=store), must_store=True)
    agent = Agent(Scripted({"unplug": {}}).model, capabilities=[memory])

    @agent.tool_plain
    async def unplug() -> str:
        await store.close()
        raise RuntimeError("out of paper")

    with pytest.raises(RuntimeError, match="out of paper"):
        await agent.run("one", conversation_id="c")
    assert "was not stored" in caplog.text


async def test_a_store_that_is_down_at_the_start_raises_one_clear_error(tmp_path: Any) -> None:
    (tmp_path / "memory.db").mkdir()
    store = connect(f"sqlite:///{tmp_path}/memory.db")
    agent = Agent(Scripted().model, capabilities=[Memory(MemoryManager(store=store))])
    with pytest.raises(DatabaseStoreError, match=r"memory\.db"):
        await agent.run("one", conversation_id="c")
    await store.close()


@pytest.mark.parametrize("on_conflict", ["append", "reject", "branch"])
async def test_two_simultaneous_runs_follow_on_conflict(on_conflict: Any, manager: MemoryManager) -> None:
    agents = []
    barrier = asyncio.Barrier(2)
    for _ in range(2):
        agent = Agent(Scripted({"wait": {}}, "answer").model, capabilities=[Memory(manager, on_conflict=on_conflict)])

        @agent.tool_plain
        async def wait() -> int:
            return await barrier.wait()

        agents.append(agent)
    await Agent(Scripted("there before").model, capabilities=[Memory(manager)]).run("zero", conversation_id="c")
    results = await asyncio.gather(
        *[agent.run(f"prompt {number}", conversation_id="c") for number, agent in enumerate(agents)],
        return_exceptions=True,
    )
    turns = stored(manager)
    if on_conflict == "append":
        assert [type(result).__name__ for result in results] == ["AgentRunResult"] * 2
        assert len(turns) == 3
        return
    assert len(turns) == 2
    if on_conflict == "reject":
        (error,) = [result for result in results if isinstance(result, StaleConversationError)]
        assert (error.conversation_id, error.turns) == ("c", 2)
        assert error.result.output == "answer", "not lost to the caller"
        return
    assert [type(result).__name__ for result in results] == ["AgentRunResult"] * 2
    (branch,) = [name for name in manager.conversation.conversation_ids if name != "c"]
    assert sorted(result.conversation_id for result in results if isinstance(result, AgentRunResult)) == sorted(
        ["c", branch]
    ), "each says where its turn is"
    assert next(prompt for prompt, _ in stored(manager, branch)) == "zero"
    assert len(stored(manager, branch)) == 2


async def test_a_streamed_run_branches_on_a_conflict(manager: MemoryManager) -> None:
    agent = Agent(Scripted("answer").model, capabilities=[Memory(manager, on_conflict="branch")])
    async with agent.run_stream("one", conversation_id="c") as stream:
        await manager.conversation.async_add_turn("c", "faster", "yes")
        await stream.get_output()
    assert [prompt for prompt, _ in stored(manager)] == ["faster"]
    (branch,) = [name for name in manager.conversation.conversation_ids if name != "c"]
    assert [prompt for prompt, _ in stored(manager, branch)] == ["one"]
    agent = Agent(Scripted("more").model, capabilities=[Memory(manager, on_conflict="branch")])
    async with agent.run_stream_events("two", conversation_id="c") as events:
        await anext(aiter(events))  # the run begins
        await manager.conversation.async_add_turn("c", "faster again", "yes")
        results = [event.result async for event in events if isinstance(event, AgentRunResultEvent)]
    assert [prompt for prompt, _ in stored(manager, results[0].conversation_id)] == ["faster", "two"]


async def test_the_messages_of_a_branch_continue_the_branch(manager: MemoryManager) -> None:
    agent = Agent(Scripted({"meanwhile": {}}, "answer").model, capabilities=[Memory(manager, on_conflict="branch")])

    @agent.tool_plain
    async def meanwhile() -> str:
        await manager.conversation.async_add_turn("c", "faster", "yes")
        return "done"

    result = await agent.run("one", conversation_id="c")
    assert {message.conversation_id for message in result.all_messages()} == {result.conversation_id} != {"c"}
    (turn,) = manager.conversation.get_turns(result.conversation_id)
    assert turn.raw_messages == result.new_messages()
    await agent.run("two", message_history=result.all_messages())
    assert [prompt for prompt, _ in stored(manager, result.conversation_id)] == ["one", "two"]


async def test_a_run_branches_if_its_conversation_is_deleted(manager: MemoryManager) -> None:
    agent = Agent(Scripted({"forget": {}}, "answer").model, capabilities=[Memory(manager, on_conflict="branch")])
    await manager.conversation.async_add_turn("c", "before", "yes")

    @agent.tool_plain
    async def forget() -> str:
        await manager.conversation.async_clear("c")
        return "forgotten"

    result = await agent.run("one", conversation_id="c")
    assert result.conversation_id != "c"
    assert [prompt for prompt, _ in stored(manager, result.conversation_id)] == ["one"]

"""Agents with ``feed_memory`` whose tools somebody else has to answer or to approve."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, DeferredToolResults

from firefly_memory.agents import feed_memory
from firefly_memory.feeds import BaseMemory, HistoryFilter, OrchestratorHistoryFilter
from tests.support.feed_agents import a_memory, assert_calls_are_answered, said, told
from tests.support.scripted_model import Scripted


def office(scripted: Scripted, memory: BaseMemory, **options: Any) -> Agent[None, Any]:
    """An agent with a tool that answers, one that somebody has to answer, and one that somebody has to approve."""
    agent: Agent[None, Any] = Agent(
        scripted.model, output_type=[str, DeferredToolRequests], capabilities=[feed_memory(memory, **options)]
    )

    @agent.tool_plain
    def look() -> str:
        return "seen"

    @agent.tool_plain
    def ask() -> str:
        raise CallDeferred

    @agent.tool_plain(requires_approval=True)
    def pay() -> str:
        return "paid"

    return agent


def answers_to(requests: DeferredToolRequests) -> DeferredToolResults:
    return DeferredToolResults(
        calls={call.tool_call_id: "yes" for call in requests.calls},
        approvals={call.tool_call_id: True for call in requests.approvals},
    )


@pytest.mark.parametrize("history_filter", [None, OrchestratorHistoryFilter(5)])
async def test_a_run_that_waits_goes_on_from_the_memory(history_filter: HistoryFilter | None) -> None:
    memory = a_memory("worker")
    scripted = Scripted({"look": {}, "ask": {}, "pay": {}}, "done", "later")
    agent = office(scripted, memory, role="worker", filter=history_filter)
    requests = (await agent.run("Buy it.")).output
    assert said(await memory.get_history()) == [
        ("task", "Buy it."),
        ("action", "look"),
        ("action", "ask"),
        ("action", "pay"),
        ("observation", "seen"),
    ], "no final: the run waits"
    await memory.add({"type": "global_observation", "content": "Somebody else has come."})
    assert (await agent.run(deferred_tool_results=answers_to(requests))).output == "done"
    assert_calls_are_answered(scripted.asked[-1])
    assert ("tool-return", "yes") in told(scripted.asked[-1])
    assert ("tool-return", "paid") in told(scripted.asked[-1])
    added = said(await memory.get_history())[5:]
    assert sorted(map(str, added)) == sorted(
        map(
            str,
            [
                ("observation", "yes"),
                ("observation", "paid"),
                ("final", "done"),
                ("global_observation", "Somebody else has come."),
            ],
        )
    )
    await agent.run("And?")
    assert_calls_are_answered(scripted.asked[-1])


async def test_a_run_that_waits_goes_on_from_a_given_history() -> None:
    memory = a_memory()
    scripted = Scripted({"ask": {}}, "done")
    agent = office(scripted, memory)
    paused = await agent.run("Ask.")
    results = answers_to(paused.output)
    await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert told(scripted.asked[-1]) == [("user-prompt", "Ask."), ("tool-call", ""), ("tool-return", "yes")]
    assert sorted(map(str, said(await memory.get_history()))) == sorted(
        map(str, [("user_message", "Ask."), ("action", "ask"), ("observation", "yes"), ("assistant_message", "done")])
    )


async def test_a_new_prompt_leaves_the_calls_that_nobody_answered() -> None:
    memory = a_memory()
    scripted = Scripted({"ask": {}}, "never mind it is", "more")
    agent = office(scripted, memory)
    await agent.run("Ask.")
    assert (await agent.run("Never mind.")).output == "never mind it is"
    assert (await agent.run("And?")).output == "more"
    assert "tool-call" not in [kind for kind, _ in told(scripted.asked[-1])]
    assert '"tool":"ask"' in str(scripted.texts[-1]), "as data"

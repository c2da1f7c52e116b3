"""The tool ``remember``: a model writes facts within bounds, and a refusal does not end a run."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from firefly_memory import ConfigurationError, MemoryManager
from firefly_memory.agents import FireflyAgent, Memory
from tests.support.scripted_model import Scripted, answers_to_remember


async def test_a_model_may_write_short_keys_and_values_and_not_too_many(manager: MemoryManager) -> None:
    for number in range(99):
        manager.fork(conversation_id="c").set_fact(f"fact {number}", number)
    answers = await answers_to_remember(
        manager,
        {"key": "k" * 201, "value": "v"},
        {"key": "k", "value": "v" * 2_001},
        {"key": "k" * 200, "value": "v" * 2_000},
        {"key": "one more", "value": "v"},
        {"key": "k" * 200, "value": "replaced"},
    )
    assert "the key has 201 characters, and may have 200" in answers[0]
    assert "the value has 2001 characters, and may have 2000" in answers[1]
    assert answers[2] == answers[4] == "remembered"
    assert answers[3].startswith("not remembered: there are 100 facts")
    facts = manager.fork(conversation_id="c").working.to_dict()
    assert len(facts) == 100
    assert facts["k" * 200] == "replaced"


@pytest.mark.parametrize("way", ["run", "stream", "FireflyAgent", "without retries"])
async def test_a_refused_fact_does_not_end_a_run(way: str) -> None:
    manager = MemoryManager()
    manager.set_fact("name", "the bank")
    for number in range(99):
        manager.fork(conversation_id="c").set_fact(f"fact {number}", number)
    refused: list[dict[str, Any]] = [
        {"key": "k" * 201, "value": "v"}, {"key": "k", "value": "v" * 2_001}, {"key": "", "value": "v"},
    ]  # fmt: skip
    full = [{"key": "last", "value": "v"}, {"key": "more", "value": "v"}, {"key": "name", "value": "v"}]
    calls = [*refused * 2, *full, *full[1:], *refused]
    scripted = Scripted(*({"remember": call} for call in calls), *[{"recall": {"key": ""}}] * 3, "done")
    options: dict[str, Any] = {"retries": 0} if way == "without retries" else {}
    agent: Any = Agent(scripted.model, capabilities=[Memory(manager, tools=True)], **options)
    if way == "FireflyAgent":
        agent = FireflyAgent(name="ours", model=scripted.model, memory=manager, memory_tools=True)
    if way == "stream":
        async with agent.run_stream("go", conversation_id="c") as stream:
            assert await stream.get_output() == "done"
    else:
        assert (await agent.run("go", conversation_id="c")).output == "done"
    told_of = scripted.texts[-1][1:]
    assert [answer == "remembered" for answer in told_of] == [call == full[0] for call in calls] + [False] * 3
    assert "201 characters" in told_of[0]
    assert told_of[8] == "not remembered: 'name' is a fact of the application; remember this under another key"


async def test_the_bounds_can_be_set_by_options() -> None:
    manager = MemoryManager()
    options: dict[str, Any] = {"max_facts": 1, "max_key_length": 2, "max_value_length": 3}
    answers = await answers_to_remember(
        manager,
        {"key": "abc", "value": "v"},
        {"key": "ab", "value": "1234"},
        {"key": "ab", "value": "123"},
        {"key": "b", "value": "1"},
        **options,
    )
    assert [answer.splitlines()[0] == "remembered" for answer in answers] == [False, False, True, False]
    numbers = dict.fromkeys(("max_fact_tokens", *options), (0, -1, True, 1.5, "1", None))
    for name, values in {**numbers, "overwrite": (1, "yes"), "fenced": (0, None)}.items():
        for value in values:
            wrong: dict[str, Any] = {name: value}
            with pytest.raises(ConfigurationError, match=name):
                Memory(manager, **wrong)
    made = Memory.from_spec(
        "memory:", working_scope="manager", overwrite=True, fenced=True, max_fact_tokens=5, **options
    )
    assert (made.working_scope, made.overwrite, made.fenced, made.max_fact_tokens) == ("manager", True, True, 5)
    assert (made.max_facts, made.max_key_length, made.max_value_length) == (1, 2, 3)


async def test_calls_of_one_response_do_not_exceed_the_bound_together(manager: MemoryManager) -> None:
    calls = [ToolCallPart("remember", {"key": f"k{number}", "value": "v"}) for number in range(12)]
    steps = [ModelResponse(parts=calls), ModelResponse(parts=[TextPart("done")])]
    model = FunctionModel(lambda _messages, _info: steps.pop(0))
    await Agent(model, retries=9, capabilities=[Memory(manager, tools=True, max_facts=5)]).run(
        "go", conversation_id="c"
    )
    assert len(manager.fork(conversation_id="c").working.keys()) == 5

"""Agent runs with empty or unusual prompts, outputs, ids and messages: nothing is lost, and the next run succeeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    AgentRunResult,
    BinaryContent,
    RunContext,
)
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    UserPromptPart,
)
from pydantic_ai.usage import UsageLimits

from firefly_memory import (
    EntryStore,
    InvalidEntryError,
    MemoryManager,
)
from firefly_memory.agents import Memory
from tests.support.scripted_model import Scripted, estimator_that_warns_once, stored


async def test_runs_without_a_prompt_do_not_harm_later_runs(manager: MemoryManager) -> None:
    greeting = Agent(Scripted().model, instructions="Greet the user.", capabilities=[Memory(manager)])
    await greeting.run(conversation_id="c")
    assert (await greeting.run("hi", conversation_id="c")).output == "answer 2"
    prompted = Agent(Scripted().model, system_prompt="Greet the user.", capabilities=[Memory(manager)])
    for _ in range(2):
        await prompted.run(conversation_id="d")
    assert stored(manager, "d") == [("", "answer 1")], "nothing was said the second time"
    assert (await prompted.run("hi", conversation_id="d")).output == "answer 2"


def circular() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = made
    return made


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: b"\xff\xfe", '"__4="'),
        (circular, "{'self': {...}}"),
        (lambda: {"a": "\ud800"}, "{'a': '\\ud800'}"),
        (Shy, "<Shy>"),
        (lambda: None, "null"),
    ],
)
async def test_every_output_is_returned_unchanged_and_stored_as_text(
    make: Callable[[], Any], text: str, manager: MemoryManager, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(word: str) -> Any:
        return make()

    scripted = Scripted({"final_result": {"word": "a"}})
    agent: Agent[None, Any] = Agent(scripted.model, output_type=answer, capabilities=[Memory(manager)])
    result = await agent.run("go", conversation_id="c")
    assert type(result.output) is type(make())
    assert stored(manager) == [("go", text)]
    assert caplog.record_tuples == []


async def test_a_warning_raised_as_error_loses_no_turn(store: EntryStore, caplog: pytest.LogCaptureFixture) -> None:
    manager = MemoryManager(store=store, estimator=estimator_that_warns_once())
    await Agent(Scripted().model, capabilities=[Memory(manager)]).run("one", conversation_id="c")
    assert stored(manager) == [("one", "answer 1")]
    assert "tokens are estimated" in caplog.text


async def test_turns_of_other_message_formats_are_sent_as_texts(manager: MemoryManager) -> None:
    dicts = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    await manager.async_add_turn("c", "hi", "hello", dicts)
    await manager.async_add_turn("c", "and", "so on")
    scripted = Scripted()
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("next", conversation_id="c")
    assert scripted.texts == [["hi", "hello", "and", "so on", "next"]]


async def test_a_prompt_is_stored_although_the_model_was_not_called(manager: MemoryManager) -> None:
    def broken(ctx: RunContext[None]) -> str:
        raise ArithmeticError("no instructions today")

    with pytest.raises(ArithmeticError):
        await Agent(Scripted().model, instructions=broken, capabilities=[Memory(manager)]).run(
            "one", conversation_id="c"
        )
    with pytest.raises(UsageLimitExceeded):
        await Agent(Scripted().model, capabilities=[Memory(manager)]).run(
            ["two", BinaryContent(b"\xff", media_type="image/png")],
            conversation_id="c",
            usage_limits=UsageLimits(request_limit=0),
        )
    assert stored(manager) == [("one", ""), ("two", "")]
    scripted = Scripted("fine")
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("three", conversation_id="c")
    assert [text for text in scripted.texts[0] if "BinaryContent" not in text] == ["one", "three"]


async def test_a_reused_run_id_loses_no_turn(manager: MemoryManager, caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(Scripted().model, capabilities=[Memory(manager)])
    for prompt in ("one", "two"):
        assert (await agent.run(prompt, conversation_id="c", run_id="r")).output
    assert stored(manager) == [("one", "answer 1"), ("two", "answer 2")]
    assert [len(turn.raw_messages) for turn in manager.conversation.get_turns("c")] == [2, 2]
    assert "was stored before" in caplog.text


@pytest.mark.parametrize("conversation_id", ["\ud800", 5])
async def test_ids_that_cannot_be_stored_are_refused_before_the_model_is_asked(
    conversation_id: Any, manager: MemoryManager
) -> None:
    scripted = Scripted()
    with pytest.raises(InvalidEntryError, match="conversation_id"):
        await Agent(scripted.model, capabilities=[Memory(manager)]).run("one", conversation_id=conversation_id)
    assert scripted.asked == []


async def test_another_capability_can_recover_a_run(manager: MemoryManager) -> None:
    class Apologetic(AbstractCapability[Any]):
        async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> Any:
            return AgentRunResult(output="sorry", _state=AgentRunResult(output="")._state)

    agent = Agent(Scripted(RuntimeError("down"), "fine").model, capabilities=[Memory(manager), Apologetic()])
    assert (await agent.run("one", conversation_id="c")).output == "sorry"
    assert (await agent.run("two", conversation_id="c")).output == "fine"
    assert stored(manager) == [("one", "sorry"), ("two", "fine")]


async def test_messages_that_json_cannot_hold_are_stored_as_texts(
    manager: MemoryManager, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(Scripted({"look": {}}, "fine").model, capabilities=[Memory(manager)])

    @agent.tool_plain
    def look() -> str:
        return "half an emoji: \ud83d"

    assert (await agent.run("one", conversation_id="c")).output == "fine"
    assert stored(manager) == [("one", "fine")]
    assert "only the texts are stored" in caplog.text
    scripted = Scripted()
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("two", conversation_id="c")
    assert scripted.texts == [["one", "fine", "two"]]


async def test_the_texts_of_a_turn_omit_what_a_history_processor_removed(manager: MemoryManager) -> None:
    def redacted(messages: list[Any]) -> list[ModelMessage]:
        made: list[ModelMessage] = []
        for message in messages:
            parts = [
                replace(part, content="my card is ****") if isinstance(part, UserPromptPart) else part
                for part in message.parts
            ]
            made.append(replace(message, parts=parts))
        return made

    agent = Agent(Scripted().model, capabilities=[Memory(manager), ProcessHistory(redacted)])
    await agent.run("my card is 4111 1111", conversation_id="c")
    assert stored(manager) == [("my card is ****", "answer 1")]
    assert "4111 1111" not in str(manager.conversation.get_turns("c"))

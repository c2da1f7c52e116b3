"""Summaries by a language model: its prompts, and the fallback if it fails."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from firefly_memory import ConfigurationError, ConversationMemory, ConversationTurn, TokenEstimator
from firefly_memory.summarization import PLACE, create_llm_summarizer, extracted

TURNS = [
    ConversationTurn(user_prompt="My name is Ada. I live in Lyon.", assistant_response="Hello Ada! {nice}"),
    ConversationTurn(user_prompt="I like trains.", assistant_response="Trains are nice. They run. Fast. Daily."),
]


class Asked:
    """A model that remembers what it was asked, and answers or fails."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.prompts: list[str] = []
        self.instructions: list[str] = []
        self.model = FunctionModel(self._respond)

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        (request,) = messages
        self.prompts += [str(part.content) for part in request.parts if part.part_kind == "user-prompt"]
        self.instructions.append(str(info.instructions))
        if isinstance(self.answer, Exception):
            raise self.answer
        return ModelResponse(parts=[TextPart(self.answer)])


async def test_the_model_is_asked_with_the_turns_in_the_template() -> None:
    asked = Asked(" Ada of Lyon. ")
    template = "Sum up {this: 'too'} \\{x}: {turns_text} {turns_text}"
    summarizer = create_llm_summarizer(asked.model, template, max_summary_tokens=77)
    assert await summarizer.async_summarize(TURNS) == "Ada of Lyon."
    (prompt,) = asked.prompts
    text = "User: My name is Ada. I live in Lyon.\nAssistant: Hello Ada! {nice}\n\nUser: I like trains."
    assert prompt.startswith("Sum up {this: 'too'} \\{x}: ")
    assert prompt.count(text) == 2
    assert "77 tokens" in asked.instructions[0], "the length that is wanted reaches the model"


async def test_the_model_sees_that_an_earlier_summary_is_a_summary() -> None:
    asked = Asked("new")
    when = TURNS[0].created_at
    await create_llm_summarizer(asked.model).async_summarize(
        [ConversationTurn.of_summary("Ada is a poet.", when), *TURNS]
    )
    assert "Summary of what came before:\nAda is a poet.\n\nUser: My name is Ada." in asked.prompts[0]


async def test_if_the_model_fails_sentences_of_the_newest_turns_are_the_summary(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for answer in (RuntimeError("no network"), "  "):
        summarizer = create_llm_summarizer(Asked(answer).model)
        summary = await summarizer.async_summarize(TURNS)
        assert summary == (
            "My name is Ada. I live in Lyon. / Hello Ada! {nice}\nI like trains. / Trains are nice. They run. Fast."
        )
    assert "no network" in caplog.text
    when = TURNS[0].created_at
    earlier = ConversationTurn.of_summary("Ada is a poet.", when)
    short = create_llm_summarizer(Asked(RuntimeError("no")).model, max_summary_tokens=18)
    summary = await short.async_summarize([earlier, *TURNS])
    assert summary == "Ada is a poet.\nI like trains. / Trains are nice. They run", "the newest turn, and what was"


async def test_a_summary_without_the_model_keeps_the_limit_and_something_of_everything() -> None:
    summarizer = create_llm_summarizer(Asked(RuntimeError("no")).model, max_summary_tokens=30)
    long = ConversationTurn.of_summary("Ada wrote a poem about trains. " * 40, TURNS[0].created_at)
    endless = ConversationTurn(user_prompt="prompt " * 500, assistant_response="word" * 500)
    for turns in ([long, *TURNS], [endless], [long, endless], [*TURNS, endless], [long]):
        summary = await summarizer.async_summarize(turns)
        assert 10 < TokenEstimator().estimate(summary) <= 30
        assert ("Ada wrote" in summary) == (long in turns)
        assert ("prompt" in summary) == (endless in turns)


LONG = {
    "chinese": "漢" * 2_400,
    "one word": "x" * 100_000,
    "emojis": "\U0001f600\u200d" * 5_000,
    "line feeds": "\n" * 20_000,
    "spaces": " " * 20_000,
    "halves of characters": "\ud800" * 5_000,
    "full stops": "." * 20_000,
    "sentences": "。".join("漢" * 400 for _ in range(20)),
}


@pytest.mark.parametrize("text", LONG.values(), ids=list(LONG))
def test_a_summary_without_the_model_can_be_made_from_any_text(text: str) -> None:
    estimator = TokenEstimator()
    when = TURNS[0].created_at
    for prompt, response in ((text, ""), ("", text), (text, text), ("Hi", text)):
        turn = ConversationTurn(user_prompt=prompt, assistant_response=response)
        for earlier in ([], [ConversationTurn.of_summary("Ada.", when)], [ConversationTurn.of_summary(text, when)]):
            for max_tokens in (1, 2, 18, 500):
                summary = extracted([*earlier, turn], max_tokens)
                assert estimator.estimate(summary) <= max_tokens
                assert summary.strip() == summary


async def test_a_turn_without_texts_is_shown_by_the_texts_of_its_messages() -> None:
    turn = ConversationTurn(
        user_prompt="",
        assistant_response="",
        raw_messages=[ModelResponse(parts=[TextPart("Ada lives in Lyon."), ToolCallPart("find", {"city": "Lyon"})])],
    )
    asked = Asked("")
    summary = await create_llm_summarizer(asked.model).async_summarize([turn])
    assert 'Ada lives in Lyon.\nfind\n{"city":"Lyon"}' in asked.prompts[0]
    assert summary.startswith("Ada lives in Lyon. / find")
    only_text = ConversationTurn(user_prompt="", assistant_response="", raw_messages=["a plain message"])
    assert await create_llm_summarizer(Asked("").model).async_summarize([only_text]) == "a plain message"


def test_a_template_without_the_placeholder_for_turns_is_refused() -> None:
    for template in ("Summarize!", "{turns}", "", None):
        with pytest.raises(ConfigurationError, match=r"\{turns_text\}"):
            create_llm_summarizer(TestModel(), template)  # type: ignore[arg-type]
    for tokens in (0, -1, "many"):
        with pytest.raises(ConfigurationError, match="max_summary_tokens"):
            create_llm_summarizer(TestModel(), max_summary_tokens=tokens)  # type: ignore[arg-type]
    assert PLACE == "{turns_text}"


def test_the_default_model_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIREFLY_AGENTIC_MEMORY_SUMMARY_MODEL", raising=False)
    with pytest.raises(ConfigurationError, match="FIREFLY_AGENTIC_MEMORY_SUMMARY_MODEL"):
        create_llm_summarizer()
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_SUMMARY_MODEL", "test")
    assert "'test'" in repr(create_llm_summarizer())


def test_blocking_callers_can_summarize_inside_a_running_loop() -> None:
    asked = Asked("the summary")
    memory = ConversationMemory(summarize_threshold=1, summarizer=create_llm_summarizer(asked.model))

    def two_turns(conversation: str) -> str | None:
        memory.add_turn(conversation, "p", "a")
        memory.add_turn(conversation, "p", "a")
        return memory.get_summary(conversation)

    async def inside() -> str | None:
        return two_turns("inside")

    assert two_turns("outside") == "the summary"
    assert asyncio.run(inside()) == "the summary"
    assert len(asked.prompts) == 2


async def test_asynchronous_callers_can_summarize() -> None:
    asked = Asked("the summary")
    memory = ConversationMemory(summarize_threshold=1, summarizer=create_llm_summarizer(asked.model))
    for _ in range(3):
        await memory.async_add_turn("c", "p", "a")
    assert await memory.async_get_summary("c") == "the summary"
    window = await memory.async_get_window("c")
    assert window.messages[0].parts[0].content == "Summary of the conversation so far:\n  the summary"
    assert window.messages[0].parts[0].metadata == {"firefly_memory": "summary"}
    assert window.turns == (2,)


def test_a_summary_counts_towards_the_budget_and_is_left_out_if_it_does_not_fit() -> None:
    words = "word " * 100
    memory = ConversationMemory(summarize_threshold=1, summarizer=lambda _: words)
    for _ in range(3):
        memory.add_turn("c", "prompt", "answer")
    wide = memory.get_window("c", 1_000)
    estimate = TokenEstimator().estimate_messages(wide.messages)
    assert wide.tokens == pytest.approx(estimate, abs=8)
    assert len(wide.messages) == 3
    narrow = memory.get_window("c", 110)
    assert len(narrow.messages) == 2
    assert narrow.summary == words
    assert any("no room beside the newest turn" in reason for reason in narrow.left_out)


def called_from(summarizer: Any, way: str) -> Any:
    """What users make of a summarizer: functions that call it, and whatever makes functions of functions."""

    def blocking(turns: list[ConversationTurn]) -> str:
        return "Notes: " + str(summarizer(turns))

    async def calling(turns: list[ConversationTurn]) -> str:
        return blocking(turns)

    async def awaiting(turns: list[ConversationTurn]) -> str:
        return f"Notes: {await summarizer.async_summarize(turns)}"

    def returning(turns: list[ConversationTurn]) -> Any:
        return awaiting(turns)

    def with_prefix(prefix: str, turns: list[ConversationTurn]) -> str:
        return prefix + str(summarizer(turns))

    ways = {
        "function": blocking,
        "coroutine function that calls": calling,
        "coroutine function that awaits": awaiting,
        "function that returns an awaitable": returning,
        "partial function": partial(with_prefix, "Notes: "),
        "partial coroutine function": partial(partial(awaiting)),
    }
    return ways[way]


WAYS = [
    *("function", "coroutine function that calls", "coroutine function that awaits"),
    *("function that returns an awaitable", "partial function", "partial coroutine function"),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_custom_summarizer_can_call_the_summarizer(way: str) -> None:
    asked = Asked("the summary")
    summarizer = called_from(create_llm_summarizer(asked.model), way)
    memory = ConversationMemory(summarize_threshold=1, summarizer=summarizer)

    async def tasks() -> None:
        for _ in range(2):
            memory.add_turn("inside a loop", "p", "a")
            await memory.async_add_turn("tasks", "p", "a")

    for _ in range(2):
        memory.add_turn("blocking", "p", "a")
    asyncio.run(tasks())
    names = ("blocking", "inside a loop", "tasks")
    assert [memory.get_summary(name) for name in names] == ["Notes: the summary"] * 3
    assert len(asked.prompts) == 3


def test_the_summarizer_returns_its_text_with_and_without_a_running_loop() -> None:
    summarizer = create_llm_summarizer(Asked("the summary").model)
    turn = ConversationTurn(user_prompt="My name is Ada.", assistant_response="Hello Ada!")

    async def inside() -> str:
        return "Notes: " + summarizer([turn])

    assert "Notes: " + summarizer([turn]) == "Notes: the summary"
    assert asyncio.run(inside()) == "Notes: the summary"


async def test_other_tasks_run_while_the_model_summarizes() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        begun.set()
        await go_on.wait()
        return ModelResponse(parts=[TextPart("the summary")])

    summarizer = create_llm_summarizer(FunctionModel(respond))
    memory = ConversationMemory(summarize_threshold=1, summarizer=summarizer)
    await memory.async_add_turn("c", "p", "a")
    adding = asyncio.create_task(memory.async_add_turn("c", "p", "a"))
    await begun.wait()
    go_on.set()
    await adding
    assert await memory.async_get_summary("c") == "the summary"


async def test_a_cancelled_summary_is_retried() -> None:
    calls: list[int] = []
    begun = asyncio.Event()

    async def summarize(turns: list[ConversationTurn]) -> str:
        calls.append(len(turns))
        if len(calls) == 1:
            begun.set()
            await asyncio.Event().wait()
        return "done"

    memory = ConversationMemory(summarize_threshold=1, summarizer=summarize)
    await memory.async_add_turn("c", "p", "a")
    adding = asyncio.create_task(memory.async_add_turn("c", "p", "a"))
    await begun.wait()
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert len(await memory.async_get_turns("c")) == 2, "the turn was stored before"
    await memory.async_add_turn("c", "p", "a")
    assert await memory.async_get_summary("c") == "done"


async def test_a_slow_summarizer_delays_no_other_caller() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def summarize(_: list[ConversationTurn]) -> str:
        begun.set()
        await go_on.wait()
        return "done"

    memory = ConversationMemory(summarize_threshold=1, summarizer=summarize)
    await memory.async_add_turn("c", "p", "a")
    slow = asyncio.create_task(memory.async_add_turn("c", "p", "a"))
    await begun.wait()
    for number in range(3):
        assert (await memory.async_add_turn("c", "p", "a")).turn_id == 2 + number
    go_on.set()
    assert (await slow).turn_id == 1
    assert (await memory.async_get_window("c")).turns == (1, 2, 3, 4)


def test_a_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from firefly_memory.summarization import create_llm_summarizer\n"
        "try: create_llm_summarizer('test')\n"
        "except ImportError as error: print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "pip install 'firefly-memory[agents]'" in shown


def test_a_summarizer_must_be_callable() -> None:
    with pytest.raises(ConfigurationError, match="must be a function"):
        ConversationMemory(summarizer="openai:gpt-4o")  # type: ignore[arg-type]

    class Summarizer:
        async def __call__(self, turns: list[ConversationTurn]) -> Any:
            return f"{len(turns)}"

    memory = ConversationMemory(summarize_threshold=1, summarizer=Summarizer())
    memory.add_turn("c", "p", "a")
    memory.add_turn("c", "p", "a")
    assert memory.get_summary("c") == "1"

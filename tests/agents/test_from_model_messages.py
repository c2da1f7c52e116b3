"""Messages of pydantic-ai as messages of feeds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai import BinaryContent, ImageUrl
from pydantic_ai.messages import (
    CachePoint,
    DocumentUrl,
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
)

from firefly_memory import ConfigurationError, InvalidEntryError
from firefly_memory.agents import from_model_messages
from tests.support.feed_messages import CALL, NOON, returned, timeless


def test_what_is_said_and_done_has_its_type() -> None:
    messages: list[ModelMessage] = [
        ModelRequest(parts=[SystemPromptPart("Be brief."), UserPromptPart("Hello", timestamp=NOON)], instructions="x"),
        ModelResponse(parts=[ThinkingPart("hm"), TextPart("I look."), CALL], timestamp=NOON),
        ModelRequest(parts=[ToolReturnPart("look", {"tables": 5}, "c1", timestamp=NOON)]),
        ModelResponse(parts=[TextPart("Five.")], timestamp=NOON),
    ]
    at, own = NOON.isoformat(), "worker_1"
    called = {"tool": "look", "tool_call_id": "c1", "timestamp": at, "agent_key": own}
    assert from_model_messages(messages, own) == [
        {"type": "user_message", "content": "Hello", "timestamp": at, "agent_key": own},
        {"type": "assistant_message", "content": "I look.", "timestamp": at, "agent_key": own},
        {"type": "action", "args": {"at": 1}, **called},
        {"type": "observation", "content": {"tables": 5}, **called},
        {"type": "assistant_message", "content": "Five.", "timestamp": at, "agent_key": own},
    ]
    of_worker = from_model_messages(messages, own, role="worker")
    assert [each["type"] for each in of_worker] == ["task", "observation", "action", "observation", "final"]
    assert of_worker[1] == {"type": "observation", "content": "I look.", "timestamp": at, "agent_key": own}
    assert all("agent_key" not in each for each in from_model_messages(messages))


@pytest.mark.parametrize("outcome", ["failed", "denied", "interrupted", "retried"])
def test_a_call_that_brought_nothing_has_an_error(outcome: Any) -> None:
    found = timeless(from_model_messages(returned("no such table", outcome=outcome)))[1]
    called = {"tool": "look", "tool_call_id": "c1"}
    assert found == {"type": "error", "content": {"error_message": "no such table"}, **called}


def test_a_request_to_repeat_an_answer_is_an_error_without_a_tool() -> None:
    feedback = RetryFeedbackPart("a number, please", retry=RetryInfo(cause="model_retry"))
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("How many?")]),
        ModelResponse(parts=[TextPart("Some.")]),
        ModelRequest(parts=[feedback]),
        ModelResponse(parts=[TextPart("5")]),
    ]
    error = {"type": "error", "content": {"error_message": "a number, please"}}
    assert timeless(from_model_messages(messages))[2] == error
    found = timeless(from_model_messages(messages, role="worker"))
    assert [each["type"] for each in found] == ["task", "observation", "error", "final"]
    assert found[2] == error


def test_each_run_of_a_worker_has_a_final() -> None:
    runs: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("one")]),
        ModelResponse(parts=[TextPart("I think."), TextPart("first")]),
        ModelRequest(parts=[UserPromptPart("two")]),
        ModelResponse(parts=[TextPart("second, broken o")], state="interrupted"),
        ModelRequest(parts=[UserPromptPart("three")]),
        ModelResponse(parts=[TextPart("third")]),
    ]
    found = [(each["type"], each["content"]) for each in from_model_messages(runs, role="worker")]
    assert found == [
        ("task", "one"),
        ("observation", "I think."),
        ("final", "first"),
        ("task", "two"),
        ("observation", "second, broken o"),
        ("task", "three"),
        ("final", "third"),
    ]


def test_a_prompt_beside_a_result_is_no_task() -> None:
    messages = returned("see below")
    messages[1] = ModelRequest(parts=[*messages[1].parts, UserPromptPart("the contents of the file")])
    assert [each["type"] for each in from_model_messages(messages)] == ["action", "observation", "user_message"]
    assert timeless(from_model_messages(messages, role="worker"))[2] == {
        "type": "observation",
        "content": "the contents of the file",
    }


def test_the_tools_of_a_provider_are_actions_as_well() -> None:
    call = NativeToolCallPart("web_search", {"query": "x"}, tool_call_id="s1", provider_name="a")
    answer = NativeToolReturnPart("web_search", ["hit"], "s1", provider_name="a")
    response = ModelResponse(parts=[call, answer, TextPart("found")])
    assert timeless(from_model_messages([response], role="worker")) == [
        {"type": "action", "tool": "web_search", "args": {"query": "x"}, "tool_call_id": "s1"},
        {"type": "observation", "content": ["hit"], "tool": "web_search", "tool_call_id": "s1"},
        {"type": "final", "content": "found"},
    ]


def test_arguments_are_read_from_json() -> None:
    calls = [ToolCallPart("look", args, tool_call_id="c1") for args in ('{"at": 1}', None, "", "{broken", "[1]")]
    found = [from_model_messages([ModelResponse(parts=[call])])[0]["args"] for call in calls]
    assert found == [{"at": 1}, {}, {}, {"INVALID_JSON": "{broken"}, {"INVALID_JSON": "[1]"}]


def test_an_old_request_to_repeat_a_call_is_its_error() -> None:
    with pytest.warns(UserWarning, match="RetryPromptPart"):
        part = RetryPromptPart("no", tool_name="look", tool_call_id="c1")
    (found,) = timeless(from_model_messages([ModelRequest(parts=[part])]))
    assert found == {"type": "error", "content": {"error_message": "no"}, "tool": "look", "tool_call_id": "c1"}


def test_blank_texts_are_left_out() -> None:
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(" ")]),
        ModelResponse(parts=[TextPart(""), TextPart("\n")]),
    ]
    assert from_model_messages(messages) == []


IMAGE = BinaryContent(b"1234", media_type="image/png")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (IMAGE, "[file image/png, 4 bytes]"),
        (ImageUrl("https://example.org/a.png"), "[file image/*: https://example.org/a.png]"),
        (DocumentUrl("data:application/pdf;base64,QUJD"), "[file application/*]"),
        (UploadedFile(file_id="file-7", provider_name="openai", media_type="text/csv"), "[file text/csv: file-7]"),
    ],
)
def test_a_text_stands_for_a_file(content: Any, text: str) -> None:
    (prompt,) = from_model_messages(
        [ModelRequest(parts=[UserPromptPart(["Look:", content, CachePoint(), "and say."])])]
    )
    assert prompt["content"] == f"Look:\n{text}\nand say."
    alone, in_list = (from_model_messages(returned(each))[1]["content"] for each in (content, [content, {"n": 1}]))
    assert (alone, in_list) == (text, [text, {"n": 1}])


def test_a_file_of_the_model_is_kept_as_a_text() -> None:
    (answer,) = from_model_messages([ModelResponse(parts=[FilePart(IMAGE)])])
    assert (answer["type"], answer["content"]) == ("assistant_message", "[file image/png, 4 bytes]")


@dataclass
class Price:
    amount: Decimal
    day: date


def test_values_are_written_as_stores_write_them() -> None:
    content = [Price(Decimal("1.50"), date(2026, 5, 1)), {3, 1}, (b"ab",), {1: NOON}, "\ud800\x00", 10**40, None]
    found = from_model_messages(returned(content))[1]["content"]
    assert found[:4] == [{"amount": "1.50", "day": "2026-05-01"}, [1, 3], ["YWI="], {"1": NOON.isoformat()}]
    assert found[4:] == ["\ud800\x00", 10**40, None]


@pytest.mark.parametrize("content", [float("nan"), {"a": object()}])
def test_a_value_that_stores_refuse_is_refused_with_its_path(content: Any) -> None:
    with pytest.raises(InvalidEntryError, match=r"messages\[1\]\.parts\[0\]\.content"):
        from_model_messages(returned(content))


@pytest.mark.parametrize("role", ["manager", "", None, ["worker"]])
def test_an_unknown_role_is_refused(role: Any) -> None:
    with pytest.raises(ConfigurationError, match="role must be 'assistant' or 'worker'"):
        from_model_messages([], role=role)


def test_only_messages_of_pydantic_ai_are_taken() -> None:
    other: Any = {"role": "user", "content": "hi"}
    with pytest.raises(InvalidEntryError, match=r"messages\[0\].*must be a message of pydantic-ai, not dict"):
        from_model_messages([other])

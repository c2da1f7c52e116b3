"""One reader for the messages of every provider."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    RetryPromptPart,
    SpeechPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from firefly_memory.messages.parts import SYSTEM_KINDS
from firefly_memory.messages.shapes import read
from firefly_memory.messages.tool_links import Links, links_of, without_orphans
from tests.support.value_strategies import json_values

ARGUMENTS = '{"city": "Porto"}'
CALL = ("call 1", "weather", ARGUMENTS)

CALLS: dict[str, Any] = {
    "OpenAI, chat": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call 1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}],
    },
    "OpenAI, chat, custom tool": {
        "role": "assistant",
        "tool_calls": [{"id": "call 1", "type": "custom", "custom": {"name": "weather", "input": ARGUMENTS}}],
    },
    "OpenAI, responses": {
        "type": "function_call",
        "id": "item 1",
        "call_id": "call 1",
        "name": "weather",
        "arguments": ARGUMENTS,
    },
    "OpenAI, responses, custom tool": {
        "type": "custom_tool_call",
        "id": "item 1",
        "call_id": "call 1",
        "name": "weather",
        "input": ARGUMENTS,
    },
    "Anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "call 1", "name": "weather", "input": ARGUMENTS}],
    },
    "pydantic-ai": ModelResponse([ToolCallPart("weather", ARGUMENTS, "call 1")]),
}

RESULTS: dict[str, Any] = {
    "OpenAI, chat": {"role": "tool", "tool_call_id": "call 1", "content": "14 °C"},
    "OpenAI, responses": {"type": "function_call_output", "call_id": "call 1", "output": "14 °C"},
    "OpenAI, responses, custom tool": {"type": "custom_tool_call_output", "call_id": "call 1", "output": "14 °C"},
    "Anthropic": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "call 1", "content": "14 °C"}],
    },
    "pydantic-ai": ModelRequest([ToolReturnPart("weather", "14 °C", "call 1")]),
}


def as_json(message: ModelMessage) -> Any:
    (document,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    return document


CALLS["pydantic-ai, JSON"] = as_json(CALLS["pydantic-ai"])
RESULTS["pydantic-ai, JSON"] = as_json(RESULTS["pydantic-ai"])


@pytest.mark.parametrize("provider", CALLS)
def test_a_tool_call_has_an_id_a_name_and_arguments(provider: str) -> None:
    message = read(CALLS[provider])
    assert message.tool_calls == (CALL,)
    assert message == ("assistant", (), (CALL,), (), ())


@pytest.mark.parametrize("provider", RESULTS)
def test_a_tool_result_has_an_id_and_a_content_and_is_no_text_of_the_message(provider: str) -> None:
    message = read(RESULTS[provider])
    name = "weather" if provider.startswith("pydantic-ai") else None
    assert message == ("tool", (), (), (("call 1", name, "14 °C", False),), ())


@pytest.mark.parametrize("answering", RESULTS)
@pytest.mark.parametrize("calling", CALLS)
def test_a_result_is_linked_to_its_call_across_turns(calling: str, answering: str) -> None:
    assert links_of([[CALLS[calling]], [], [RESULTS[answering]]]) == Links([(0, 2)], [], [])


@pytest.mark.parametrize("provider", RESULTS)
def test_a_result_without_its_call_is_an_orphan(provider: str) -> None:
    assert links_of([[RESULTS[provider]]]).orphans == [0]
    kept = without_orphans([[CALLS["OpenAI, chat"] | {"tool_calls": []}], [RESULTS[provider]]])
    assert kept[1] == []


RETRIES: list[ModelMessage]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    RETRIES = [
        ModelRequest([RetryPromptPart("again", tool_name="weather", tool_call_id="call 1")]),
        ModelRequest([ToolReturnPart("weather", "again", "call 1", outcome="retried")]),
    ]
    RETRY_WITHOUT_TOOL = ModelRequest([RetryPromptPart("again")])


@pytest.mark.parametrize("retry", RETRIES)
def test_a_request_to_try_again_answers_the_call_of_a_tool(retry: ModelMessage) -> None:
    for message in (retry, as_json(retry)):
        (result,) = read(message).tool_results
        assert (result.id, result.name, result.is_error) == ("call 1", "weather", True)
        assert links_of([[CALLS["pydantic-ai"]], [message]]) == Links([(0, 1)], [], [])


def test_a_request_to_try_again_that_names_no_tool_answers_no_call() -> None:
    feedback = ModelRequest([RetryFeedbackPart("again", retry=RetryInfo(cause="model_retry"))])
    for request in (RETRY_WITHOUT_TOOL, feedback):
        for message in (request, as_json(request)):
            assert read(message).tool_results == ()
            assert read(message).role == "tool"
            assert links_of([[message]]) == Links([], [], [])


@pytest.mark.parametrize(
    "result",
    [
        {"role": "tool", "tool_call_id": "call 1", "content": "no", "status": "error"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call 1", "content": "no", "is_error": True}]},
        ModelRequest([ToolReturnPart("weather", "no", "call 1", outcome="failed")]),
    ],
)  # fmt: skip
def test_a_result_says_whether_the_tool_failed(result: Any) -> None:
    assert [result.is_error for result in read(result).tool_results] == [True]


def test_a_result_of_anthropic_may_have_no_content() -> None:
    message = read({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call 1"}]})
    assert message.tool_results == (("call 1", None, None, False),)


def test_older_functions_of_openai_have_no_ids() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": ARGUMENTS}}
    result = {"role": "function", "name": "weather", "content": "14 °C"}
    assert read(call).tool_calls == ((None, "weather", ARGUMENTS),)
    assert read(result) == ("tool", (), (), ((None, "weather", "14 °C", False),), ())
    assert links_of([[call], [result]]) == Links([], [], [])


def test_tools_that_a_provider_runs_are_not_answered_by_the_program() -> None:
    theirs = ModelResponse([NativeToolCallPart("search", {}, "call 1"), NativeToolReturnPart("search", [1], "call 1")])
    anthropic = {"role": "assistant", "content": [{"type": "server_tool_use", "id": "call 1", "name": "search"}]}
    for message in (theirs, as_json(theirs), anthropic):
        assert read(message).tool_calls == ()
        assert links_of([[message]]) == Links([], [], [])


def test_a_call_without_an_id_hides_no_other_call() -> None:
    message = {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "a"}}, 3, {"id": 7, "function": {"name": "b"}}],
    }
    assert [call.id for call in read(message).tool_calls] == [None, None, "7"]
    assert links_of([[message]]).open_calls == [0]


@dataclass
class ObjectOfSDK:
    role: str
    content: str


IMAGE = "https://example.org/a.png"

ROLES: list[tuple[Any, str | None, tuple[str, ...]]] = [
    ("plain text", None, ("plain text",)),
    ({"role": "user", "content": "hi"}, "user", ("hi",)),
    ({"role": "human", "content": "hi"}, "user", ("hi",)),
    ({"role": "ai", "content": "hi"}, "assistant", ("hi",)),
    ({"role": "developer", "content": "be brief"}, "system", ("be brief",)),
    ({"role": "critic", "content": "hm"}, "critic", ("hm",)),
    ({"role": 5, "content": "hm"}, None, ("hm",)),
    ({"role": "assistant", "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]}, "assistant", ("a", "b")),
    ({"role": "assistant", "content": "a", "reasoning_content": "hm", "name": "x"}, "assistant", ("a",)),
    ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "tool_result", "tool_use_id": "1"}]}, "user", ("a",)),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, "assistant", ()),
    (ObjectOfSDK("assistant", "hi"), "assistant", ("hi",)),
    (ModelRequest([SystemPromptPart("be brief")]), "system", ("be brief",)),
    (ModelRequest([SystemPromptPart("be brief"), UserPromptPart("hi")]), "user", ("be brief", "hi")),
    (ModelRequest([ToolReturnPart("f", "x", "1"), UserPromptPart(["hi", TextContent("you")])]), "user", ("hi", "you")),
    (ModelRequest([SpeechPart(speaker="user", transcript="hi")]), "user", ("hi",)),
    (ModelRequest([]), None, ()),
    (ModelResponse([ThinkingPart("hm"), TextPart("hi")]), "assistant", ("hi",)),
    ({"kind": "request", "parts": 3}, None, ()),
    ({"any": "value"}, None, ()),
    (None, None, ()),
    (12, None, ()),
]  # fmt: skip


@pytest.mark.parametrize(("message", "role", "texts"), ROLES)
def test_a_message_has_a_role_and_texts(message: Any, role: str | None, texts: tuple[str, ...]) -> None:
    for each in (message, as_json(message)) if isinstance(message, (ModelRequest, ModelResponse)) else (message,):
        assert read(each).role == role
        assert read(each).texts == texts


FILES: list[tuple[Any, tuple[Any, ...]]] = [
    ({"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}, ("image/*", None, IMAGE, None, True)),
    ({"type": "input_image", "image_url": IMAGE}, ("image/*", None, IMAGE, None, False)),
    ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, ("audio/wav", "AAAA", None, None, False)),
    ({"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}, ("application/*", "data:application/pdf;base64,AAAA", None, None, False)),
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}, ("image/png", "AAAA", None, None, False)),
    ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}, ("text/plain", "hi", None, "hi", False)),
    (ImageUrl(IMAGE), ("image/*", None, IMAGE, None, False)),
    (BinaryContent(b"\x00", media_type="audio/wav"), ("audio/wav", b"\x00", None, None, False)),
]  # fmt: skip


@pytest.mark.parametrize(("part", "file"), FILES)
def test_a_file_has_a_media_type_and_data_or_a_url(part: Any, file: tuple[Any, ...]) -> None:
    is_dict = isinstance(part, dict)
    message = {"role": "user", "content": [part, "look"]} if is_dict else ModelRequest([UserPromptPart([part, "look"])])
    assert read(message) == ("user", ("look",), (), (), (file,))


@given(json_values)
def test_every_json_value_can_be_read(value: Any) -> None:
    for message in (value, {"role": value}, {"role": "user", "content": value}, {"parts": [value], "kind": "request"}):
        read(message)
        links_of([[message], [message]])
    for name in ("tool_calls", "function_call", "tool_call_id", "content", "parts", "type", "kind", "role"):
        read({"role": "tool", "type": "tool_use", name: value})
        links_of([[{"role": "tool", "type": "tool_use", name: value}]])


def test_reading_messages_does_not_load_pydantic_ai() -> None:
    code = (
        "import sys; from firefly_memory.messages.shapes import read; read({'role': 'user', 'content': 'hi'}); "
        "assert not {'pydantic_ai', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_system_speaks_by_these_parts() -> None:
    kinds = {"system-prompt", "instruction-delta", "instruction-baseline", "capability-load-delta"}
    assert kinds | {"model-settings-delta"} == SYSTEM_KINDS

"""The tokens of messages and turns."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    CachePoint,
    CompactionPart,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SpeechPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
    VideoUrl,
)
from pydantic_ai.usage import RequestUsage

from firefly_memory.tokens import PER_MESSAGE, PER_TOOL, TokenEstimator, file_tokens
from tests.support.tiktoken_vocabularies import other_implementation
from tests.support.value_strategies import json_values

# Messages of pydantic-ai


def text_of(count: int) -> str:
    """Text that has that many tokens."""
    return "x" + " x" * (count - 1)


Cost = int | tuple[int, str]


def tokens_of(*costs: Cost) -> int:
    """The sum of numbers, and of texts as another implementation counts them."""
    count = other_implementation("o200k_base")
    return sum(cost if isinstance(cost, int) else cost[0] + count(cost[1]) for cost in costs)


PNG = b"\x89PNG" + bytes(200_000)

PARTS_OF_REQUESTS: list[tuple[Any, Cost]] = [
    (SystemPromptPart(text_of(30)), 30),
    (UserPromptPart(text_of(20)), 20),
    (UserPromptPart([text_of(20), TextContent(text_of(5), metadata={"id": "x" * 999}), CachePoint()]), 25),
    (UserPromptPart([ImageUrl("https://example.org/cat.png")]), 1_600),
    (UserPromptPart([ImageUrl("https://example.org/cat", vendor_metadata={"detail": "low"})]), 85),
    (UserPromptPart([ImageUrl(f"data:image/png;base64,{base64.b64encode(PNG).decode()}")]), 1_600),
    (UserPromptPart([AudioUrl("https://example.org/song.mp3")]), 2_000),
    (UserPromptPart([VideoUrl("https://example.org/film")]), 18_000),
    (UserPromptPart([DocumentUrl("https://example.org/paper")]), 4_000),
    (UserPromptPart([UploadedFile("file-1", "openai", media_type="image/png")]), 1_600),
    (UserPromptPart([UploadedFile("file-1", "anthropic")]), 4_000),
    (UserPromptPart([BinaryContent(PNG, media_type="image/png")]), 1_600),
    (UserPromptPart([BinaryContent(bytes(64_000), media_type="audio/wav")]), 64),
    (UserPromptPart([BinaryContent(bytes(64_000), media_type="audio/mpeg")]), 256),
    (UserPromptPart([BinaryContent(bytes(1_000_000), media_type="video/mp4")]), 2_000),
    (UserPromptPart([BinaryContent(bytes(100_000), media_type="application/pdf")]), 5_000),
    (UserPromptPart([BinaryContent(bytes(100), media_type="application/pdf")]), 1_000),
    (UserPromptPart([BinaryContent(text_of(77).encode(), media_type="text/plain")]), 77),
    (UserPromptPart([BinaryContent(b'{"a": "\xff\xfe?>"}', media_type="application/json")]), (0, '{"a": "\ufffd\ufffd?>"}')),
    (ToolReturnPart("look", text_of(40), tool_call_id="1"), PER_TOOL + 41),
    (ToolReturnPart("look", None, tool_call_id="1"), PER_TOOL + 1),
    (ToolReturnPart("look", {"a": [1, None]}, tool_call_id="1", metadata="x" * 999), (PER_TOOL + 1, '{"a":[1,null]}')),
    (ToolReturnPart("look", BinaryContent(PNG, media_type="image/png"), tool_call_id="1"), PER_TOOL + 1 + 1_600),
    (
        ToolReturnPart("look", [text_of(9), {"a": 1}, ImageUrl("https://example.org/a.png")], tool_call_id="1"),
        (PER_TOOL + 1_610, '{"a":1}'),
    ),
    (ToolReturnPart("look", {"kind": ["binary"], "type": "image"}, tool_call_id="1"), (PER_TOOL + 1, '{"kind":["binary"],"type":"image"}')),
    (ToolReturnPart("look", {"when": datetime(2026, 1, 2, tzinfo=UTC)}, tool_call_id="1"), (PER_TOOL + 1, '{"when":"2026-01-02T00:00:00Z"}')),
    (ToolReturnPart("look", text_of(5), tool_call_id="1", outcome="retried"), PER_TOOL + 6),
    (RetryFeedbackPart(text_of(7), retry=RetryInfo(cause="model_retry")), PER_TOOL + 40 + 7),
    (SpeechPart(speaker="user", transcript=text_of(12)), 12),
    (SpeechPart(speaker="user", transcript=text_of(12), audio=BinaryContent(bytes(64_000), media_type="audio/wav")), 64),
]  # fmt: skip

PARTS_OF_RESPONSES: list[tuple[Any, Cost]] = [
    (TextPart(text_of(50)), 50),
    (ThinkingPart(text_of(60), signature="s" * 500), 60),
    (ThinkingPart("", signature="s" * 500), 100),
    (ThinkingPart(""), 0),
    (ToolCallPart("look", {"q": "cat", "n": 3}, "1"), (PER_TOOL + 1, '{"q":"cat","n":3}')),
    (ToolCallPart("look", '{"q": "cat"}', "1"), (PER_TOOL + 1, '{"q": "cat"}')),
    (ToolCallPart("look", None, "1"), PER_TOOL + 1),
    (NativeToolCallPart("look", {"q": "cat"}, "1"), (PER_TOOL + 1, '{"q":"cat"}')),
    (NativeToolReturnPart("look", [1, 2], "1"), (PER_TOOL + 1, "[1,2]")),
    (FilePart(BinaryContent(PNG, media_type="image/png")), 1_600),
    (CompactionPart(text_of(44), provider_name="anthropic"), 44),
    (CompactionPart(None, provider_name="openai", provider_details={"encrypted_content": "e" * 1_000}), 200),
    (SpeechPart(speaker="assistant", transcript=text_of(12), audio=BinaryContent(bytes(64_000), media_type="audio/wav")), 12),
]  # fmt: skip

MESSAGES: list[tuple[ModelMessage, Cost]] = [
    *((ModelRequest([part]), tokens) for part, tokens in PARTS_OF_REQUESTS),
    *((ModelResponse([part]), tokens) for part, tokens in PARTS_OF_RESPONSES),
]


def name_of(value: Any) -> str | None:
    return type(value.parts[0]).__name__ if isinstance(value, (ModelRequest, ModelResponse)) else None


@pytest.mark.parametrize(("message", "tokens"), MESSAGES, ids=name_of)
def test_a_message_of_pydantic_ai_costs_what_is_sent_of_it(message: ModelMessage, tokens: Cost) -> None:
    assert TokenEstimator().estimate_message(message) == tokens_of(PER_MESSAGE, tokens)


@pytest.mark.parametrize(("message", "tokens"), MESSAGES, ids=name_of)
def test_a_message_costs_the_same_as_json(message: ModelMessage, tokens: Cost) -> None:
    (document,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    assert TokenEstimator().estimate_message(document) == tokens_of(PER_MESSAGE, tokens)
    (loaded,) = ModelMessagesTypeAdapter.validate_python([document])
    assert TokenEstimator().estimate_message(loaded) == tokens_of(PER_MESSAGE, tokens)


def test_parts_of_a_message_add_up() -> None:
    request = ModelRequest([part for part, _ in PARTS_OF_REQUESTS])
    response = ModelResponse([part for part, _ in PARTS_OF_RESPONSES])
    tokens = tokens_of(2 * PER_MESSAGE, *(tokens for _, tokens in PARTS_OF_REQUESTS + PARTS_OF_RESPONSES))
    assert TokenEstimator().estimate_messages([request, response]) == tokens
    assert TokenEstimator().estimate_turn("", "", [request, response]) == tokens


def test_recorded_usage_ids_and_metadata_cost_nothing() -> None:
    usage = RequestUsage(input_tokens=90_000, output_tokens=7_000)
    response = ModelResponse([TextPart(text_of(3))], usage=usage, model_name="m" * 99, metadata={"x": "y" * 999})
    assert TokenEstimator().estimate_message(response) == PER_MESSAGE + 3


def test_instructions_are_sent_once_and_are_not_replayed() -> None:
    """As pydantic-ai does it: those of the newest request, and a stored turn is followed by a newer one."""
    older = ModelRequest([UserPromptPart(text_of(10))], instructions=text_of(500))
    newer = ModelRequest([UserPromptPart(text_of(10))], instructions=text_of(70))
    bare = ModelRequest([UserPromptPart(text_of(10))])
    estimator = TokenEstimator()
    assert estimator.estimate_message(older) == PER_MESSAGE + 510
    assert estimator.estimate_messages([older, newer, bare]) == 3 * (PER_MESSAGE + 10) + 70
    assert estimator.estimate_turn("", "", [older, newer]) == 2 * (PER_MESSAGE + 10)


def test_a_file_inside_other_data_is_counted_as_the_base64_that_pydantic_ai_makes_of_it() -> None:
    part = ToolReturnPart("look", {"cat": BinaryContent(PNG, media_type="image/png")}, tool_call_id="1")
    sent = part.model_response_str()
    tokens = TokenEstimator().estimate_message(ModelRequest([part]))
    assert abs(tokens - tokens_of((0, sent))) < 50
    assert tokens > 10_000


@dataclass
class Unknown:
    note: str
    part_kind: str = "from-the-future"


def test_parts_that_are_not_known_count_by_their_json() -> None:
    tokens = tokens_of(PER_MESSAGE, (0, '{"note":"hello there","part_kind":"from-the-future"}'))
    request = ModelRequest([])
    request.parts = [Unknown("hello there")]  # type: ignore[list-item]
    assert TokenEstimator().estimate_message(request) == tokens


# Dicts, strings, anything


PIXELS = base64.b64encode(PNG).decode()

DICTS: list[tuple[Any, Cost]] = [
    (text_of(8), 8),
    ({"role": "user", "content": text_of(8)}, 8),
    ({"role": "user", "content": text_of(8), "name": "x", "id": "msg_" + "x" * 99, "metadata": {"x": "y" * 99}}, 9),
    ({"role": "assistant", "content": None, "refusal": text_of(3)}, 3),
    ({"role": "assistant", "content": "", "reasoning_content": text_of(30)}, 30),
    ({"role": "user", "content": [{"type": "text", "text": text_of(8)}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}, 1_608),
    ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS}", "detail": "low"}}]}, 85),
    ({"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PIXELS}"}]}, 1_600),
    ({"role": "user", "content": [{"type": "input_image", "file_id": "file-1", "detail": "low"}]}, 85),
    ({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "A" * 40_000, "format": "wav"}}]}, 30),
    ({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "A" * 40_000, "format": "mp3"}}]}, 120),
    ({"role": "user", "content": [{"type": "file", "file": {"file_data": "data:application/pdf;base64," + "A" * 40_000}}]}, 1_500),
    ({"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}, 4_000),
    ({"role": "user", "content": [{"type": "input_file", "file_url": "https://example.org/a.pdf"}]}, 4_000),
    ({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q":"cat"}'}}]}, (PER_TOOL + 1, '{"q":"cat"}')),
    ({"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}}, PER_TOOL + 2),
    ({"role": "tool", "tool_call_id": "c1", "content": text_of(8)}, PER_TOOL + 8),
    ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text_of(8), "annotations": []}]}, 8),
    ({"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}, PER_TOOL + 2),
    ({"type": "function_call_output", "call_id": "c1", "output": text_of(8)}, PER_TOOL + 8),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": text_of(8)}], "encrypted_content": "e" * 500}, 8),
    ({"type": "reasoning", "summary": [], "encrypted_content": "e" * 500}, 100),
    ({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"q": "cat"}}]}, (PER_TOOL + 1, '{"q":"cat"}')),
    ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": text_of(8)}]}, PER_TOOL + 8),
    ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": text_of(8)}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}}]}]}, PER_TOOL + 1_608),
    ({"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}]}, 1_600),
    ({"role": "user", "content": [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text_of(8)}}]}, 8),
    ({"role": "user", "content": [{"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": text_of(8)}]}}]}, 8),
    ({"role": "user", "content": [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A" * 40_000}}]}, 1_500),
    ({"role": "user", "content": [{"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "not base64!"}}]}, (0, "not base64!==")),
    ({"role": "assistant", "content": [{"type": "thinking", "thinking": text_of(8), "signature": "s" * 500}]}, 8),
    ({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "e" * 500}]}, 100),
    ({"prompt": "hello", "n": 1}, (0, '{"prompt":"hello","n":1}')),
    ({"role": "user", "content": "", "lines": [1, 2]}, (0, "[1,2]")),
    ({"role": "assistant", "tool_calls": {"a": 1}}, (0, '{"a":1}')),
    ({"type": "text", "body": "hello"}, (0, '{"type":"text","body":"hello"}')),
    ({"type": "function", "description": "hello"}, (0, '{"type":"function","description":"hello"}')),
    ([1, 2, "three"], (0, '[1,2,"three"]')),
    (12, 1),
    (None, 1),
    ({"role": "user", "content": 12}, 1),
]  # fmt: skip


@pytest.mark.parametrize(("message", "tokens"), DICTS, ids=lambda value: json.dumps(value)[:60])
def test_a_dict_or_any_other_value_costs_what_is_sent_of_it(message: Any, tokens: Cost) -> None:
    assert TokenEstimator().estimate_message(message) == tokens_of(PER_MESSAGE, tokens)


@given(json_values)
def test_every_json_value_is_counted(value: Any) -> None:
    for message in (value, {"role": "user", "content": value}, {"parts": [value]}, {"type": "text", "content": value}):
        assert TokenEstimator().estimate_message(message) > PER_MESSAGE - 1


KINDS = [
    *("text", "tool-call", "tool-return", "tool_result", "tool_use", "function", "retry-prompt", "thinking", "speech"),
    *("image", "image_url", "input_audio", "document", "file", "binary", "image-url", "uploaded-file", "cache-point"),
]
MEMBERS = [
    *("content", "text", "function", "name", "input", "tool_name", "output", "source", "url", "data", "media_type"),
    *(
        "image_url",
        "input_audio",
        "file",
        "file_data",
        "detail",
        "speaker",
        "audio",
        "transcript",
        "thinking",
        "format",
    ),
]


@given(json_values)
def test_a_known_kind_with_anything_in_it_is_counted(value: Any) -> None:
    for kind in KINDS:
        assert TokenEstimator().estimate_message(
            {"role": "user", "content": [{"type": kind, **dict.fromkeys(MEMBERS, value)}]}
        )
        for member in MEMBERS:
            assert TokenEstimator().estimate_message({"role": "user", "content": [{"type": kind, member: value}]})


class Message:
    """Like the messages of a provider's SDK."""

    def __init__(self) -> None:
        self.role = "assistant"
        self.content = text_of(8)
        self.parts = None


def test_an_object_with_a_role_is_counted_somehow() -> None:
    assert TokenEstimator().estimate_message(Message()) > PER_MESSAGE
    assert TokenEstimator().estimate_message(object()) > PER_MESSAGE
    itself: dict[str, Any] = {}
    itself["itself"] = itself
    assert TokenEstimator().estimate_message(itself) > PER_MESSAGE


def test_no_messages_cost_nothing_and_a_turn_at_least_one() -> None:
    assert TokenEstimator().estimate_messages([]) == 0
    assert TokenEstimator().estimate_turn("", "") >= 1
    assert TokenEstimator().estimate_turn("", "", [{"parts": []}]) >= 1


def test_a_turn_without_messages_costs_its_prompt_and_response_as_two() -> None:
    assert TokenEstimator().estimate_turn(text_of(8), text_of(9), []) == 2 * PER_MESSAGE + 17


def test_a_turn_with_messages_costs_these_and_not_its_texts_as_well() -> None:
    messages = ["hi", {"role": "assistant", "content": text_of(9)}]
    assert TokenEstimator().estimate_turn("x" * 999, "y" * 999, messages) == 2 * PER_MESSAGE + 10


@pytest.mark.parametrize(
    ("media_type", "size", "tokens"),
    [
        ("image/png", 10, 1_600),
        ("IMAGE/JPEG", None, 1_600),
        ("audio/wav", 10_000, 10),
        ("audio/mpeg", 10_000, 40),
        ("audio/mpeg", 0, 1),
        ("audio/ogg", None, 2_000),
        ("video/mp4", 10_000, 20),
        ("video/mp4", None, 18_000),
        ("application/pdf", 100_000, 5_000),
        ("application/pdf", None, 4_000),
        ("", 1, 1_000),
    ],
)
def test_the_table_of_files(media_type: str, size: int | None, tokens: int) -> None:
    assert file_tokens(media_type, size) == tokens

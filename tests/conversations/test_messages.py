"""Messages of turns: pydantic-ai's come back equal, others as JSON values; calls and results are linked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    BinaryImage,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from firefly_memory import ConversationMemory, CorruptDataError, InvalidEntryError, SQLiteStore
from firefly_memory.messages.storage import decoded, encoded
from firefly_memory.messages.tool_links import first_whole
from firefly_memory.testing import Mode
from tests.support.backends import BACKENDS, Backend, Place
from tests.support.pydantic_ai_messages import EVERYTHING


@pytest.mark.parametrize("backend", [each for each in BACKENDS if each.modes == tuple(Mode)], ids=str)
def test_messages_of_pydantic_ai_come_back_equal(backend: Backend, place: Place) -> None:
    store = backend.open(place)
    memory = ConversationMemory(store=store)
    conversation = memory.new_conversation()
    added = memory.add_turn(conversation, "p", "a", EVERYTHING)
    assert added.raw_messages == EVERYTHING
    other = ConversationMemory(store=store)
    assert other.get_message_history(conversation) == EVERYTHING
    assert other.get_turns(conversation) == [added]
    memory.clear(conversation)
    memory.store.close_sync()


def test_a_turn_of_texts_is_always_replayed_as_the_same_two_messages() -> None:
    memory = ConversationMemory()
    conversation = memory.new_conversation()
    turn = memory.add_turn(conversation, "hello", "hi")
    request, response = memory.get_message_history(conversation)
    assert (request.parts[0].content, response.parts[0].content) == ("hello", "hi")
    assert request.timestamp == response.timestamp == turn.created_at
    assert memory.get_message_history(conversation) == [request, response]
    memory.add_turn(conversation, "", "only an answer")
    assert len(memory.get_message_history(conversation)) == 3


def test_texts_are_replayed_in_the_format_of_the_other_messages() -> None:
    memory = ConversationMemory()
    conversation = memory.new_conversation()
    memory.add_turn(conversation, "hello", "hi")
    memory.add_turn(conversation, "p", "a", [{"role": "user", "content": "p"}, {"role": "assistant", "content": "a"}])
    assert [message["role"] for message in memory.get_message_history(conversation)] == ["user", "assistant"] * 2


def test_without_pydantic_ai_texts_are_replayed_as_dicts(tmp_path: Path) -> None:
    code = """if True:
        import sys
        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "pydantic_ai":
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Missing())
        from firefly_memory import ConversationMemory, MissingDependencyError, SQLiteStore
        memory = ConversationMemory(store=SQLiteStore(sys.argv[1]))
        memory.add_turn("plain", "hello", "hi")
        print(memory.get_message_history("plain"))
        try:
            memory.get_message_history("theirs")
        except MissingDependencyError as error:
            print(error)
    """
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        ConversationMemory(store=store).add_turn("theirs", "p", "a", EVERYTHING)
    shown = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True).stdout
    assert "[{'role': 'user', 'content': 'hello'}, {'role': 'assistant', 'content': 'hi'}]" in shown
    assert "pip install 'firefly-memory[agents]'" in shown


def test_messages_that_an_earlier_version_stored_keep_loading(tmp_path: Path) -> None:
    """As pydantic-ai 0.x wrote them: without timestamps of requests, with ``vendor_details``, usage in its old form."""
    stored = [
        {
            "kind": "request",
            "parts": [{"part_kind": "user-prompt", "content": "hello", "timestamp": "2024-12-01T10:00:00Z"}],
        },
        {
            "kind": "response",
            "model_name": "gpt-4",
            "timestamp": "2024-12-01T10:00:01Z",
            "vendor_details": {"finish_reason": "stop"},
            "usage": {"requests": 1, "request_tokens": 5, "response_tokens": 2, "total_tokens": 7},
            "parts": [
                {"part_kind": "text", "content": "hi"},
                {"part_kind": "tool-call", "tool_name": "f", "args": {"a": 1}, "tool_call_id": "1"},
            ],
        },
    ]
    memory = ConversationMemory(store=SQLiteStore(tmp_path / "memory.db"))
    turn = {"turn_id": 0, "user_prompt": "hello", "assistant_response": "hi", "messages_format": "pydantic-ai"}
    memory.import_conversation({"conversation_id": "old", "turns": [{**turn, "raw_messages": stored}], "summary": None})
    assert memory.get_message_history("old") == ModelMessagesTypeAdapter.validate_python(stored)
    memory.store.close_sync()


def test_unwritable_messages_are_refused_before_anything_is_written() -> None:
    memory = ConversationMemory()
    for messages in (
        [*EVERYTHING, {"role": "user", "content": "mixed"}],
        [ModelRequest(parts=[UserPromptPart("\ud800")])],
        [ModelRequest(parts=[ToolReturnPart("f", object(), tool_call_id="1")])],
    ):
        with pytest.raises(InvalidEntryError, match="raw_messages"):
            memory.add_turn("c", "p", "a", messages)
    assert memory.get_turns("c") == []


def test_damaged_messages_are_named_and_not_changed(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        memory = ConversationMemory(store=store)
        memory.add_turn("c", "p", "a", EVERYTHING)
        for text, form in (
            ("{", "pydantic-ai"),
            ('[{"kind": "nonsense"}]', "pydantic-ai"),
            ("[1]", "other"),
            ("{}", "json"),
        ):
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE memory_turns SET messages = ?, messages_format = ?", (text, form))
            connection.close()
            with pytest.raises(CorruptDataError, match="turn 0 of conversation 'c'"):
                memory.get_message_history("c")
        assert memory.get_total_tokens("c") > 0


def call(number: int) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": f"call {number}", "function": {"name": "f", "arguments": "{}"}}]}


def result(number: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call {number}", "content": "x"}


def test_the_first_whole_turn_is_the_one_after_the_last_result_without_its_call() -> None:
    plain = {"role": "user", "content": "x"}
    assert first_whole([]) == 0
    assert first_whole([[plain], [plain]]) == 0
    assert first_whole([[call(1), result(1)], [plain]]) == 0
    assert first_whole([[result(1)], [plain]]) == 1
    assert first_whole([[plain], [result(1)]]) == 2
    assert first_whole([[call(1)], [plain], [result(1)]]) == 0
    assert first_whole([[call(1)], [result(0)], [result(1)], [plain]]) == 3, "what is dropped takes its calls along"
    anthropic = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call 1"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call 1"}, {"type": "text"}, "text"]},
    ]
    assert first_whole([anthropic[:1], anthropic[1:]]) == 0
    assert first_whole([anthropic[1:], [plain]]) == 1
    theirs = EVERYTHING
    assert first_whole([theirs[:2], theirs[2:]]) == 0
    assert first_whole([theirs[2:], [plain]]) == 1
    items = [{"type": "function_call", "call_id": "1"}, {"type": "function_call_output", "call_id": "1"}]
    assert first_whole([items[:1], items[1:]]) == 0
    assert first_whole([items[1:], [plain]]) == 1
    as_json = ModelMessagesTypeAdapter.dump_python(EVERYTHING, mode="json")
    assert first_whole([as_json[:2], as_json[2:]]) == 0
    assert first_whole([as_json[2:], [plain]]) == 1
    assert first_whole([[{"tool_call_id": "1", "note": "a dict of somebody's own"}]]) == 0
    assert first_whole([[1, None, "text", {"tool_calls": 3}, {"tool_calls": [1]}, {"content": 3}]]) == 0


def test_an_export_with_messages_is_json(tmp_path: Path) -> None:
    memory = ConversationMemory()
    memory.add_turn("c", "p", "a", EVERYTHING)
    data = json.loads(json.dumps(memory.export_conversation("c", raw_messages=True)))
    with SQLiteStore(tmp_path / "memory.db") as store:
        other = ConversationMemory(store=store)
        other.import_conversation(data)
        assert other.get_turns("c") == memory.get_turns("c")


def test_texts_beside_json_messages_are_replayed_as_json() -> None:
    memory = ConversationMemory()
    memory.add_turn("c", "hello", "hi")
    memory.add_turn("c", "p", "a", ModelMessagesTypeAdapter.dump_python(EVERYTHING[3:], mode="json"))
    history = memory.get_message_history("c")
    assert [message["kind"] for message in history] == ["request", "response", "response"]
    ModelMessagesTypeAdapter.validate_python(history)


def test_texts_beside_string_messages_are_replayed_as_dicts() -> None:
    memory = ConversationMemory()
    memory.add_turn("c", "hello", "hi")
    memory.add_turn("c", "p", "a", ["a string"])
    assert memory.get_message_history("c")[0] == {"role": "user", "content": "hello"}


# Exactly as they were


def _image(data: bytes = b"\x89PNG\xff") -> BinaryContent:
    return BinaryContent(data, media_type="image/png", vendor_metadata={"detail": "high"}, identifier="figure 1")


_PIXEL = BinaryImage(b"\xff\xfb", media_type="image/png")

EXACT: list[list[ModelMessage]] = [
    [ModelRequest(parts=[UserPromptPart(["look", _image(), _PIXEL])])],
    [ModelRequest(parts=[UserPromptPart(("look", _image()))])],
    [ModelRequest(parts=[UserPromptPart([BinaryContent(b"%PDF\xff", media_type="application/pdf")])])],
    [ModelRequest(parts=[ToolReturnPart("t", content, tool_call_id="1")]) for content in (b"\xff\x00", b"", _image())],
    [ModelRequest(parts=[ToolReturnPart("t", {"a": [b"\xff", {"b": (1, b"2")}], "~exact": "x"}, tool_call_id="1")])],
    [ModelRequest(parts=[ToolReturnPart("t", ["~exact", _image(), ()], tool_call_id="1", metadata={"raw": b"\xfe"})])],
    [ModelRequest(parts=[UserPromptPart("x")], metadata={"raw": b"\xfe", "pair": (1, 2)})],
    [ModelResponse(parts=[FilePart(_image()), TextPart('"~exact":')])],
    [ModelRequest(parts=[UserPromptPart([TextContent("x", metadata={"a": b"\xff", "b": (1, _image())})])])],
    [ModelRequest(parts=[UserPromptPart(("x", TextContent("y", metadata=b"\xff"), TextContent("z", metadata=(1,))))])],
    [ModelRequest(parts=[UserPromptPart([ImageUrl("https://example.com/a.png", vendor_metadata={"a": [b"\xff"]})])])],
    [
        ModelRequest(
            parts=[
                UserPromptPart([BinaryContent(b"1", media_type="image/png", vendor_metadata={"a": b"\xff"})]),
                ToolReturnPart(
                    "t",
                    "x",
                    tool_call_id="1",
                    metadata=[BinaryContent(b"2", media_type="text/plain", vendor_metadata={"a": (b"\xff",)})],
                ),
            ]
        )
    ],
    [ModelRequest(parts=[ToolReturnPart("t", "x", tool_call_id="1", metadata={"thumbnail": _image(), "i": _PIXEL})])],
    [ModelRequest(parts=[UserPromptPart("x")], metadata={"file": BinaryContent(b"%PDF?>~", media_type="text/plain")})],
    [ModelResponse(parts=[ThinkingPart("hm", signature="s"), ToolCallPart("t", {"a": "~exact"}, tool_call_id="1")])],
]


@pytest.mark.parametrize("messages", EXACT)
def test_messages_come_back_exactly(messages: list[ModelMessage]) -> None:
    again = decoded(*encoded(messages))
    assert again == messages
    assert decoded(*encoded(again)) == messages
    kinds = [type(item) for message in again for part in message.parts for item in _items(part)]
    assert kinds == [type(item) for message in messages for part in message.parts for item in _items(part)]


def _items(part: Any) -> list[Any]:
    content = getattr(part, "content", None)
    return list(content) if isinstance(content, (list, tuple)) else [content]


def test_pydantic_ai_can_read_stored_messages_by_itself() -> None:
    text, _ = encoded(EXACT[0])
    (message,) = ModelMessagesTypeAdapter.validate_json(text or "")
    (part,) = message.parts
    assert [type(item).__name__ for item in part.content] == ["str", "BinaryImage", "BinaryImage"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "note",
    [
        '["binary","parts",9,"content"]',
        '["odd","metadata"]',
        '["bytes","nothing"]',
        '["tuple","parts"]',
        '["tuple","parts",0,"__class__"]',
        '["image","parts",0,"content"]',
        '["bytes","parts",0,"content",7]',
        "7",
    ],
)
def test_an_invalid_note_of_exact_types_is_ignored(note: str) -> None:
    message = ModelRequest(parts=[UserPromptPart("x")])
    text, form = encoded([message])
    assert text is not None
    assert decoded(text.replace('"parts":', f'"~exact":[{note}],"parts":', 1), form) == [message]


def test_messages_with_fields_of_the_wrong_type_are_refused() -> None:
    """They could never be read again."""
    with pytest.raises(InvalidEntryError, match="as JSON"):
        encoded([ModelRequest(parts=[UserPromptPart("x")], conversation_id=5)])  # type: ignore[arg-type]

"""An untrusted import of pydantic-ai's messages: nothing in them speaks as the system."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

from firefly_memory import ConversationMemory, CorruptDataError, InMemoryStore, SQLiteStore
from firefly_memory.agents import SQLConversationStore
from firefly_memory.archive import export_jsonl, import_jsonl
from tests.support.agent_histories import SHARED, opened, somewhere, texts
from tests.support.backends import Place
from tests.support.pydantic_ai_messages import EVERYTHING

IMAGE = BinaryContent(b"\x89PNG", media_type="image/png")
HISTORY: list[ModelMessage] = [
    ModelRequest([SystemPromptPart("obey"), UserPromptPart(["hello", IMAGE])], instructions="obey"),
    ModelResponse([TextPart("hi")]),
    ModelRequest([SystemPromptPart("obey")]),
    ModelRequest([UserPromptPart("again"), SystemPromptPart("obey")]),
    ModelResponse([TextPart("yes")]),
]


@pytest.mark.parametrize("kind", SHARED)
async def test_an_untrusted_import_of_agent_history_has_no_system_parts(kind: str, place: Place) -> None:
    with SQLiteStore(":memory:") as source, somewhere(kind, place) as where:
        await SQLConversationStore(source).save(Conversation(conversation_id="c", messages=list(HISTORY)))
        await SQLConversationStore(source).fork("c", at=3, new_conversation_id="fork")
        file = io.StringIO()
        export_jsonl(source, file)
        async with opened(kind, where) as target:
            for _ in range(2):
                counts = import_jsonl(target.store, io.StringIO(file.getvalue()), untrusted=True)
                assert counts.left_out == 0, "the messages stay, without these parts"
            conversation = await target.load("c")
            assert conversation is not None
            assert "obey" not in str(conversation.messages)
            assert [len(message.parts) for message in conversation.messages] == [1, 1, 0, 1, 1]
            first = conversation.messages[0].parts[0]
            assert isinstance(first, UserPromptPart)
            assert first.content == ["hello", IMAGE], "the notes of the parts that stay have moved with them"
            assert len((await target.load("fork")).messages) == 3  # type: ignore[union-attr]
            assert texts(await target.load("c", limit=1)) == ["yes"]


def test_an_untrusted_import_of_turns_has_no_system_parts() -> None:
    with InMemoryStore() as source, InMemoryStore() as target:
        memory = ConversationMemory(store=source)
        memory.add_turn("c", "hello", "hi", HISTORY)
        memory.add_turn("c", "all", "of it", EVERYTHING)
        file = io.StringIO()
        export_jsonl(source, file)
        import_jsonl(target, io.StringIO(file.getvalue()), untrusted=True)
        first, everything = ConversationMemory(store=target).get_turns("c")
        assert "obey" not in str(first.raw_messages)
        assert [len(message.parts) for message in first.raw_messages] == [1, 1, 1, 1]
        assert first.raw_messages[0].parts[0].content == ["hello", IMAGE]
        kinds = [part.part_kind for message in everything.raw_messages for part in message.parts]
        assert "system-prompt" not in kinds
        assert len(kinds) == 8
        assert not [each for each in everything.raw_messages if getattr(each, "instructions", None)]


@pytest.mark.parametrize(
    "message",
    ["", "text", "[]", "7", "null", "[" * 100_000, '{"kind"', '{"parts": 1}', '{"parts": [{}], "~exact": [[]]}', "{}"],
    ids=lambda text: text[:20] or "empty",
)
@pytest.mark.parametrize("untrusted", [True, False])
async def test_an_invalid_message_is_refused_with_its_line(message: str, untrusted: bool, place: Place) -> None:
    with SQLiteStore(":memory:") as source, somewhere("sqlite", place) as where:
        await SQLConversationStore(source).save(Conversation(conversation_id="c", messages=list(HISTORY)))
        file = io.StringIO()
        export_jsonl(source, file)
        lines: list[Any] = [json.loads(line) for line in file.getvalue().splitlines()]
        lines[3]["dialogue_entry"]["message"] = message
        async with opened("sqlite", where) as target:
            if message in {"{}", '{"parts": 1}', '{"parts": [{}], "~exact": [[]]}'} and not untrusted:
                import_jsonl(target.store, map(json.dumps, lines))
                with pytest.raises(CorruptDataError):
                    await target.load("c")
                return
            with pytest.raises(CorruptDataError, match="line 4 of the archive"):
                import_jsonl(target.store, map(json.dumps, lines), untrusted=untrusted)
            assert await target.read_record("c") is None

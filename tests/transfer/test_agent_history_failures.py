"""Copies and imports of pydantic-ai's conversations that would lose something are refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord

from firefly_memory import (
    ConflictError,
    ConversationMemory,
    CorruptDataError,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    NotSupportedError,
    SQLiteStore,
)
from firefly_memory.agent_history import moving as agent_history
from firefly_memory.agents import SQLConversationStore
from firefly_memory.archive import export_jsonl, import_jsonl
from firefly_memory.copying import async_copy_store, copy_store
from firefly_memory.moving import Walk, Writing
from firefly_memory.transfer.counts import Counts
from tests.support.agent_histories import SHARED, kept, message, messages, opened, somewhere
from tests.support.agent_history_transfer import (
    assert_equal,
    both,
    branch,
    filled,
    grow,
)
from tests.support.backends import Place
from tests.support.command_line import run


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kind", SHARED)
async def test_messages_that_only_the_target_has_are_not_lost(kind: str, place: Place) -> None:
    async with both(("sqlite", kind), place) as (source, target):
        await filled(source)
        await async_copy_store(source.store, target.store)
        await target.fork("long", new_conversation_id="b theirs", scope="user\x00")
        await grow(target, "b theirs", 5)
        await grow(source, "empty", 1)
        before = await kept(target)
        with pytest.raises(ConflictError, match="pydantic-ai's conversation 'b theirs' of the target is not in the"):
            await async_copy_store(source.store, target.store)
        assert await kept(target) == before
        copied = await async_copy_store(source.store, target.store, merge=True)
        assert copied.equal
        assert copied.beyond == Counts(agent_conversations=1, messages=5)
        assert await target.load("b theirs") is not None
        await kept(target)
        await target.delete("b theirs")
        await assert_equal(source, target)
        await grow(target, "long", 1)
        await grow(source, "long", 1)
        before = await kept(target)
        for merge, words in ((False, "'long' of the target is another one"), (True, "'long' is another one in the")):
            with pytest.raises(ConflictError, match=words):
                await async_copy_store(source.store, target.store, merge=merge)
        assert await kept(target) == before
        assert copy_store(source.store, target.store, agent_history=False).equal


async def test_an_older_copy_in_the_target_is_replaced_if_the_source_has_all_its_messages(place: Place) -> None:
    async with both(("sqlite", "sqlite"), place) as (source, target):
        await source.save(Conversation(conversation_id="c", messages=messages(2)))
        await async_copy_store(source.store, target.store)
        await branch(target, "c", 1, 0)  # no message of its own, but newer
        with pytest.raises(ConflictError, match="another one in the source"):
            await async_copy_store(source.store, target.store)
        assert (await async_copy_store(target.store, source.store)).equal
        await assert_equal(source, target)


async def test_a_different_message_with_the_same_id_is_a_conflict(place: Place) -> None:
    async with both(("sqlite", "sqlite"), place) as (source, target):
        record = ConversationRecord(conversation_id="c", head_id="1")
        for conversations, text in ((source, "mine"), (target, "theirs")):
            entry = ConversationEntry(id="1", parent_id=None, message=message(text))
            await conversations.write_record(record, new_entries=[entry], expected_revision=None)
        with pytest.raises(
            ConflictError, match="message '1' of pydantic-ai's conversation 'c' of the target is another"
        ):
            copy_store(source.store, target.store)
        file = io.StringIO()
        export_jsonl(source.store, file)
        await target.delete("c")
        entry = ConversationEntry(id="1", parent_id=None, message=message("theirs"))
        other = ConversationRecord(conversation_id="other", head_id="1")
        await target.write_record(other, new_entries=[entry], expected_revision=None)
        with pytest.raises(ConflictError, match="message '1' of pydantic-ai's conversation 'c' is another one in"):
            import_jsonl(target.store, io.StringIO(file.getvalue()))


async def test_an_import_does_not_replace_a_longer_conversation(place: Place) -> None:
    async with both(("sqlite", "sqlite"), place) as (source, target):
        await filled(source)
        file = io.StringIO()
        export_jsonl(source.store, file)
        import_jsonl(target.store, io.StringIO(file.getvalue()))
        await grow(target, "raw", 1)
        before = await kept(target)
        with pytest.raises(ConflictError, match="pydantic-ai's conversation 'raw' is another one in the target"):
            import_jsonl(target.store, io.StringIO(file.getvalue()))
        assert await kept(target) == before


async def test_a_target_without_agent_history_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "a.db") as store:
        store.save("n", MemoryEntry(content=1))
        await filled(SQLConversationStore(store))
        with InMemoryStore() as target:
            with pytest.raises(NotSupportedError, match="MongoDBStore can, and agent_history=False"):
                copy_store(store, target)
            assert target.namespaces() == []
            assert copy_store(store, target, agent_history=False).source.counts == Counts(entries=1)
            assert copy_store(target, store, agent_history=False).equal
            with pytest.raises(ConflictError, match="of the target is not in the source"):
                copy_store(target, store)
        file = io.StringIO()
        counts = export_jsonl(store, file)
        assert export_jsonl(store, io.StringIO(), agent_history=False) == Counts(entries=1)
        assert export_jsonl(store, io.StringIO(), raw_messages=False) == Counts(entries=1)
        with FileStore(tmp_path / "files") as files:
            with pytest.raises(NotSupportedError, match=r"line 3 of the archive: the target .*--without-agent-history"):
                import_jsonl(files, io.StringIO(file.getvalue()))
            assert import_jsonl(files, io.StringIO(file.getvalue()), agent_history=False) == Counts(entries=1)
    words = f"1 entries, 0 conversations with 0 turns, 8 conversations of pydantic-ai with {counts.messages} messages"
    for arguments, expected in (
        (["copy", "--from", "sqlite:///a.db", "--to", "sqlite:///b.db"], f"copied {words}"),
        (["export", "--url", "sqlite:///a.db", "all.jsonl"], f"exported {words}"),
        (["import", "--url", "sqlite:///c.db", "all.jsonl"], f"imported {words}"),
        (["copy", "--from", "sqlite:///a.db", "--to", "file:b", "--without-agent-history"], "copied 1 entries, 0 conv"),
        (["export", "--url", "sqlite:///a.db", "few.jsonl", "--without-agent-history"], "exported 1 entries, 0 conv"),
        (["import", "--url", "file:c", "all.jsonl", "--without-agent-history"], "imported 1 entries, 0 conv"),
    ):
        ended = run(*arguments, cwd=tmp_path)
        assert ended.returncode == 0
        assert expected in ended.stdout + ended.stderr
        assert ("pydantic-ai" in ended.stdout + ended.stderr) is ("pydantic-ai" in expected)
    refused = run("copy", "--from", "sqlite:///a.db", "--to", "file:d", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--without-agent-history" in refused.stderr
    async with SQLiteStore(tmp_path / "a.db") as source:
        for name in ("b.db", "c.db"):
            async with SQLiteStore(tmp_path / name) as target:
                await assert_equal(SQLConversationStore(source), SQLConversationStore(target))


@pytest.mark.usefixtures("_small_pages")
async def test_a_damaged_archive_is_refused(place: Place) -> None:
    with somewhere("sqlite", place) as where:
        async with opened("sqlite", where) as source:
            await filled(source)
            file = io.StringIO()
            export_jsonl(source.store, file)
    lines = file.getvalue().splitlines()
    (start,) = [number for number, line in enumerate(lines) if '"conversation_id": "long", "revision"' in line]

    def problem(lines: list[str]) -> str:
        with SQLiteStore(":memory:") as target, pytest.raises(CorruptDataError) as caught:
            import_jsonl(target, lines)
        return str(caught.value)

    first = json.loads(lines[start + 1])["dialogue_entry"]
    missing = f"message '{first['entry_id']}' is missing: it has to come before"
    assert missing in problem([*lines[: start + 1], *lines[start + 2 :]])
    assert "another conversation" in problem([*lines[:start], *lines[start + 1 :]])
    assert "another conversation" in problem([lines[0], lines[start + 1]])
    assert "lines are missing" in problem([*lines[:-2], lines[-1]])
    assert "ends too early" in problem(lines[:-1])
    conversation = json.loads(lines[start])["dialogue"]
    wrong: list[tuple[int, str, dict[str, Any], str, Any]] = [
        (1, "dialogue_entry", first, "message", {}),
        (1, "dialogue_entry", first, "kind", 1),
        (1, "dialogue_entry", first, "parent_id", 1),
        (1, "dialogue_entry", first, "entry_id", "x" * 513),
        (0, "dialogue", conversation, "usage", None),
        (0, "dialogue", conversation, "updated_at", "today"),
        (0, "dialogue", conversation, "branches", [1]),
        (0, "dialogue", conversation, "conversation_id", ""),
    ]
    for after, kind, item, name, value in wrong:
        number = start + after
        broken = json.dumps({kind: {**item, name: value}})
        assert f"line {number + 1} " in problem([*lines[:number], broken, *lines[number + 1 :]])


async def test_an_archive_from_before_agent_history_can_be_imported(place: Place) -> None:
    with InMemoryStore() as store:
        store.save("n", MemoryEntry(content=1))
        ConversationMemory(store=store).add_turn("c", "p", "a")
        file = io.StringIO()
        export_jsonl(store, file)
        *lines, _ = file.getvalue().splitlines()
    with somewhere("sqlite", place) as where:
        async with opened("sqlite", where) as target:
            end = '{"end": {"entries": 1, "conversations": 1, "turns": 1}}'
            assert import_jsonl(target.store, [*lines, end]) == Counts(entries=1, conversations=1, turns=1)


async def test_a_history_with_a_missing_message_is_damage(place: Place) -> None:
    async with both(("sqlite", "sqlite"), place) as (source, target):
        orphan = ConversationEntry(id="2", parent_id="1", message=message("orphan"))
        record = ConversationRecord(conversation_id="c", head_id="2")
        await source.write_record(record, new_entries=[orphan], expected_revision=None)
        with pytest.raises(CorruptDataError, match=r"conversation 'c' is damaged \(its message '1' is missing"):
            await async_copy_store(source.store, target.store)
        assert await target.read_records() == []


async def test_a_change_during_a_copy_is_a_conflict(place: Place) -> None:
    async with both(("sqlite", "sqlite"), place) as (source, target):
        await source.save(Conversation(conversation_id="c", messages=messages(3)))
        walk = Walk(source.store.suspending)
        async for _, item in agent_history.conversations_of(walk, None):
            await source.delete("c")
            with pytest.raises(ConflictError, match="'c' was changed while it was read; start again"):
                _ = [each async for each in agent_history.messages_of(walk, item)]
            writer = agent_history.AgentHistoryWriter(target.store.suspending, Writing())
            await writer.take("dialogue", {**item, "head_id": None})
            await target.save(Conversation(conversation_id="c", messages=messages(1)))
            with pytest.raises(ConflictError, match="'c' was changed in the target meanwhile; start again"):
                await writer.finish()

"""Circular messages of pydantic-ai's conversations, in archives and in damaged rows, are found and reported at once."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pymongo import MongoClient

from firefly_memory import CorruptDataError, InvalidEntryError, SQLiteStore
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, CircleDetector
from firefly_memory.agent_history.sql.statements import HistoryStatements
from firefly_memory.agents import SQLConversationStore
from firefly_memory.archive import FORMAT, async_export_jsonl, async_import_jsonl
from firefly_memory.copying import async_copy_store
from firefly_memory.databases.sql.operation import reads
from firefly_memory.databases.sql.session import Session
from tests.support.agent_histories import KINDS, SHARED, kept, message, messages, opened, somewhere
from tests.support.backends import Place

pytestmark = pytest.mark.thorough

Link = tuple[str, str | None]


def archive(*conversations: tuple[str, str, Sequence[Link]]) -> list[str]:
    """Conversations, each with its head, and its entries with their parents."""
    lines: list[Any] = [{"format": FORMAT, "created_at": "2026-01-01T00:00:00+00:00", "raw_messages": True}]
    text = json.dumps({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hello"}]})
    count = 0
    for name, head_id, entries in conversations:
        rest: dict[str, Any] = {"scope": None, "forked_from": None, "forked_at": None, "branches": [], "usage": "{}"}
        rest |= {"deferred_tool_requests": None, "updated_at": "2026-01-01T00:00:00+00:00", "format_version": 1}
        lines.append({"dialogue": {"conversation_id": name, "revision": "1", "head_id": head_id, **rest}})
        for entry_id, parent_id in entries:
            entry = {"entry_id": entry_id, "parent_id": parent_id, "kind": "request", "message": text}
            lines.append({"dialogue_entry": {"conversation_id": name, **entry}})
            count += 1
    none = {"entries": 0, "conversations": 0, "turns": 0}
    lines.append({"end": {**none, "dialogues": len(conversations), "messages": count}})
    return [json.dumps(line) for line in lines]


def long_line(count: int) -> list[Link]:
    return [(f"e{number}", f"e{number - 1}" if number else None) for number in range(count)]


CIRCLES: dict[str, tuple[list[tuple[str, str, Sequence[Link]]], int]] = {
    "two that follow each other": ([("c", "a", [("a", "b"), ("b", "a")])], 3),
    "one that follows itself": ([("c", "a", [("a", "a")])], 3),
    "one of another conversation": ([("one", "x", [("x", None)]), ("c", "a", [("b", "a"), ("a", "b")])], 5),
    "one with a parent further down": ([("c", "a", [("r", None), ("a", "b"), ("b", "r")])], 4),
    "one with a parent that is nowhere": ([("c", "a", [("a", "nowhere")])], 3),
    "one whose parent is a conversation's later": ([("c", "a", [("a", "x")]), ("d", "x", [("x", "a")])], 3),
    "an id that comes twice": ([("c", "b", [("a", None), ("b", "a"), ("a", "b")])], 5),
    "after some pages": ([("c", "e12", [*long_line(11), ("e11", "e12"), ("e12", "e11")])], 14),
}


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("case", CIRCLES)
async def test_an_archive_with_a_message_before_its_parent_is_refused_by_its_line(
    case: str, kind: str, place: Place
) -> None:
    conversations, line = CIRCLES[case]
    with somewhere(kind, place) as where:
        async with opened(kind, where) as target:
            with pytest.raises(CorruptDataError, match=f"line {line} of the archive"):
                await async_import_jsonl(target.store, archive(*conversations))
            assert await target.read_record("c") is None
            assert set(await kept(target)) <= {"x"}, "nothing of the conversation is left"


@pytest.mark.usefixtures("_small_pages")
async def test_a_refused_archive_does_not_change_an_existing_conversation(place: Place) -> None:
    with somewhere("sqlite", place) as where:
        async with opened("sqlite", where) as target:
            whole = archive(("c", "e20", long_line(21)))
            with pytest.raises(CorruptDataError, match="ends too early"):
                await async_import_jsonl(target.store, whole[:12])
            part = await target.read_record("c")
            assert part is not None
            assert part.revision.startswith("copying:")
            bad = [*whole[:12], *archive(("c", "e20", [("e10", "e20")]))[2:]]
            with pytest.raises(CorruptDataError, match="line 13 of the archive"):
                await async_import_jsonl(target.store, bad)
            assert len(await target.read_history(part.head_id)) == len(await kept(target)) > 0
            assert (await async_import_jsonl(target.store, whole)).messages == 21


async def test_an_archive_of_a_very_long_conversation_is_imported_and_exported(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "m.db") as store:
        lines = archive(("c", "e99999", long_line(100_000)))
        assert (await async_import_jsonl(store, lines)).messages == 100_000
        found = await store.suspending.log(AGENT_HISTORY_LOG).history("e99999", None)
        assert [entry.entry_id for entry in found] == [f"e{number}" for number in range(99_999, -1, -1)]


def plant(kind: str, where: str, entry_id: str, parent_id: str) -> None:
    """What a damaged disk, or somebody with a client of his own, may leave."""
    url, _, name = where.partition("#")
    if kind.startswith("mongodb"):
        with MongoClient[dict[str, Any]](url) as client:
            entries = client[name].memory_agent_history_entries
            entries.update_one({"_id": entry_id}, {"$set": {"parent_id": parent_id, "above": parent_id}})
    elif kind.startswith("sqlite"):
        connection = sqlite3.connect(url, isolation_level=None)
        sql = "UPDATE memory_agent_history_entries SET parent_id = ? WHERE entry_id = ?"
        connection.execute(sql, (parent_id, entry_id))
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            planted = f"UPDATE {name}.memory_agent_history_entries SET parent_id = %s WHERE entry_id = %s"
            server.execute(planted.encode(), (parent_id, entry_id))


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("up", [0, 1, 3, 10], ids=lambda up: f"{up} entries up")
async def test_every_reader_reports_circular_rows_as_damage(kind: str, up: int, place: Place) -> None:
    with somewhere(kind, place) as where:
        async with opened(kind, where) as conversations:
            await conversations.save(Conversation(conversation_id="c", messages=messages(14)))
            await conversations.save(Conversation(conversation_id="sound", messages=messages(3)))
            await conversations.fork("c", new_conversation_id="fork")
            record = await conversations.read_record("c")
            assert record is not None
            line = [entry.id for entry in await conversations.read_history(record.head_id)]
            plant(kind, where, line[2], line[2 + up])
            for limit in (None, 10**9, 2**70, 30):
                with pytest.raises(CorruptDataError, match=f"entry '{line[2 + up]}' comes before itself"):
                    await conversations.read_history(line[2 + up], limit=limit)
            for name in ("c", "fork"):
                with pytest.raises(CorruptDataError, match="comes before itself"):
                    await conversations.load(name)
            assert [entry.id for entry in await conversations.read_history(line[5], limit=3)] == line[3:6]
            with pytest.raises(CorruptDataError, match="comes before itself"):
                await async_export_jsonl(conversations.store, io.StringIO())
            with SQLiteStore(":memory:") as copy, pytest.raises(CorruptDataError, match="comes before itself"):
                await async_copy_store(conversations.store, copy)
            assert len(await conversations.read_records(limit=2**70)) == 3
            for name in ("fork", "c"):
                await conversations.delete(name)
            assert await conversations.load("sound") is not None


@pytest.mark.parametrize("kind", ["sqlite", "postgresql-asyncpg"])
async def test_a_statement_reads_each_message_of_a_circle_once(kind: str, place: Place) -> None:
    """However often the way up leads to it."""

    @reads
    def history(session: Session, head_id: str) -> Any:
        return session.fetch(session.statements(HistoryStatements).history, {"head_id": head_id, "limit": 5_000})

    with somewhere(kind, place) as where:
        async with opened(kind, where) as conversations:
            assert isinstance(conversations, SQLConversationStore)
            await conversations.save(Conversation(conversation_id="c", messages=messages(2)))
            record = await conversations.read_record("c")
            assert record is not None
            assert record.head_id is not None
            (first, _) = await conversations.read_history(record.head_id)
            plant(kind, where, first.id, record.head_id)
            assert len(await conversations.store.database.suspending.run(history, record.head_id)) == 2


async def test_circular_entries_are_not_written(place: Place) -> None:
    with somewhere("sqlite", place) as where:
        async with opened("sqlite", where) as conversations:
            circle = [
                ConversationEntry(id=entry_id, parent_id=parent_id, message=message(entry_id))
                for entry_id, parent_id in (("root", None), ("a", "c"), ("b", "a"), ("c", "b"))
            ]
            record = ConversationRecord(conversation_id="c", head_id="c")
            for entries in (circle, circle[::-1]):
                with pytest.raises(InvalidEntryError, match=r"'[abc]' comes before itself"):
                    await conversations.write_record(record, new_entries=entries, expected_revision=None)
            assert await kept(conversations) == {}
            line = [*circle[:1], ConversationEntry(id="a", parent_id="root", message=message("a"))]
            record = ConversationRecord(conversation_id="c", head_id="a")
            await conversations.write_record(record, new_entries=line[::-1], expected_revision=None)
            assert len(await conversations.read_history("a")) == 2


@pytest.mark.parametrize("before", [0, 1, 7, 499])
@pytest.mark.parametrize("length", [1, 2, 3, 500, 997])
def test_a_circle_is_found_within_three_rounds(before: int, length: int) -> None:
    circle = CircleDetector("0")
    with pytest.raises(CorruptDataError):
        for step in range(3 * (before + length) + 2):
            circle.pass_by(str(step if step < before else before + (step - before) % length))

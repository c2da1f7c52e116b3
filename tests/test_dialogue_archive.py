"""pydantic-ai's conversations in copies and archives: every message once, whoever shares it, and held as before."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage
from pymongo import MongoClient

from firefly_memory import (
    ConflictError,
    ConversationMemory,
    CorruptDataError,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MongoDBStore,
    NotSupportedError,
    SQLiteStore,
    dialogue_archive,
)
from firefly_memory.agents import MongoConversationStore, SQLConversationStore
from firefly_memory.archive import async_export_jsonl, async_import_jsonl, export_jsonl, import_jsonl
from firefly_memory.archive_items import Counts
from firefly_memory.copying import async_copy_store, copy_store
from tests.backends import Place
from tests.dialogues import SHARED, Stored, kept, message, messages, opened, somewhere
from tests.servers import EmbeddedMongoDB, pause
from tests.test_archive import run
from tests.test_messages import EVERYTHING

ODD = "b\x00\ud800\x10 \U0001f600"


@pytest.fixture
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few messages are many."""
    monkeypatch.setattr(dialogue_archive, "_PAGE", 4)


async def filled(conversations: Stored) -> Stored:
    """Forks of forks and of branches, listed before and after what they were made of, and every odd value."""
    waiting = DeferredToolRequests(approvals=[ToolCallPart("pay", {"to": "Zürich\x00"}, tool_call_id="1")])
    usage = RunUsage(requests=2, input_tokens=2**40, details={"reasoning": 5})
    long = Conversation(
        conversation_id="long", messages=messages(23), usage=usage, deferred_tool_requests=waiting, new_message_index=0
    )
    await conversations.save(long, scope="user\x00")
    for name, at in (("a fork", 9), ("z fork", 15), ("the same", None)):
        await conversations.fork("long", at=at, new_conversation_id=name, scope="user\x00")
    await grow(conversations, "a fork", 3)
    await branch(conversations, "long", 4, 16)
    await branch(conversations, "long", 7, 1)
    await branch(conversations, "long", 2, 0)
    await conversations.fork("long", new_conversation_id="at the start", scope="user\x00")
    await grow(conversations, "at the start", 9)
    await branch(conversations, "a fork", 5, 2)
    await conversations.save(Conversation(conversation_id=ODD, messages=list(EVERYTHING)))
    await conversations.save(Conversation(conversation_id="empty", messages=[]))
    root = ConversationEntry(id=f"{ODD} 1", parent_id=None, message=message("root"))
    leaf = ConversationEntry(id=f"{ODD} 2", parent_id=root.id, message=message("leaf"))
    raw = ConversationRecord(
        conversation_id="raw", head_id=root.id, branches=[leaf.id, "unknown"], revision="\ud800", scope=""
    )
    await conversations.write_record(raw, new_entries=[root, leaf], expected_revision=None)
    return conversations


async def grow(conversations: Stored, name: str, count: int) -> None:
    conversation = await conversations.load(name)
    assert conversation is not None
    conversation.messages.extend(messages(count, 100))
    await conversations.save(conversation)


async def branch(conversations: Stored, name: str, at: int, count: int) -> None:
    record = await conversations.read_record(name)
    assert record is not None
    await conversations.branch(name, at=at, expected_revision=record.revision)
    if count:
        await grow(conversations, name, count)


async def assert_equal(one: Stored, other: Stored) -> None:
    records = {record.conversation_id: record for record in await one.read_records()}
    assert records == {record.conversation_id: record for record in await other.read_records()}
    for name, record in records.items():
        assert await other.load(name) == await one.load(name)
        for end in {record.head_id, *record.branches} - {"unknown"}:
            assert await other.read_history(end) == await one.read_history(end)
    assert await kept(other) == await kept(one)


async def assert_deletions_leave_nothing(conversations: Stored) -> None:
    for record in sorted(await conversations.read_records(), key=lambda record: record.conversation_id):
        await conversations.delete(record.conversation_id)
        await kept(conversations)
    assert await kept(conversations) == {}


@asynccontextmanager
async def both(kinds: tuple[str, str], place: Place) -> AsyncIterator[tuple[Stored, Stored]]:
    with somewhere(kinds[0], place) as one, somewhere(kinds[1], place) as other:
        async with opened(kinds[0], one) as source, opened(kinds[1], other) as target:
            yield source, target


PAIRS = [(source, target) for source in SHARED for target in SHARED]


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kinds", PAIRS, ids=str)
async def test_a_copy_has_every_message_once_and_held_as_before(kinds: tuple[str, str], place: Place) -> None:
    async with both(kinds, place) as (source, target):
        await filled(source)
        everything = Counts(dialogues=8, messages=len(await kept(source)))
        for before in (Counts(), everything):
            copied = await async_copy_store(source.store, target.store)
            assert copied.equal
            assert (copied.before, copied.source.counts, copied.target.counts) == (before, everything, everything)
            await assert_equal(source, target)
        assert copy_store(source.store, target.store).source.checksum == copied.target.checksum  # the other colour
        await assert_deletions_leave_nothing(target)


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kinds", PAIRS, ids=str)
async def test_an_archive_brings_them_back(kinds: tuple[str, str], place: Place) -> None:
    async with both(kinds, place) as (source, target):
        await filled(source)
        file = io.StringIO()
        counts = await async_export_jsonl(source.store, file)
        assert counts == Counts(dialogues=8, messages=len(await kept(source)))
        for _ in range(2):
            assert await async_import_jsonl(target.store, io.StringIO(file.getvalue())) == counts
            await assert_equal(source, target)
        again = io.StringIO()
        export_jsonl(target.store, again)
        assert again.getvalue().splitlines()[1:] == file.getvalue().splitlines()[1:]
        assert import_jsonl(target.store, again.getvalue().splitlines()) == counts
        await assert_deletions_leave_nothing(target)


@pytest.mark.parametrize("kind", ["sqlite-aiosqlite", "postgresql-psycopg", "mongodb-motor"])
async def test_engines_and_clients_of_the_caller_serve_as_well(kind: str, place: Place) -> None:
    async with both((kind, kind), place) as (source, target):
        await filled(source)
        assert (await async_copy_store(source.store, target.store)).equal
        await assert_equal(source, target)


async def test_so_does_a_client_that_only_blocks(place: Place) -> None:
    with somewhere("mongodb", place) as where:
        url, _, name = where.partition("#")
        async with opened("mongodb", where) as source:
            await filled(source)
        with MongoClient[dict[str, Any]](url) as client:
            blocking = MongoDBStore(client=client, database=name)
            async with (
                SQLiteStore(place.directory / "there.db") as there,
                SQLiteStore(place.directory / "b.db") as other,
            ):
                assert copy_store(blocking, there).equal
                assert (await async_copy_store(blocking, other)).equal
                await assert_equal(SQLConversationStore(there), SQLConversationStore(other))


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kind", SHARED)
async def test_a_copy_or_import_that_broke_off_anywhere_goes_on(kind: str, place: Place) -> None:
    with somewhere("sqlite", place) as where:
        async with opened("sqlite", where) as source:
            await filled(source)
            file = io.StringIO()
            lines = (await async_export_jsonl(source.store, file)).total
            with somewhere(kind, place) as there:
                async with opened(kind, there) as target:

                    async def copy(progress: Any) -> None:
                        await async_copy_store(source.store, target.store, progress=progress)

                    async def import_(progress: Any) -> None:
                        await async_import_jsonl(target.store, io.StringIO(file.getvalue()), progress=progress)

                    for last in range(3, lines - 6, 5):
                        for work in (copy, import_):
                            for some in (last, last + 6):
                                with pytest.raises(InterruptedError):
                                    await work(Stop(some))
                                assert all(holders for _, holders in (await kept(target)).values())
                            await work(None)
                            await assert_equal(source, target)
                            await assert_deletions_leave_nothing(target)


class Stop:
    """Breaks off when so many items have been taken."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, *progress: object) -> None:
        self._left -= progress[0] != "looking"
        if not self._left:
            raise InterruptedError


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "firefly_memory.cli", *arguments])


@pytest.mark.parametrize("kind", ["postgresql-asyncpg", "mongodb"])
async def test_a_copy_goes_on_where_another_one_was_killed(kind: str, place: Place) -> None:
    with somewhere("sqlite", place) as one, somewhere(kind, place) as other:
        async with opened("sqlite", one) as source, opened(kind, other) as target:
            await source.save(Conversation(conversation_id="long", messages=messages(9_000)))
            await source.fork("long", at=20, new_conversation_id="zfork")
            url, _, name = other.partition("#")
            option = "--to-database" if kind == "mongodb" else "--to-schema"
            arguments = ["copy", "--from", f"sqlite:///{one}", "--to", url, option, name, "--json"]
            child = start(*arguments)
            while await target.read_record("long") is None:
                pause(0.001)
            child.kill()
            assert child.wait() == -9
            record = await target.read_record("long")
            assert record is not None
            assert record.revision.startswith("copying:"), "it was killed too late"
            assert record.branches == []
            there = len(await kept(target))
            assert 0 < there < 9_000
            ended = run(*arguments, cwd=Path.cwd())
            assert (ended.returncode, ended.stderr) == (0, "")
            result = json.loads(ended.stdout)
            assert result["source"]["dialogues"] == result["target"]["dialogues"] == 2
            assert result["source"]["messages"] == 9_000
            assert result["there_before"]["messages"] >= there - 500
            await assert_equal(source, target)
            await assert_deletions_leave_nothing(target)


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kind", SHARED)
async def test_a_source_that_went_on_is_caught_up_with(kind: str, place: Place) -> None:
    async with both(("sqlite", kind), place) as (source, target):
        await filled(source)
        assert (await async_copy_store(source.store, target.store)).equal
        await grow(source, "long", 30)
        await branch(source, "z fork", 6, 2)
        await source.fork("z fork", at=5, new_conversation_id="A")  # before all that share its messages
        await grow(source, "A", 12)
        assert (await async_copy_store(source.store, target.store)).equal
        await assert_equal(source, target)
        await assert_deletions_leave_nothing(target)


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("kind", SHARED)
async def test_what_the_target_has_of_its_own_is_not_lost(kind: str, place: Place) -> None:
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
        assert copied.beyond == Counts(dialogues=1, messages=5)
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
        assert copy_store(source.store, target.store, dialogues=False).equal


async def test_an_older_one_with_messages_of_the_source_only_gives_way_to_a_newer(place: Place) -> None:
    async with both(("sqlite", "sqlite"), place) as (source, target):
        await source.save(Conversation(conversation_id="c", messages=messages(2)))
        await async_copy_store(source.store, target.store)
        await branch(target, "c", 1, 0)  # no message of its own, but newer
        with pytest.raises(ConflictError, match="another one in the source"):
            await async_copy_store(source.store, target.store)
        assert (await async_copy_store(target.store, source.store)).equal
        await assert_equal(source, target)


async def test_another_message_of_the_same_id_is_found(place: Place) -> None:
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


async def test_an_archive_does_not_replace_a_conversation_that_went_on(place: Place) -> None:
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


async def test_a_target_that_cannot_keep_them_says_so_before_anything_is_written(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "a.db") as store:
        store.save("n", MemoryEntry(content=1))
        await filled(SQLConversationStore(store))
        with InMemoryStore() as target:
            with pytest.raises(NotSupportedError, match="MongoDBStore can, and dialogues=False"):
                copy_store(store, target)
            assert target.namespaces() == []
            assert copy_store(store, target, dialogues=False).source.counts == Counts(entries=1)
            assert copy_store(target, store, dialogues=False).equal
            with pytest.raises(ConflictError, match="of the target is not in the source"):
                copy_store(target, store)
        file = io.StringIO()
        counts = export_jsonl(store, file)
        assert export_jsonl(store, io.StringIO(), dialogues=False) == Counts(entries=1)
        assert export_jsonl(store, io.StringIO(), raw_messages=False) == Counts(entries=1)
        with FileStore(tmp_path / "files") as files:
            with pytest.raises(NotSupportedError, match=r"line 3 of the archive: the target .*--without-dialogues"):
                import_jsonl(files, io.StringIO(file.getvalue()))
            assert import_jsonl(files, io.StringIO(file.getvalue()), dialogues=False) == Counts(entries=1)
    words = f"1 entries, 0 conversations with 0 turns, 8 conversations of pydantic-ai with {counts.messages} messages"
    for arguments, expected in (
        (["copy", "--from", "sqlite:///a.db", "--to", "sqlite:///b.db"], f"copied {words}"),
        (["export", "--url", "sqlite:///a.db", "all.jsonl"], f"exported {words}"),
        (["import", "--url", "sqlite:///c.db", "all.jsonl"], f"imported {words}"),
        (["copy", "--from", "sqlite:///a.db", "--to", "file:b", "--without-dialogues"], "copied 1 entries, 0 conv"),
        (["export", "--url", "sqlite:///a.db", "few.jsonl", "--without-dialogues"], "exported 1 entries, 0 conv"),
        (["import", "--url", "file:c", "all.jsonl", "--without-dialogues"], "imported 1 entries, 0 conv"),
    ):
        ended = run(*arguments, cwd=tmp_path)
        assert ended.returncode == 0
        assert expected in ended.stdout + ended.stderr
        assert ("pydantic-ai" in ended.stdout + ended.stderr) is ("pydantic-ai" in expected)
    refused = run("copy", "--from", "sqlite:///a.db", "--to", "file:d", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--without-dialogues" in refused.stderr
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
    missing = f"conversation 'long' is damaged (its message '{first['entry_id']}' is missing)"
    assert missing in problem([*lines[: start + 1], *lines[start + 2 :]])
    assert "another conversation" in problem([*lines[:start], *lines[start + 1 :]])
    assert "another conversation" in problem([lines[0], lines[start + 1]])
    assert "lines are missing" in problem([*lines[:-2], lines[-1]])
    assert "ends too early" in problem(lines[:-1])
    dialogue = json.loads(lines[start])["dialogue"]
    wrong: list[tuple[int, str, dict[str, Any], str, Any]] = [
        (1, "dialogue_entry", first, "message", {}),
        (1, "dialogue_entry", first, "kind", 1),
        (1, "dialogue_entry", first, "parent_id", 1),
        (1, "dialogue_entry", first, "entry_id", "x" * 513),
        (0, "dialogue", dialogue, "usage", None),
        (0, "dialogue", dialogue, "updated_at", "today"),
        (0, "dialogue", dialogue, "branches", [1]),
        (0, "dialogue", dialogue, "conversation_id", ""),
    ]
    for after, kind, item, name, value in wrong:
        number = start + after
        broken = json.dumps({kind: {**item, name: value}})
        assert f"line {number + 1} " in problem([*lines[:number], broken, *lines[number + 1 :]])


async def test_an_archive_made_before_there_were_any_is_read(place: Place) -> None:
    with InMemoryStore() as store:
        store.save("n", MemoryEntry(content=1))
        ConversationMemory(store=store).add_turn("c", "p", "a")
        file = io.StringIO()
        export_jsonl(store, file)
        *lines, _ = file.getvalue().splitlines()
    with somewhere("sqlite", place) as where:
        async with opened("sqlite", where) as target:
            end = '{"end": {"entries": 1, "conversations": 1, "turns": 1}}'
            assert import_jsonl(target.store, [*lines, end]) == Counts(1, 1, 1)


async def test_a_history_with_a_hole_is_not_taken_for_whole(place: Place) -> None:
    async with both(("sqlite", "sqlite"), place) as (source, target):
        orphan = ConversationEntry(id="2", parent_id="1", message=message("orphan"))
        record = ConversationRecord(conversation_id="c", head_id="2")
        await source.write_record(record, new_entries=[orphan], expected_revision=None)
        with pytest.raises(CorruptDataError, match=r"conversation 'c' is damaged \(its message '1' is missing"):
            await async_copy_store(source.store, target.store)
        assert await target.read_records() == []


async def test_what_changes_while_it_is_read_or_written_is_a_conflict(place: Place) -> None:
    async with both(("sqlite", "sqlite"), place) as (source, target):
        await source.save(Conversation(conversation_id="c", messages=messages(3)))
        view = source.store.suspending
        async for _, item in dialogue_archive.dialogues_of(view.dialogues):
            await source.delete("c")
            with pytest.raises(ConflictError, match="'c' was changed while it was read; start again"):
                _ = [each async for each in dialogue_archive.messages_of(view.dialogues, item, set(), set())]
            writer = dialogue_archive.DialogueWriter(target.store.suspending.dialogues)
            await writer.begin({**item, "head_id": None})
            await target.save(Conversation(conversation_id="c", messages=messages(1)))
            with pytest.raises(ConflictError, match="'c' was changed in the target meanwhile; start again"):
                await writer.finish()


async def test_a_standalone_server_gives_and_takes_them(place: Place) -> None:
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    try:
        async with MongoDBStore(server.url) as store, both(("sqlite", "sqlite"), place) as (source, target):
            standalone = MongoConversationStore(store)
            await filled(source)
            for last in range(5, 90, 6):
                with pytest.raises(InterruptedError):
                    copy_store(source.store, store, progress=Stop(last))
                assert (await async_copy_store(source.store, store)).equal
                for record in await standalone.read_records():
                    await standalone.delete(record.conversation_id)  # its messages stay
            assert copy_store(source.store, store).equal
            assert copy_store(store, target.store).equal
            await assert_equal(source, target)
    finally:
        server.remove()


async def test_a_long_conversation_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(dialogue_archive, "_PAGE", 100)
    peaks: list[tuple[int, int]] = []
    for count in (400, 1_600):
        async with SQLiteStore(tmp_path / f"{count}.db") as store:
            said = [message("x" * 1_000) for _ in range(count)]
            await SQLConversationStore(store).save(Conversation(conversation_id="long", messages=said))
            del said
            with (tmp_path / "out").open("w") as out, SQLiteStore(tmp_path / f"to {count}.db") as target:
                copy_store(InMemoryStore(), target)
                peaks.append((_peak(lambda: export_jsonl(store, out)), _peak(lambda: copy_store(store, target))))
    for less, more in zip(*peaks, strict=True):
        assert more < less * 1.5


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak

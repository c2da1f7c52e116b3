"""What the facets have of a person, page by page, and its deletion, on every backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from firefly_memory import ConflictError, ConversationMemory, EntryStore, FileStore, MongoDBStore, WorkingMemory, adapt
from firefly_memory.agent_history import people as histories
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryLog, HistoryRecord
from firefly_memory.agent_history.mongodb.deletion import HistoryDeletion
from firefly_memory.agent_history.people import HistoryEraser
from firefly_memory.conversations import people as conversations
from firefly_memory.conversations.people import ConversationEraser
from firefly_memory.identifiers import stored_text
from firefly_memory.people import Counts, Eraser, Owned
from firefly_memory.tombstones.log import conversation_identity, history_identity, namespace_identity
from tests.support.folder_backend import FolderStore

ANN = "ann \x00\u2603"
OWNER = stored_text(ANN)


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (conversations, histories):
        monkeypatch.setattr(module, "_PAGE", 2)


async def owned_by(eraser: Eraser, owner: str) -> list[Owned]:
    return [each async for page in eraser.owned(owner) for each in page]


async def erased(eraser: Eraser, owner: str) -> tuple[Counts, int]:
    """Each page is deleted before the next is read; the rows, and how many pages there were."""
    counts, pages = Counter[str](), 0
    async for page in eraser.owned(owner):
        assert 0 < len(page) <= 2
        counts.update(await eraser.delete(page))
        pages += 1
    return counts, pages


async def _conversations_are_erased(store: EntryStore) -> None:
    memory, eraser = ConversationMemory(store=store), ConversationEraser(store.suspending)
    assert await owned_by(eraser, OWNER) == []
    for number in range(5):
        name = f"chat {number} \x10"
        await memory.async_new_conversation(name, owner=ANN)
        for _ in range(number):
            await memory.async_add_turn(name, "p", "a")
        for key in range(number % 2 * 3):
            await WorkingMemory(store=store, conversation_id=name).async_set(f"k{key}", 1)
    for owner in ("bob", None, OWNER):
        await memory.async_add_turn(f"of {owner}", "p", "a", owner=owner)
    found = await owned_by(eraser, OWNER)
    name = stored_text("chat 3 \x10")
    assert [each.name for each in found] == [stored_text(f"chat {number} \x10") for number in (4, 3, 2, 1, 0)]
    assert found[1].identities == (
        conversation_identity(name),
        namespace_identity(stored_text("working:conversation:chat 3 \x10")),
    )
    assert found[1].counts == {"conversations": 1, "turns": 3, "working-facts": 3}
    await memory.async_add_turn("chat 0 \x10", "since", "then")
    deleted, pages = await erased(eraser, OWNER)
    assert deleted == {"conversations": 5, "turns": 11, "working-facts": 6}
    assert pages == 3
    assert await owned_by(eraser, OWNER) == []
    assert await eraser.delete(found) == {}, "nothing of it is there any more"
    left = [each.conversation_id for each in await memory.async_list_conversations()]
    assert sorted(left) == sorted(["of bob", "of None", f"of {OWNER}"])
    assert await WorkingMemory(store=store, conversation_id="chat 3 \x10").async_to_dict() == {}


async def test_conversations_are_erased_with_their_turns_and_facts(store: EntryStore) -> None:
    await _conversations_are_erased(store)


async def test_conversations_in_files_and_over_five_methods_are_erased(tmp_path: Path) -> None:
    await _conversations_are_erased(FileStore(tmp_path / "files"))
    await _conversations_are_erased(adapt(FolderStore(tmp_path / "five")))


async def test_facts_that_came_after_the_look_are_deleted_too(store: EntryStore) -> None:
    memory, eraser = ConversationMemory(store=store), ConversationEraser(store.suspending)
    facts = WorkingMemory(store=store, conversation_id="chat")
    await memory.async_add_turn("chat", "p", "a", owner=ANN)
    found = await owned_by(eraser, OWNER)
    await facts.async_set("k", 1)
    await memory.async_clear("chat")
    await facts.async_set("k", 1)
    assert await eraser.delete(found) == {}
    assert await facts.async_to_dict() == {}


KEEP_HISTORY = pytest.mark.parametrize("store", ["sqlite", "asyncpg", "psycopg", "mongodb"], indirect=True)


@pytest.fixture
async def log(store: EntryStore) -> AsyncIterator[HistoryLog]:
    log = store.suspending.log(AGENT_HISTORY_LOG)
    yield log
    for record in await log.records(None, None):
        await log.delete(record.conversation_id, record.revision)


def record_of(name: str, scope: str | None, head_id: str, revision: str = "r1") -> HistoryRecord:
    moment = datetime(2024, 5, 6, tzinfo=UTC)
    return HistoryRecord(name, revision, head_id, scope, None, None, [], "{}", None, moment, 1)


def messages_of(name: str, count: int, after: str | None = None) -> list[HistoryEntry]:
    ids = [after, *(f"{name}/{number}" for number in range(count))]
    return [HistoryEntry(str(ids[number + 1]), ids[number], "request", "{}") for number in range(count)]


async def there(log: HistoryLog, *entries: HistoryEntry) -> set[str]:
    return {each.entry_id for each in await log.entries([entry.entry_id for entry in entries])}


@KEEP_HISTORY
async def test_histories_of_a_scope_are_erased_and_messages_of_others_stay(store: EntryStore, log: HistoryLog) -> None:
    eraser = HistoryEraser(store.suspending)
    assert await owned_by(eraser, OWNER) == []
    own, others = messages_of("own", 4), messages_of("bob's", 2, after="own/1")
    assert await log.write(record_of("h0", OWNER, "own/3"), own, None)
    assert await log.write(record_of("bob's", "bob", "bob's/1"), others, None)
    assert await log.write(record_of("nobody's", None, "own/0"), [], None)
    for number in range(1, 5):
        assert await log.write(record_of(f"h{number}", OWNER, f"h{number}/0"), messages_of(f"h{number}", 1), None)
    found = await owned_by(eraser, OWNER)
    assert {each.name: (each.identities, each.counts) for each in found} == {
        f"h{number}": ((history_identity(f"h{number}"),), {"agent-history": 1}) for number in range(5)
    }
    assert await erased(eraser, OWNER) == ({"agent-history": 5}, 3)
    assert await erased(eraser, OWNER) == ({}, 0)
    assert await eraser.delete(found) == {"agent-history": 0}
    assert await there(log, *own, *others) == {"own/0", "own/1", "bob's/0", "bob's/1"}, "others go on from there"
    assert {each.conversation_id for each in await log.records(None, None)} == {"bob's", "nobody's"}


@KEEP_HISTORY
async def test_a_history_that_goes_on_while_it_is_erased_is_deleted_all_the_same(
    store: EntryStore, log: HistoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    eraser, entries, delete = HistoryEraser(store.suspending), messages_of("h", 3), type(log).delete
    assert await log.write(record_of("h", OWNER, "h/0"), entries[:1], None)
    found, writes = await owned_by(eraser, OWNER), iter([1, 2])

    async def delete_after_a_write(this: HistoryLog, name: str, expected: str) -> bool:
        for number in writes:
            new = record_of("h", OWNER, f"h/{number}", f"r{number + 1}")
            assert await log.write(new, [entries[number]], f"r{number}")
            break
        return await delete(this, name, expected)

    monkeypatch.setattr(type(log), "delete", delete_after_a_write)
    assert await eraser.delete(found) == {"agent-history": 1}
    assert await there(log, *entries) == set()


@KEEP_HISTORY
async def test_a_history_that_goes_on_without_end_is_reported(
    store: EntryStore, log: HistoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await log.write(record_of("h", OWNER, "h/0"), messages_of("h", 1), None)
    eraser = HistoryEraser(store.suspending)
    found = await owned_by(eraser, OWNER)

    async def never(*_: object) -> bool:
        return False

    with monkeypatch.context() as patch:
        patch.setattr(type(log), "delete", never)
        with pytest.raises(ConflictError, match="written all the time"):
            await eraser.delete(found)


@pytest.mark.parametrize("store", ["mongodb"], indirect=True)
async def test_messages_that_an_interrupted_erasure_has_left_are_deleted_by_the_next(
    store: EntryStore, log: HistoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(store, MongoDBStore)
    entries = messages_of("h", 3)
    assert await log.write(record_of("h", OWNER, "h/2"), entries, None)

    async def dies(*_: object) -> None:
        raise RuntimeError("killed")

    eraser = HistoryEraser(store.suspending)
    with monkeypatch.context() as patch:
        patch.setattr(HistoryDeletion, "finish", dies)
        with pytest.raises(RuntimeError, match="killed"):
            await erased(eraser, OWNER)
    assert len(await there(log, *entries)) == 3
    assert await erased(eraser, OWNER) == ({}, 0)
    assert await eraser.delete(()) == {"agent-history": 0}
    assert await there(log, *entries) == set()

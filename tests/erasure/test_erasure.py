"""One person's data in every facet of every backend: none of it is left after the erasure."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from firefly_memory import (
    ConversationMemory,
    EntryStore,
    ErasedError,
    FileStore,
    InMemoryStore,
    InvalidEntryError,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    WorkingMemory,
    erasure,
    service,
)
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryLog, HistoryRecord
from firefly_memory.facets import log_if_there, registered
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.identifiers import stored_text
from tests.support.backends import Place
from tests.toy_facet.facet import key, toys
from tests.toy_facet.log import Note

SECRET = "Tarantella-\u00e9\U0001f98b"
"""What nobody else says. As JSON it may be escaped."""
PERSON = f"person {SECRET}"
NOTES = f"notes {SECRET}"
KINDS = ["memory", "file", "sqlite", "asyncpg", "psycopg", "mongodb"]


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> AsyncIterator[EntryStore]:
    with registered(toys(tmp_path / "revisions")), _opened(request.param, place) as opened:
        async with opened as store:
            yield store


class _Opened:
    """A store in a place of the test's own, which is gone afterwards."""

    def __init__(self, open_store: Callable[[], EntryStore], drop: Callable[[], None] = lambda: None) -> None:
        self._open, self._drop = open_store, drop

    def __enter__(self) -> EntryStore:
        return self._open()

    def __exit__(self, *_: object) -> None:
        self._drop()


def _opened(kind: str, place: Place) -> _Opened:
    own = f"erasure_{uuid4().hex[:12]}"
    match kind:
        case "memory":
            return _Opened(InMemoryStore)
        case "file":
            return _Opened(lambda: FileStore(place.directory / "files"))
        case "sqlite":
            return _Opened(lambda: SQLiteStore(place.directory / "memory.db"))
        case "mongodb":
            return _Opened(lambda: MongoDBStore(place.mongodb(), database=own))

    def drop() -> None:
        with psycopg.connect(place.postgresql(), autocommit=True) as admin:
            admin.execute(f"DROP SCHEMA IF EXISTS {own} CASCADE".encode())

    return _Opened(lambda: PostgreSQLStore(place.with_driver(kind), schema_name=own), drop)


def history_of(owner: str | None, conversation_id: str) -> tuple[HistoryRecord, list[HistoryEntry]]:
    message = json.dumps({"text": f"message of {owner}"})
    entry = HistoryEntry(stored_text(f"entry of {conversation_id}"), None, "request", message)
    moment = datetime(2024, 5, 6, tzinfo=UTC)
    scope = None if owner is None else stored_text(owner)
    record = HistoryRecord(
        stored_text(conversation_id), "r1", entry.entry_id, scope, None, None, [], "{}", None, moment, 1
    )
    return record, [entry]


async def write_data_of(store: EntryStore, owner: str) -> None:
    """Something of a person in every facet that the store has; every text has the owner's name in it."""
    memory = ConversationMemory(store=store, summarizer=lambda _: f"summary of {owner}", summarize_threshold=40)
    for number in range(2):
        conversation = f"conversation {number} of {owner}"
        for turn in range(4):
            await memory.async_add_turn(
                conversation,
                f"prompt {turn} of {owner}",
                f"answer to {owner}",
                metadata={f"key of {owner}": [owner]},
                idempotency_key=f"{turn} of {owner}",
                owner=owner,
            )
        await WorkingMemory(store=store, conversation_id=conversation).async_set(f"key of {owner}", {owner: owner})
    await WorkingMemory(store=store, scope_id=owner).async_set("name", owner)
    await store.async_save(f"notes {owner.removeprefix('person ')}", MemoryEntry(content={"of": owner}, key=owner))
    log = log_if_there(store.suspending, AGENT_HISTORY_LOG)
    if log is not None:
        assert await log.write(*history_of(owner, f"history of {owner}"), None)
    if log_if_there(store.suspending, FEED_LOG) is not None:
        messages = [{"content": f"{number} of {owner}", "agent_key": owner, owner: owner} for number in range(3)]
        await FeedFlows(store.suspending).append(f"location of {owner}", messages, owner, "messages")
    notes = log_if_there(store.suspending, key())
    if notes is not None:
        await notes.put(Note(f"note of {owner}", f"body of {owner}", owner=owner))


async def test_nothing_of_an_erased_person_is_left_anywhere(store: EntryStore, tmp_path: Path) -> None:
    await write_data_of(store, PERSON)
    await write_data_of(store, "person Bob")
    assert await erasure.async_find_text(store, SECRET) != {}
    of_bob = await erasure.async_find_text(store, "Bob")
    before = {each.kind: each.rows for each in await service.async_stats(store)}
    receipt = await erasure.async_erase(store, PERSON, [NOTES])
    assert await erasure.async_find_text(store, SECRET) == {}
    assert await erasure.async_find_text(store, "Bob") == of_bob
    after = {each.kind: each.rows for each in await service.async_stats(store)}
    deleted = {kind: rows for kind, rows in receipt.rows.items() if rows}
    assert deleted == {kind: rows // 2 for kind, rows in before.items() if rows}
    assert after == {kind: None if rows is None else rows // 2 for kind, rows in before.items()}
    await store.close()
    assert _files_with(SECRET, tmp_path) == []


def _files_with(text: str, directory: Path) -> list[str]:
    return [each.name for each in directory.rglob("*") if each.is_file() and text.encode() in each.read_bytes()]


async def test_late_writes_of_every_facet_are_refused(store: EntryStore) -> None:
    await write_data_of(store, PERSON)
    await erasure.async_erase(store, PERSON, [NOTES])
    log = log_if_there(store.suspending, AGENT_HISTORY_LOG)
    if log is not None:
        await _histories_are_refused(log)
    if log_if_there(store.suspending, FEED_LOG) is not None:
        for owner, location in ((PERSON, "new"), (PERSON, f"location of {PERSON}"), (None, f"location of {PERSON}")):
            with pytest.raises(ErasedError):
                await FeedFlows(store.suspending).append(location, [{"content": 1}], owner, "messages")
    notes = log_if_there(store.suspending, key())
    if notes is not None:
        with pytest.raises(ErasedError):
            await notes.put(Note("new", "body", owner=PERSON))
    assert await erasure.async_find_text(store, SECRET) == {}
    assert await erasure.async_readmit(store, PERSON)
    await write_data_of(store, PERSON)


async def _histories_are_refused(log: HistoryLog) -> None:
    for owner, conversation_id in ((PERSON, "new"), (PERSON, f"history of {PERSON}"), (None, f"history of {PERSON}")):
        with pytest.raises(ErasedError):
            await log.write(*history_of(owner, conversation_id), None)
    record, entries = history_of("somebody else", "other")
    assert await log.write(record, entries, None)
    taken_over = record._replace(scope=stored_text(PERSON), revision="r2")
    with pytest.raises(ErasedError):
        await log.write(taken_over, [], "r1")
    assert await log.delete(record.conversation_id, "r1")


async def test_a_dry_run_counts_what_an_erasure_deletes(store: EntryStore) -> None:
    await write_data_of(store, PERSON)
    counted = await erasure.async_erase(store, PERSON, [NOTES], dry_run=True)
    there = await erasure.async_find_text(store, SECRET)
    receipt = await erasure.async_erase(store, PERSON, [NOTES])
    assert there != {}
    assert counted.rows == receipt.rows
    assert (counted.is_dry_run, receipt.is_dry_run) == (True, False)


async def test_progress_grows_to_the_receipt(store: EntryStore) -> None:
    await write_data_of(store, PERSON)
    seen: list[int] = []
    receipt = await erasure.async_erase(store, PERSON, [NOTES], progress=lambda rows: seen.append(sum(rows.values())))
    assert seen == sorted(seen)
    assert seen[-1] == sum(receipt.rows.values())


def test_what_is_no_name_is_refused_before_anything_is_deleted() -> None:
    with InMemoryStore() as store:
        memory = ConversationMemory(store=store)
        memory.add_turn("chat", "p", "a", owner="ann")
        wrong: list[Any] = ["", 7, None, "x" * 513]
        for owner in wrong:
            with pytest.raises(InvalidEntryError):
                erasure.erase(store, owner)
        for namespaces in (["notes", ""], ["notes", 7], "notes", ["conversation:chat"]):
            with pytest.raises(InvalidEntryError):
                erasure.erase(store, "ann", namespaces)  # type: ignore[arg-type]
        assert len(memory.get_turns("chat")) == 1


def test_an_owner_named_as_a_conversation_loses_no_facts_of_others() -> None:
    with InMemoryStore() as store:
        facts = WorkingMemory(store=store, conversation_id="bob")
        facts.set("city", "Paris")
        erasure.erase(store, "conversation:bob")
        assert facts.to_dict() == {"city": "Paris"}
        facts.set("city", "Lyon")

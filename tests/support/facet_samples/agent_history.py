"""Samples of agent history."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from firefly_memory import EntryStore, ErasedError, clock
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryRecord
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.identifiers import stored_text

_MESSAGE = {"parts": [{"content": "hello", "part_kind": "user-prompt"}], "kind": "request"}


def history_of(owner: str | None, conversation_id: str) -> tuple[HistoryRecord, list[HistoryEntry]]:
    message = json.dumps({"text": f"message of {owner}"})
    entry = HistoryEntry(stored_text(f"entry of {conversation_id}"), None, "request", message)
    moment = datetime(2024, 5, 6, tzinfo=UTC)
    scope = None if owner is None else stored_text(owner)
    record = HistoryRecord(
        stored_text(conversation_id), "r1", entry.entry_id, scope, None, None, [], "{}", None, moment, 1
    )
    return record, [entry]


async def store_data_of(store: EntryStore, owner: str) -> None:
    assert await store.suspending.log(AGENT_HISTORY_LOG).write(*history_of(owner, f"history of {owner}"), None)


async def assert_late_writes_are_refused(store: EntryStore, owner: str) -> None:
    log, old = store.suspending.log(AGENT_HISTORY_LOG), f"history of {owner}"
    for whose, conversation_id in ((owner, "new"), (owner, old), (None, old)):
        with pytest.raises(ErasedError):
            await log.write(*history_of(whose, conversation_id), None)
    record, entries = history_of("somebody else", "other")
    assert await log.write(record, entries, None)
    taken_over = record._replace(scope=stored_text(owner), revision="r2")
    with pytest.raises(ErasedError):
        await log.write(taken_over, [], "r1")
    assert await log.delete(record.conversation_id, "r1")


def store_hostile(store: EntryStore, text: str) -> None:
    record, (entry,) = history_of(text, text)
    entries = [entry._replace(message=json.dumps({text: text}))]
    record = record._replace(usage=json.dumps({text: text}), deferred_tool_requests=json.dumps({text: text}))
    assert run_without_loop(store.blocking.log(AGENT_HISTORY_LOG).write(record, entries, None))


def store_archived(store: EntryStore) -> None:
    entries = [
        HistoryEntry(f"m{number}", f"m{number - 1}" if number else None, "message", json.dumps(_MESSAGE))
        for number in range(3)
    ]
    record = HistoryRecord("d", "r1", "m2", "scope", None, None, ["m2"], "{}", None, clock.now(), 1)
    assert run_without_loop(store.blocking.log(AGENT_HISTORY_LOG).write(record, entries, None))

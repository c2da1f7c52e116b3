"""Everything that a store gives back through the public API, as JSON: to compare two stores, or a store with a file."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord, ConversationStore
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse

from firefly_memory import ConversationMemory, EntryStore, MemoryEntry, MongoDBStore, WorkingMemory
from firefly_memory.agents import MongoConversationStore, SQLConversationStore
from firefly_memory.archive import async_export_jsonl

Json = dict[str, Any]

PAGE = 3  # so that there are several pages of everything


def agent_conversations(store: EntryStore) -> SQLConversationStore | MongoConversationStore:
    """The store of pydantic-ai's conversations in the database of ``store``."""
    return MongoConversationStore(store) if isinstance(store, MongoDBStore) else SQLConversationStore(store)


async def contents_of(store: EntryStore, facts: list[Json]) -> Json:
    """The entries, the conversations, pydantic-ai's conversations, and the facts of ``WorkingMemory(**each)``."""
    memory = ConversationMemory(store=store)
    contents: Json = {
        "namespaces": {name: await _namespace(store, name) async for name in _namespaces(store)},
        "facts": [{"of": each, **await _facts(WorkingMemory(store=store, **each))} for each in facts],
        "conversations": [await _conversation(memory, info) async for info in _conversations(memory)],
        "agent_conversations": await _agent_conversations(agent_conversations(store)),
    }
    as_read: Json = read(written(contents))
    return as_read


async def archive_of(store: EntryStore) -> str:
    """What ``export_jsonl`` writes."""
    file = io.StringIO()
    await async_export_jsonl(store, file)
    return file.getvalue()


def written(contents: Any) -> str:
    """As JSON of ASCII, in which every text can be written. The order of keys is kept."""
    return json.dumps(contents, indent=1, default=_as_json)


def read(text: str) -> Any:
    """What :func:`written` wrote. Messages are as today's pydantic-ai writes them, which may have got more fields."""
    return json.loads(text, object_hook=_as_of_today)


def _as_json(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case ModelRequest() | ModelResponse():
            return _messages_as_json([value])[0]
    raise TypeError(f"{value!r} has no form here")


def _as_of_today(value: Json) -> Json:
    if value.get("kind") in {"request", "response"} and "parts" in value:
        message: Json = _messages_as_json(ModelMessagesTypeAdapter.validate_python([value]))[0]
        return message
    return value


def _messages_as_json(messages: Any) -> Any:
    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


async def _namespaces(store: EntryStore) -> AsyncIterator[str]:
    found = await store.async_namespaces(limit=PAGE)
    while found:
        for name in found:
            yield name
        found = await store.async_namespaces(limit=PAGE, after=found[-1])


async def _namespace(store: EntryStore, name: str) -> Json:
    entries: list[MemoryEntry] = []
    after: str | None = None
    while True:
        page = await store.async_load_page(name, PAGE, after)
        entries += page
        after = page.next
        if after is None:
            break
    assert entries == await store.async_load(name)
    newest = {}
    for key in sorted({entry.key for entry in entries if entry.key is not None}):
        found = await store.async_load_by_key(name, key)
        newest[key] = None if found is None else found.entry_id
    return {
        "count": await store.async_count(name),
        "entries": [_entry(entry) for entry in entries],
        "newest_of_each_key": newest,
    }


def _entry(entry: MemoryEntry) -> Json:
    return {
        "entry_id": entry.entry_id,
        "scope": entry.scope.value,
        "key": entry.key,
        "content": entry.content,
        "metadata": entry.metadata,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at,
        "importance": entry.importance,
    }


async def _facts(working: WorkingMemory) -> Json:
    return {"scope_id": working.scope_id, "facts": await working.async_items()}


async def _conversations(memory: ConversationMemory) -> AsyncIterator[Json]:
    after: str | None = None
    while True:
        page = await memory.async_list_conversations(PAGE, after)
        for info in page:
            known = asdict(info)
            yield {name: known[name] for name in _OF_A_CONVERSATION}
        after = page.next
        if after is None:
            return


_OF_A_CONVERSATION = (
    "conversation_id",
    "turns",
    "total_tokens",
    "summarized_turns",
    "dropped_turns",
    "created_at",
    "updated_at",
)
_OF_A_TURN = (
    "turn_id",
    "user_prompt",
    "assistant_response",
    "raw_messages",
    "metadata",
    "token_estimate",
    "created_at",
)


async def _conversation(memory: ConversationMemory, info: Json) -> Json:
    conversation_id = info["conversation_id"]
    turns = await memory.async_get_turns(conversation_id)
    window = await memory.async_get_window(conversation_id)
    exported = await memory.async_export_conversation(conversation_id)
    return {
        "info": info,
        "turns": [{name: getattr(turn, name) for name in _OF_A_TURN} for turn in turns],
        "summary": await memory.async_get_summary(conversation_id),
        "total_tokens": await memory.async_get_total_tokens(conversation_id),
        "window": {"turns": window.turns, "messages": window.messages, "total_turns": window.total_turns},
        "export": exported,
    }


async def _agent_conversations(conversations: ConversationStore) -> list[Json]:
    found = []
    for record in await conversations.read_records():
        in_scope = await conversations.read_records(scope=record.scope)
        assert record in in_scope
        loaded = await conversations.load(record.conversation_id)
        assert loaded is not None
        ends = [end for end in dict.fromkeys([record.head_id, *record.branches]) if end is not None]
        histories = {end: await conversations.read_history(end) for end in ends}
        newest = [] if record.head_id is None else histories[record.head_id]
        assert loaded.messages == [entry.message for entry in newest]
        found.append(
            {
                "record": _record(record),
                "histories": [[_agent_entry(entry) for entry in history] for history in histories.values()],
            }
        )
    return found


def _agent_entry(entry: ConversationEntry) -> Json:
    return {"id": entry.id, "parent_id": entry.parent_id, "message": entry.message}


def _record(record: ConversationRecord) -> Json:
    deferred = record.deferred_tool_requests
    approvals = [] if deferred is None else deferred.approvals
    return {
        "conversation_id": record.conversation_id,
        "head_id": record.head_id,
        "usage": [record.usage.requests, record.usage.input_tokens, record.usage.details],
        "approvals": [[call.tool_name, call.args, call.tool_call_id] for call in approvals],
        "scope": record.scope,
        "forked_from": record.forked_from,
        "forked_at": record.forked_at,
        "branches": record.branches,
        "revision": record.revision,
        "updated_at": record.updated_at,
    }

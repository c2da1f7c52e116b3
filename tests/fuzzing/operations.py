"""Everything that may be done with a store, in one mode."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from firefly_memory import EntryStore, MemoryEntry, WorkingMemory
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from firefly_memory.archive import async_export_jsonl, export_jsonl
from firefly_memory.facets import log_if_there
from firefly_memory.protocols import ABSENT
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.facet_samples.conversations import memory_of

Operations = dict[str, Callable[[], Awaitable[Any]]]


def reading(store: EntryStore, mode: Mode) -> Operations:
    view = store.blocking if mode is Mode.BLOCKING else store.suspending
    memory, facts = Memory(memory_of(store), mode), Memory(WorkingMemory(scope_id="s", store=store), mode)

    async def pages() -> None:
        after = None
        while True:
            page = await view.load_page("notes", 2, after)
            after = page.next
            if after is None:
                return

    async def conversations() -> None:
        after = None
        while True:
            page = await memory.list_conversations(2, after)
            after = page.next
            if after is None:
                return

    async def export() -> None:
        if mode is Mode.BLOCKING:
            export_jsonl(store, io.StringIO())
        else:
            await async_export_jsonl(store, io.StringIO())

    async def agent_history() -> None:
        history = log_if_there(view, AGENT_HISTORY_LOG)
        if history is not None:
            for record in await history.records(None, None):
                if record.head_id is not None:
                    await history.history(record.head_id, None)
            await history.entries(["m0", "m1", "m2"])
            await history.shared(["m0", "m1", "m2"])

    operations: Operations = {
        "load": partial(view.load, "notes"),
        "load_page": pages,
        "load_by_key": partial(view.load_by_key, "notes", "k0"),
        "count": partial(view.count, "notes"),
        "namespaces": view.namespaces,
        "list_conversations": conversations,
        "facts": facts.to_dict,
        "fact": partial(facts.get, "name"),
        "context": facts.to_context_string,
        "export": export,
        "agent_history": agent_history,
    }
    for name in ("get_turns", "get_window", "get_message_history", "get_summary", "get_total_tokens"):
        operations[name] = partial(getattr(memory, name), "chat")
    operations["export_conversation"] = partial(memory.export_conversation, "chat", raw_messages=True)
    return operations


def writing(store: EntryStore, mode: Mode) -> Operations:
    """Those that look at what is there. Each is done whole or not at all."""
    view = store.blocking if mode is Mode.BLOCKING else store.suspending
    memory, facts = Memory(memory_of(store), mode), Memory(WorkingMemory(scope_id="s", store=store), mode)
    new = MemoryEntry(entry_id="e0", key="k0", content="new")
    return {
        "save": partial(view.save, "notes", new),
        "save_if": partial(view.save_if, "notes", new, "text \x00\ud800"),
        "save_if_absent": partial(view.save_if, "notes", MemoryEntry(entry_id="e1"), ABSENT),
        "save_many": partial(view.save_many, "notes", [new, MemoryEntry(entry_id="e2")]),
        "save_elsewhere": partial(view.save, "other", MemoryEntry(entry_id="e3")),
        "delete": partial(view.delete, "notes", "e4"),
        "delete_many": partial(view.delete_many, "notes", ["e5", "e6"]),
        "set": partial(facts.set, "name", "Anna"),
        "increment": partial(facts.increment, "count"),
        "compare_and_set": partial(facts.compare_and_set, "name", "Anna", "Alice"),
        "add_turn": partial(memory.add_turn, "chat", "a prompt", "an answer"),
        "retry": partial(memory.add_turn, "plain", "p", "a", idempotency_key="once"),
        "summarize": partial(memory.summarize, "chat"),
        "fork": partial(memory.fork_conversation, "chat", "a fork"),
        "clear_conversation": partial(memory.clear, "plain"),
        "clear": partial(view.clear, "notes"),
    }

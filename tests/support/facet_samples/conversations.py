"""Samples of conversations, with the facts of their people."""

from __future__ import annotations

import pytest

from firefly_memory import ConversationMemory, EntryStore, ErasedError, WorkingMemory
from firefly_memory.testing.checks import Words

OF_SEVERAL_NODES = {
    "ConversationStatements.delete_heads": (
        "deletes all conversations, and locks them in one order, which is an order of one node only"
    ),
    "PostgreSQLConversationStatements.append_group": (
        "appends to several conversations; Citus takes the results of its parts over the coordinator"
    ),
}


async def store_data_of(store: EntryStore, owner: str) -> None:
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


async def assert_late_writes_are_refused(store: EntryStore, owner: str) -> None:
    memory, old = ConversationMemory(store=store), f"conversation 0 of {owner}"
    for whose, conversation in ((owner, "new"), (owner, old), (None, old)):
        with pytest.raises(ErasedError):
            await memory.async_add_turn(conversation, "p", "a", owner=whose)
    for facts in (WorkingMemory(store=store, conversation_id=old), WorkingMemory(store=store, scope_id=owner)):
        with pytest.raises(ErasedError):
            await facts.async_set("name", owner)


def store_hostile(store: EntryStore, text: str) -> None:
    ConversationMemory(store=store).add_turn(text, text, text * 20, metadata={text: text})


def memory_of(store: EntryStore) -> ConversationMemory:
    """One that needs no model, and summarizes soon."""
    return ConversationMemory(
        store=store,
        max_tokens=12,
        summarize_threshold=6,
        estimator=Words(),
        summarizer=lambda turns: f"{len(turns)} turns",
    )


def store_archived(store: EntryStore) -> None:
    memory = memory_of(store)
    memory.new_conversation("empty")
    for number in range(4):
        memory.add_turn("chat", f"prompt {number} a b c", "answer", [{"n": number}], metadata={"n": number})
    memory.add_turn("plain", "p", "a", idempotency_key="once")

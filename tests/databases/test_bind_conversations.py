"""Conversations and working memory inside the caller's transaction."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from firefly_memory import ConversationMemory, MemoryManager, StaleConversationError, TurnConflictError, WorkingMemory
from tests.support.backends import Place
from tests.support.bound_stores import DRIVERS, KINDS, opened, opened_async


@KINDS
def test_a_row_and_a_turn_commit_or_roll_back_together(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        memory = ConversationMemory(store=store)
        for commits in (False, True):
            with engine.connect() as connection:
                connection.execute(text("INSERT INTO orders VALUES (1)"))
                manager = MemoryManager(store=store.bind(connection), working_scope_id="s")
                manager.add_turn("chat", "order it", "ordered", ["m"])
                manager.set_fact("order", "o1")
                assert manager.get_message_history("chat") == ["m"]
                assert manager.working.increment("orders") == 1
                assert memory.get_turns("chat") == [], "nobody else sees it yet"
                if commits:
                    connection.commit()
        assert len(memory.get_turns("chat")) == 1
        assert WorkingMemory(store=store, scope_id="s").to_dict() == {"order": "o1", "orders": 1}
        memory.clear("chat")
        WorkingMemory(store=store, scope_id="s").clear()


@KINDS
def test_a_refused_call_does_not_end_the_transaction(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        with engine.begin() as connection:
            memory = ConversationMemory(store=store.bind(connection))
            first = memory.add_turn("chat", "p", "a", idempotency_key="k")
            assert memory.add_turn("chat", "p", "a", idempotency_key="k") == first
            with pytest.raises(TurnConflictError):
                memory.add_turn("chat", "p", "b", idempotency_key="k")
            with pytest.raises(StaleConversationError):
                memory.add_turn("chat", "p", "a", expected_turns=7)
            memory.add_turn("chat", "p2", "a")
        memory = ConversationMemory(store=store)
        assert [turn.user_prompt for turn in memory.get_turns("chat")] == ["p", "p2"]
        memory.clear("chat")


@DRIVERS
async def test_a_store_can_be_bound_to_an_asynchronous_transaction(driver: str, place: Place) -> None:
    async with opened_async(driver, place) as (store, engine):
        memory = ConversationMemory(store=store)
        async with engine.connect() as connection:
            bound = ConversationMemory(store=store.bind(connection))
            await bound.async_add_turn("chat", "p", "a", idempotency_key="k")
            await bound.async_add_turn("chat", "p", "a", idempotency_key="k")
            assert len(await bound.async_get_message_history("chat")) == 2
        assert await memory.async_get_turns("chat") == []
        async with engine.begin() as connection:
            bound = ConversationMemory(store=store.bind(connection))
            assert (await bound.async_add_turn("chat", "p", "a")).turn_id == 0
        assert len(await memory.async_get_turns("chat")) == 1
        await memory.async_clear("chat")


@KINDS
def test_nothing_is_summarized_inside_a_transaction(kind: str, place: Place) -> None:
    """It would wait for a model meanwhile, and what goes wrong with it would go wrong with the transaction."""
    with opened(kind, place) as (store, engine):
        memory = ConversationMemory(store=store, summarize_threshold=1, summarizer=lambda _: "summary")
        memory.clear("chat")
        with engine.begin() as connection:
            bound = ConversationMemory(
                store=store.bind(connection), summarize_threshold=1, summarizer=lambda _: pytest.fail("called")
            )
            for _ in range(3):
                bound.add_turn("chat", "p", "a")
        assert len(memory.get_turns("chat")) == 3
        memory.add_turn("chat", "p", "a")
        assert memory.get_summary("chat") == "summary"
        memory.clear("chat")

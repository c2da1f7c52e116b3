"""Conversations, working memory and what deletes them, as a user's type checker sees them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, assert_type

from firefly_memory import (
    ConversationInfo,
    ConversationMemory,
    ConversationPage,
    ConversationTurn,
    MemoryManager,
    TokenEstimator,
    Window,
    WorkingMemory,
    connect,
    create_llm_summarizer,
)
from firefly_memory.retention import Pruned, async_prune, prune
from firefly_memory.sweeper import Sweeper

store = connect("memory:")
manager = MemoryManager(store=store, max_conversation_tokens=4000)
assert_type(manager.conversation, ConversationMemory)
assert_type(manager.working, WorkingMemory)
assert_type(manager.fork("user:ada"), MemoryManager)
assert_type(MemoryManager.from_config(summarizer=None), MemoryManager)
MemoryManager.from_config(sumarizer=None)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
MemoryManager(url="sqlite:///memory.db")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

turn = manager.add_turn("1", "hello", "hi", metadata={"channel": "web"}, owner="ada", expected_turns=0)
assert_type(turn, ConversationTurn)
assert_type(turn.turn_id, int)
assert_type(turn.created_at, datetime)
manager.add_turn("1", "hello", "hi", meta={})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
manager.add_turn("1", "hello", "hi", expected_turns="0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
manager.conversation.add_turn("1", "hello", "hi", idempotency="k")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
assert_type(manager.get_message_history("1"), list[Any])
assert_type(manager.new_conversation(owner="ada"), str)

conversations = manager.conversation.list_conversations(limit=10, order="updated")
assert_type(conversations, ConversationPage)
assert_type(conversations[0], ConversationInfo)
assert_type([each.turns for each in conversations], list[int])
assert_type(conversations.next, str | None)
assert_type(manager.conversation.get_turns("1"), list[ConversationTurn])
assert_type(manager.conversation.get_window("1"), Window)
assert_type(manager.conversation.conversation_ids, list[str])
manager.conversation.list_conversations(order="newest")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

manager.set_fact("city", "Oslo", ttl=timedelta(hours=1))
manager.set_fact("city", "Oslo", ttl=3600)
manager.working.set("city", "Oslo", ttl=timedelta(days=1), importance=0.9)
assert_type(manager.working.compare_and_set("city", "Oslo", "Rome", ttl=timedelta(hours=1)), bool)
assert_type(manager.working.increment("visits"), int | float)
assert_type(manager.working.keys(), list[str])
manager.set_fact("city", "Oslo", tll=3600)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
manager.set_fact("city", "Oslo", ttl="1h")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

assert_type(prune(store, older_than=timedelta(days=90), keep_last=10), Pruned)
prune(store, older_then="90d")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def summarize(turns: list[ConversationTurn]) -> str:
    return turns[0].user_prompt


async def summarize_later(turns: list[ConversationTurn]) -> str:
    return turns[0].user_prompt


ConversationMemory(summarizer=summarize, summarize_threshold=3000, estimator=TokenEstimator(model="gpt-5"))
ConversationMemory(summarizer=summarize_later)
MemoryManager(summarizer=create_llm_summarizer("openai:gpt-5.2"))
ConversationMemory(summarizer="gpt-5.2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def both_modes_have_the_same_types() -> None:
    async with MemoryManager(store=store) as opened, Sweeper(store, every="1h"):
        assert_type(opened, MemoryManager)
        assert_type(await opened.async_add_turn("1", "hello", "hi", summarize=False), ConversationTurn)
        await opened.async_add_turn("1", "hello", "hi", meta={})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        await opened.async_set_fact("city", "Oslo", ttl=timedelta(hours=1))
        assert_type(await opened.async_get_message_history("1"), list[Any])
        assert_type((await opened.conversation.async_list_conversations())[0], ConversationInfo)
        assert_type(await opened.working.async_keys(), list[str])
        assert_type(await MemoryManager.async_from_config(), MemoryManager)
        assert_type(await async_prune(store, keep_last=10), Pruned)
    await opened.async_close()

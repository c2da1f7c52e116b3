"""The checks, a file for each group of rules. Importing this registers all of them."""

from firefly_memory.testing.rules import (
    atomicity,
    bounds,
    concurrency,
    conversation_forks,
    conversations,
    dropped_turns,
    erasure,
    expiry,
    exports,
    feeds,
    feeds_changes,
    feeds_subscriptions,
    flushes,
    isolation,
    knowledge,
    knowledge_erasure,
    knowledge_isolation,
    knowledge_search,
    order,
    owners,
    refusals,
    reserved,
    upsert,
    values,
    windows,
    working,
)

ENTRIES = (atomicity, bounds, concurrency, expiry, isolation, order, refusals, reserved, upsert, values)
"""The modules with the rules of entries."""

CONVERSATIONS = (conversation_forks, conversations, dropped_turns, erasure, exports, flushes, owners, windows, working)
"""The modules with the rules of conversations and working memory."""

KNOWLEDGE = (knowledge, knowledge_erasure, knowledge_isolation, knowledge_search)
"""The modules with the rules of knowledge."""

FEEDS = (feeds, feeds_changes, feeds_subscriptions)
"""The modules with the rules of feeds."""

__all__ = ["CONVERSATIONS", "ENTRIES", "FEEDS", "KNOWLEDGE"]

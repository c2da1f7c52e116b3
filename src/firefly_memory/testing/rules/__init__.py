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

__all__ = ["CONVERSATIONS", "ENTRIES", "KNOWLEDGE"]

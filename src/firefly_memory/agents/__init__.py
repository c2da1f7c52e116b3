"""Agents of pydantic-ai that remember. Needs the extra ``agents``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from firefly_memory.agents.versions import NEEDED, wrong_version
from firefly_memory.lazy_names import lazily
from firefly_memory.validation import ImportingExtra

with ImportingExtra("firefly_memory.agents", "pydantic-ai-slim", "agents"):
    import pydantic_ai  # noqa: F401

try:
    from firefly_memory.agents.capability import Memory
    from firefly_memory.agents.firefly_agent import FireflyAgent
except ImportError as exc:
    if not str(exc.name).startswith("pydantic_ai"):
        raise
    raise wrong_version("firefly_memory.agents", NEEDED) from exc

if TYPE_CHECKING:
    from firefly_memory.agents.conversation_stores import MongoConversationStore, SQLConversationStore
    from firefly_memory.agents.feed_capability import feed_memory
    from firefly_memory.agents.feed_messages import from_model_messages, to_model_messages
    from firefly_memory.agents.long_term_capability import LongTermMemory
    from firefly_memory.agents.long_term_toolset import long_term_tools

__all__ = [
    "FireflyAgent",
    "LongTermMemory",
    "Memory",
    "feed_memory",
    "from_model_messages",
    "long_term_tools",
    "to_model_messages",
]
if find_spec("pydantic_ai.conversation_store"):  # an older pydantic-ai has none, and ``import *`` works all the same
    __all__ += ["MongoConversationStore", "SQLConversationStore"]

_CONVERSATION_STORES = "firefly_memory.agents.conversation_stores"
_FEED_MESSAGES = "firefly_memory.agents.feed_messages"
_WHERE = {
    "LongTermMemory": "firefly_memory.agents.long_term_capability",
    "MongoConversationStore": _CONVERSATION_STORES,
    "SQLConversationStore": _CONVERSATION_STORES,
    "feed_memory": "firefly_memory.agents.feed_capability",
    "from_model_messages": _FEED_MESSAGES,
    "long_term_tools": "firefly_memory.agents.long_term_toolset",
    "to_model_messages": _FEED_MESSAGES,
}


if not TYPE_CHECKING:  # or no checker would notice a misspelt name

    def __getattr__(name: str) -> Any:
        return lazily(name, _WHERE, globals())

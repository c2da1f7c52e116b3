"""Agents of pydantic-ai that remember. Needs the extra ``agents``."""

from __future__ import annotations

from firefly_memory.errors import MissingDependencyError

try:
    import pydantic_ai  # noqa: F401
except ImportError as exc:
    raise MissingDependencyError("firefly_memory.agents", "pydantic-ai-slim", "agents") from exc

try:
    from firefly_memory.agents.capability import Memory
    from firefly_memory.agents.conversation_stores import MongoConversationStore, SQLConversationStore
    from firefly_memory.agents.firefly_agent import FireflyAgent
except ImportError as exc:
    if not str(exc.name).startswith("pydantic_ai"):
        raise
    # It is there, in another version.
    raise MissingDependencyError("firefly_memory.agents", "pydantic-ai-slim>=2.66,<3", "agents") from exc

__all__ = ["FireflyAgent", "Memory", "MongoConversationStore", "SQLConversationStore"]

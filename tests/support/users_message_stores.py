"""Message stores as users write them."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from firefly_memory.feeds.base_store import BaseMessageStore


# As the specification has it, except for the type that __init__ returns.
class InMemoryMessageStore(BaseMessageStore):
    def __init__(self) -> None:
        self.messages: dict[str, list[Any]] = {}

    def _get_location(self, location: str):
        if location not in self.messages:
            self.messages[location] = []
        return self.messages[location]

    def append(self, location: str, message: dict[str, Any]):
        self._get_location(location).append(message)

    def get_conversation_messages(self, location, limit=None):
        msgs = [m for m in self._get_location(location) if m.get("type") in ("user_message", "assistant_message")]
        return msgs[-limit:] if limit else msgs

    def get_agent_messages(self, location, agent_key, limit=None):
        msgs = [m for m in self._get_location(location) if m.get("agent_key") == agent_key]
        return msgs[-limit:] if limit else msgs

    def get_global_messages(self, location, limit=None):
        msgs = [m for m in self._get_location(location) if m.get("is_global")]
        return msgs[-limit:] if limit else msgs

    def get_team_messages(self, location, agent_keys, limit=None):
        msgs = [m for m in self._get_location(location) if m.get("agent_key") in agent_keys]
        return msgs[-limit:] if limit else msgs


class AsyncMessageStore(BaseMessageStore):
    """The same with coroutine functions, which wait for the event loop."""

    def __init__(self) -> None:
        self.blocking = InMemoryMessageStore()

    async def append(self, location: str, message: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        self.blocking.append(location, message)

    async def get_conversation_messages(self, location: str, limit: int | None = None) -> Any:
        await asyncio.sleep(0)
        return self.blocking.get_conversation_messages(location, limit)

    async def get_agent_messages(self, location: str, agent_key: str, limit: int | None = None) -> Any:
        await asyncio.sleep(0)
        return self.blocking.get_agent_messages(location, agent_key, limit)

    async def get_global_messages(self, location: str, limit: int | None = None) -> Any:
        await asyncio.sleep(0)
        return self.blocking.get_global_messages(location, limit)

    async def get_team_messages(self, location: str, agent_keys: Sequence[str], limit: int | None = None) -> Any:
        await asyncio.sleep(0)
        return self.blocking.get_team_messages(location, agent_keys, limit)


class BlockingMessageStore(InMemoryMessageStore):
    """Each call waits until the event loop lets it go on, and fails if the loop is blocked meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.called = asyncio.Event()
        self.may_go_on = threading.Event()
        self.calls: list[str] = []

    def append(self, location: str, message: dict[str, Any]) -> None:
        self._block("append")
        super().append(location, message)

    def get_conversation_messages(self, location: str, limit: int | None = None) -> Any:
        self._block("get_conversation_messages")
        return super().get_conversation_messages(location, limit)

    def _block(self, name: str) -> None:
        self.calls.append(name)
        self.loop.call_soon_threadsafe(self.called.set)
        assert self.may_go_on.wait(30), "the event loop is blocked"


class RecordingStore(InMemoryMessageStore):
    """Notes the arguments of each call, and how many messages it returned."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[str, int | None, int]] = []

    def get_conversation_messages(self, location: str, limit: int | None = None) -> Any:
        return self._noted("conversation", limit, super().get_conversation_messages(location, limit))

    def get_agent_messages(self, location: str, agent_key: str, limit: int | None = None) -> Any:
        return self._noted("agent", limit, super().get_agent_messages(location, agent_key, limit))

    def get_global_messages(self, location: str, limit: int | None = None) -> Any:
        return self._noted("global", limit, super().get_global_messages(location, limit))

    def get_team_messages(self, location: str, agent_keys: Sequence[str], limit: int | None = None) -> Any:
        return self._noted("team", limit, super().get_team_messages(location, agent_keys, limit))

    def _noted(self, kind: str, limit: int | None, messages: list[Any]) -> list[Any]:
        self.reads.append((kind, limit, len(messages)))
        return messages

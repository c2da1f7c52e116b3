"""Agents with ``feed_memory``, the memories that they are given, and what is said and told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from firefly_memory.agents import feed_memory
from firefly_memory.feeds import (
    BaseMemory,
    InMemoryMessageStore,
    MessageStoreMemory,
)
from tests.support.scripted_model import Scripted

Told = list[tuple[str, str]]


class CountingStore(InMemoryMessageStore):
    """A message store that knows how often it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []

    async def async_append(self, location: str, message: Any, owner: str | None = None) -> int:
        self.writes.append(1)
        return await super().async_append(location, message, owner)

    async def async_append_many(
        self, location: str, messages: Iterable[Any], owner: str | None = None, *, whole: bool = True
    ) -> list[int]:
        numbers = await super().async_append_many(location, messages, owner, whole=whole)
        self.writes.append(len(numbers))
        return numbers


def a_memory(agent_key: str = "ann", **options: Any) -> MessageStoreMemory:
    return MessageStoreMemory(InMemoryMessageStore(), "job", agent_key, **options)


def looking(scripted: Scripted, memory: BaseMemory, output_type: Any = str, **options: Any) -> Agent[None, Any]:
    """An agent with a tool that sees something."""
    agent: Agent[None, Any] = Agent(
        scripted.model, output_type=output_type, capabilities=[feed_memory(memory, **options)]
    )

    @agent.tool_plain
    async def look() -> str:
        await asyncio.sleep(0)
        return "seen"

    return agent


def said(history: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(each["type"], each["tool"] if each["type"] == "action" else each["content"]) for each in history]


def told(messages: list[ModelMessage]) -> Told:
    return [(part.part_kind, str(getattr(part, "content", ""))) for each in messages for part in each.parts]


def assert_calls_are_answered(messages: list[ModelMessage]) -> None:
    parts = [part for message in messages for part in message.parts]
    calls = [part.tool_call_id for part in parts if part.part_kind == "tool-call"]
    assert calls == [part.tool_call_id for part in parts if part.part_kind in ("tool-return", "retry-prompt")]


class OneMessage(BaseMemory):
    """A user's own memory, without a key and without ``add_many``."""

    def __init__(self, error: Exception | None = None, *, reading: bool = False) -> None:
        self.messages: list[Any] = []
        self.error, self.reading = error, reading

    async def add(self, message: Any) -> None:
        if self.error is not None:
            raise self.error
        self.messages.append(message)

    async def get_history(self) -> list[Any]:
        if self.error is not None and self.reading:
            raise self.error
        return list(self.messages)

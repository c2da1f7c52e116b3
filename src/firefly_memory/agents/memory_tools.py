"""The tools by which a model writes facts, reads them, and searches what was kept."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed

from firefly_memory.agents.facts import RunFacts
from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.errors import FireflyMemoryError, InvalidEntryError
from firefly_memory.manager import MemoryManager
from firefly_memory.messages.storage import recalled_text, sendable

T = TypeVar("T")

logger = logging.getLogger("firefly_memory")


def fact_tools(facts: Callable[[], RunFacts], manager: MemoryManager) -> list[Any]:
    """``remember`` and ``recall``, for the facts of a run."""

    async def remember(ctx: RunContext[Any], key: str, value: str) -> str:
        """Keep a fact for later, under a short key. A fact that you kept under this key before is replaced."""
        with _failing_only_the_tool("remember", key, manager):
            return await _or_refused(ctx, facts().remember(key, value))

    async def recall(ctx: RunContext[Any], key: str) -> Any:
        """The fact that is kept under a key, or nothing."""
        with _failing_only_the_tool("recall", key, manager):
            return await _or_refused(ctx, facts().recall(key))

    return [remember, recall]


def search_tool(owner: Callable[[], str | None], conversation: ConversationMemory) -> Any:
    """``search_memory``, for the knowledge bases of the strategies."""

    async def search_memory(ctx: RunContext[Any], query: str) -> str:
        """Search what was kept of earlier turns and conversations."""
        with _failing_only_the_tool("search_memory", query, conversation):
            search = conversation.async_search_memory(str(ctx.conversation_id), query, owner=owner())
            found = await _or_refused(ctx, search)
        if isinstance(found, str):
            return found
        return sendable(recalled_text(found)) if found else "nothing was found"

    return search_memory


@contextmanager
def _failing_only_the_tool(tool: str, key: str, memory: object) -> Iterator[None]:
    """Report an error of the memory to the model; the run goes on."""
    try:
        yield
    except FireflyMemoryError as exc:
        logger.exception("the tool %s could not reach the memory %r", tool, memory)
        raise ToolFailed(f"{key!r}: the memory cannot be reached") from exc


async def _or_refused(ctx: RunContext[Any], act: Awaitable[T]) -> T | str:
    """The result of ``act``, or an error in the call: as a retry, unless no retry is left and the run would end."""
    try:
        return await act
    except (InvalidEntryError, ModelRetry) as exc:
        if ctx.last_attempt:
            return f"refused: {exc}"
        raise ModelRetry(str(exc)) from exc

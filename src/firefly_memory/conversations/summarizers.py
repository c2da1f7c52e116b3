"""Functions that summarize turns, called by blocking code and by asynchronous code."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

from firefly_memory.concurrency.sync_bridge import in_a_loop
from firefly_memory.conversations.policy import Summarizing
from firefly_memory.conversations.types import ConversationTurn

Summarizer = Callable[[list[ConversationTurn]], Any]
"""Takes turns, oldest first, and returns their summary, or an awaitable of it. If there is a summary already, it is the
first turn (``turn.is_summary``), word for word: the new summary replaces it."""


@runtime_checkable
class AsyncSummarizer(Protocol):
    """A summarizer with an asynchronous form, which asynchronous methods await."""

    async def async_summarize(self, turns: list[ConversationTurn], /) -> str:
        """The summary of ``turns``."""
        ...


def at_once(summarizer: Summarizer) -> Summarizing:
    async def summarize(turns: list[ConversationTurn]) -> Any:
        result: Any = summarizer(turns)
        return in_a_loop.run(_result(result)) if inspect.isawaitable(result) else result

    return summarize


def awaited(summarizer: Summarizer) -> Summarizing:
    def in_thread(turns: list[ConversationTurn]) -> Any:
        try:
            return summarizer(turns)
        except StopIteration as exc:  # nothing could be awaited that raises this
            raise RuntimeError("the summarizer raised StopIteration") from exc

    async def summarize(turns: list[ConversationTurn]) -> Any:
        return await in_this_loop(summary_of(turns))

    async def summary_of(turns: list[ConversationTurn]) -> Any:
        if isinstance(summarizer, AsyncSummarizer):
            return await summarizer.async_summarize(turns)
        if inspect.iscoroutinefunction(summarizer) or inspect.iscoroutinefunction(type(summarizer).__call__):
            return await _result(summarizer(turns))
        # It may take seconds, in which it must not keep threads that others wait for.
        thread = ThreadPoolExecutor(1, "firefly-memory-summarizer")
        try:
            return await _result(await asyncio.get_running_loop().run_in_executor(thread, in_thread, turns))
        finally:
            thread.shutdown(wait=False)

    return summarize


async def in_this_loop(awaitable: Awaitable[Any]) -> Any:
    """Wait for a summary. ``RuntimeError`` if it is cancelled, but not by a cancellation of the caller."""
    try:
        return await awaitable
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("the summarizer was cancelled") from exc


async def in_an_event_loop(awaitable: Awaitable[Any]) -> Any:
    """Wait for what needs an event loop, in a thread that has one."""
    return in_a_loop.run(_result(awaitable))


async def _result(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result

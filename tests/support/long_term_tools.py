"""``recall`` and ``remember`` of a service, in the mode of a test."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from firefly_memory.longterm import async_memory_read, async_memory_write, memory_read, memory_write
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory

Tool = Callable[..., Awaitable[str]]
ANN, BOB = "chat:ann", "chat:bob"


def reading(service: Memory, **settings: Any) -> Tool:
    """``recall``, to be awaited."""
    return _of_mode(service, "memory_read", settings)


def writing(service: Memory, **settings: Any) -> Tool:
    """``remember``, to be awaited."""
    return _of_mode(service, "memory_write", settings)


_MAKERS: dict[str, Any] = {
    each.__name__: each for each in (memory_read, async_memory_read, memory_write, async_memory_write)
}


def _of_mode(service: Memory, name: str, settings: Any) -> Tool:
    if service._mode is Mode.SUSPENDING:
        suspending: Tool = _MAKERS[f"async_{name}"](service.inner, **settings)
        return suspending
    blocking = _MAKERS[name](service.inner, **settings)

    async def call(*arguments: Any, **options: Any) -> str:
        return str(blocking(*arguments, **options))

    return call


async def keys_of(answer: Awaitable[str]) -> list[str]:
    return [each["key"] for each in json.loads(await answer)]

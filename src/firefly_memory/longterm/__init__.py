"""Long-term memory: facts that outlive conversations, the people whom they are about, and tools for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.lazy_names import lazily

if TYPE_CHECKING:
    from firefly_memory.longterm.identify import async_identify_user, identify_user
    from firefly_memory.longterm.service import MemoryService
    from firefly_memory.longterm.tools import async_memory_read, async_memory_write, memory_read, memory_write
    from firefly_memory.longterm.types import (
        FACT_TYPES,
        SCOPES,
        FactHit,
        FactVersion,
        MemoryFact,
        MemoryPage,
        MemoryUser,
        Scope,
    )

__all__ = [
    "FACT_TYPES",
    "SCOPES",
    "FactHit",
    "FactVersion",
    "MemoryFact",
    "MemoryPage",
    "MemoryService",
    "MemoryUser",
    "Scope",
    "async_identify_user",
    "async_memory_read",
    "async_memory_write",
    "identify_user",
    "memory_read",
    "memory_write",
]

_NAMES = {
    "identify": "async_identify_user identify_user",
    "service": "MemoryService",
    "tools": "async_memory_read async_memory_write memory_read memory_write",
    "types": "FACT_TYPES FactHit FactVersion MemoryFact MemoryPage MemoryUser SCOPES Scope",
}
_WHERE = {name: f"firefly_memory.longterm.{module}" for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    return lazily(name, _WHERE, globals())

"""Chunks in databases of MongoDB, for tests."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from pymongo import monitoring

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.knowledge.log import KNOWLEDGE_LOG, ChunkRow, KnowledgeLog
from firefly_memory.search.index import Vector
from tests.knowledge import row
from tests.support.mongodb_tombstones import Somewhere

T = TypeVar("T")

CHUNKS, VECTORS, SIGNATURES = "memory_chunks", "memory_chunks_vectors", "memory_chunks_signatures"


@dataclass
class Chunks:
    """The chunks of a database of the test's own, in one mode: ``await chunks("page", 10, "")``."""

    somewhere: Somewhere
    store: MongoDBStore
    mode: str

    @property
    def log(self) -> KnowledgeLog:
        return (self.store.blocking if self.mode == "blocking" else self.store.suspending).log(KNOWLEDGE_LOG)

    async def __call__(self, operation: str, *arguments: Any) -> Any:
        return await self.done(getattr(self.log, operation)(*arguments))

    async def ask(self, question: str, *arguments: Any) -> Any:
        """Ask the index."""
        return await self.done(getattr(self.log.index, question)(*arguments))

    async def done(self, work: Coroutine[Any, Any, T]) -> T:
        return run_without_loop(work) if self.mode == "blocking" else await work

    def contents(self) -> dict[str, list[dict[str, Any]]]:
        """What there is of chunks, without tombstones."""
        return contents(self.somewhere)


def contents(somewhere: Somewhere) -> dict[str, list[dict[str, Any]]]:
    """The documents of chunks, vectors and signatures, without tombstones."""
    return {name: found for name, found in somewhere.contents().items() if name.startswith(CHUNKS) and found}


def vector(number: int, embedder: str = "e") -> Vector:
    return Vector(embedder, bytes([number] * 8), bytes([number]))


def by_id(*texts: str, **fields: Any) -> list[ChunkRow]:
    """The rows of these texts, in the order of their ids."""
    return sorted((row(text, **fields) for text in texts), key=lambda each: each.id)


class Commands(monitoring.CommandListener):
    """The commands that are sent, each with its name."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.sent.append((event.command_name, dict(event.command)))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...

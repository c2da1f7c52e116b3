"""The memories of agents, and the state that those of one process share."""

from firefly_memory.feeds.memories.base_memory import BaseMemory
from firefly_memory.feeds.memories.in_process import HierarchicalSharedMemory, InMemoryMemory, SharedInMemoryMemory
from firefly_memory.feeds.memories.shared_state import SharedStateStore
from firefly_memory.feeds.memories.store_memories import HierarchicalMessageStoreMemory, MessageStoreMemory

__all__ = [
    "BaseMemory",
    "HierarchicalMessageStoreMemory",
    "HierarchicalSharedMemory",
    "InMemoryMemory",
    "MessageStoreMemory",
    "SharedInMemoryMemory",
    "SharedStateStore",
]

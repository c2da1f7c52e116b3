"""The memories of agents, and the state that those of one process share."""

from firefly_memory.feeds.base_memory import BaseMemory
from firefly_memory.feeds.in_process import HierarchicalSharedMemory, InMemoryMemory, SharedInMemoryMemory
from firefly_memory.feeds.shared_state import SharedStateStore
from firefly_memory.feeds.store_memories import HierarchicalMessageStoreMemory, MessageStoreMemory

__all__ = [
    "BaseMemory",
    "HierarchicalMessageStoreMemory",
    "HierarchicalSharedMemory",
    "InMemoryMemory",
    "MessageStoreMemory",
    "SharedInMemoryMemory",
    "SharedStateStore",
]

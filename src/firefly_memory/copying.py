"""Copies from one store to another, under their documented import path."""

from firefly_memory.transfer.copy_store import Copy, async_copy_store, copy_store
from firefly_memory.transfer.counts import Progress

__all__ = ["Copy", "Progress", "async_copy_store", "copy_store"]

"""Copies from one store to another, under their documented import path."""

from firefly_memory.transfer.copy_store import async_copy_store, copy_store

__all__ = ["async_copy_store", "copy_store"]

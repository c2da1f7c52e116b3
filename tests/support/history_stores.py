"""Stores for histories, opened in processes that know no more than the name of a function."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from firefly_memory import (
    Capability,
    DatabaseStoreError,
    EntryStore,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    adapt,
)
from tests.support.folder_backend import FolderStore

NAME = "histories"


def postgresql(driver: str, url: str) -> EntryStore:
    return PostgreSQLStore(url.replace("postgresql://", f"postgresql+{driver}://"), schema_name=NAME, pool_min_size=0)


def mongodb(url: str) -> EntryStore:
    return MongoDBStore(url, database=NAME)


def folder(path: Path) -> EntryStore:
    """A store whose data processes cannot share."""
    return adapt(FolderStore(path), {Capability.DURABLE})


class Refusing(FolderStore):
    """Saves nothing."""

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        raise DatabaseStoreError("save", "the disk is full")


def refusing(path: Path) -> EntryStore:
    return adapt(Refusing(path))


class WaitingForEver(FolderStore):
    """Never returns from ``save``."""

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        threading.Event().wait()


def waiting_for_ever(path: Path) -> EntryStore:
    return adapt(WaitingForEver(path))


def unreachable() -> EntryStore:
    raise RuntimeError("the store cannot be opened here")


class OpensOnlyHere:
    """Opens a store in the process that made it, and in no other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process = os.getpid()

    def __call__(self) -> EntryStore:
        return SQLiteStore(self._path) if os.getpid() == self._process else unreachable()

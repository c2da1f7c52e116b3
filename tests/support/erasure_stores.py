"""Stores without a database, for the tests of erasing a person."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from firefly_memory import EntryStore, FileStore, InMemoryStore, adapt
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.tombstones.log import TOMBSTONES, Identity
from tests.support.folder_backend import FolderStore

_NOW = datetime(2024, 5, 6, tzinfo=UTC)


def store_of(kind: str, directory: Path) -> EntryStore:
    match kind:
        case "memory":
            return InMemoryStore()
        case "file":
            return FileStore(directory / "files")
        case _:
            return adapt(FolderStore(directory / "five"))


def add_tombstones(store: EntryStore, *identities: Identity, owner: str = "ann") -> None:
    run_without_loop(store.blocking.log(TOMBSTONES).add(identities, owner, _NOW))

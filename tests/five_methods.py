"""A backend as a user would write one: the five methods, on the standard library's ``dbm``."""

from __future__ import annotations

import dbm
import json
import threading
from pathlib import Path

from firefly_memory import MemoryEntry

_lock = threading.Lock()  # dbm files have one user at a time


class DbmStore:
    """Each namespace is one value of the file: a JSON list of entries."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        with _lock:
            entries = self._read(namespace)
            for position, earlier in enumerate(entries):
                if earlier.entry_id == entry.entry_id and not earlier.is_expired:
                    entries[position] = entry.model_copy(update={"created_at": earlier.created_at})
                    break
            else:
                entries = [each for each in entries if each.entry_id != entry.entry_id] + [entry]
            self._write(namespace, entries)

    def load(self, namespace: str) -> list[MemoryEntry]:
        with _lock:
            return [entry for entry in self._read(namespace) if not entry.is_expired]

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        found = [entry for entry in self.load(namespace) if entry.key == key]
        return max(found, key=lambda entry: (entry.created_at, entry.entry_id), default=None)

    def delete(self, namespace: str, entry_id: str) -> None:
        with _lock:
            self._write(namespace, [entry for entry in self._read(namespace) if entry.entry_id != entry_id])

    def clear(self, namespace: str) -> None:
        with _lock:
            self._write(namespace, [])

    def _read(self, namespace: str) -> list[MemoryEntry]:
        with dbm.open(self._path, "c") as file:
            return [MemoryEntry.model_validate(item) for item in json.loads(file.get(namespace.encode(), b"[]"))]

    def _write(self, namespace: str, entries: list[MemoryEntry]) -> None:
        with dbm.open(self._path, "c") as file:
            file[namespace.encode()] = json.dumps([entry.model_dump(mode="json") for entry in entries]).encode()

"""A backend as a user would write one: the five methods, on the standard library's ``dbm``."""

from __future__ import annotations

import dbm
import json
import threading
from pathlib import Path

from firefly_memory import MemoryEntry

_lock = threading.Lock()  # dbm files have one user at a time


class DbmStore:
    """Each entry is a value of the file, each namespace a list of ids."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        with _lock, dbm.open(self._path, "c") as file:
            name = f"{namespace}/{entry.entry_id}".encode()
            ids = json.loads(file.get(namespace.encode(), b"[]"))
            if entry.entry_id in ids:
                earlier = MemoryEntry.model_validate_json(file[name])
                if not earlier.is_expired:
                    entry = entry.model_copy(update={"created_at": earlier.created_at})
            else:
                file[namespace.encode()] = json.dumps([*ids, entry.entry_id]).encode()
            file[name] = entry.model_dump_json().encode()

    def load(self, namespace: str) -> list[MemoryEntry]:
        with _lock, dbm.open(self._path, "c") as file:
            ids = json.loads(file.get(namespace.encode(), b"[]"))
            entries = [MemoryEntry.model_validate_json(file[f"{namespace}/{each}".encode()]) for each in ids]
        return [entry for entry in entries if not entry.is_expired]

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        found = [entry for entry in self.load(namespace) if entry.key == key]
        return max(found, key=lambda entry: (entry.created_at, entry.entry_id), default=None)

    def delete(self, namespace: str, entry_id: str) -> None:
        with _lock, dbm.open(self._path, "c") as file:
            ids = json.loads(file.get(namespace.encode(), b"[]"))
            if entry_id in ids:
                file[namespace.encode()] = json.dumps([each for each in ids if each != entry_id]).encode()
                del file[f"{namespace}/{entry_id}".encode()]

    def clear(self, namespace: str) -> None:
        for entry in self.load(namespace):
            self.delete(namespace, entry.entry_id)

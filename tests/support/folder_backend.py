"""A backend as a user would write one: the five methods, a folder for each namespace, a file for each entry."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from firefly_memory import MemoryEntry


class FolderStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        path = self._file(namespace, entry.entry_id)
        with self._lock:
            if path.exists():
                earlier = MemoryEntry.model_validate_json(path.read_text())
                if not earlier.is_expired:
                    entry = entry.model_copy(update={"created_at": earlier.created_at})
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(entry.model_dump_json())

    def load(self, namespace: str) -> list[MemoryEntry]:
        with self._lock:
            texts = [path.read_text() for path in self._folder(namespace).glob("*")]
        entries = [MemoryEntry.model_validate_json(text) for text in texts]
        return [entry for entry in entries if not entry.is_expired]

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        found = [entry for entry in self.load(namespace) if entry.key == key]
        return max(found, key=lambda entry: (entry.created_at, entry.entry_id), default=None)

    def delete(self, namespace: str, entry_id: str) -> None:
        with self._lock:
            self._file(namespace, entry_id).unlink(missing_ok=True)

    def clear(self, namespace: str) -> None:
        with self._lock:
            for path in self._folder(namespace).glob("*"):
                path.unlink()

    def _folder(self, namespace: str) -> Path:
        return self._path / _name(namespace)

    def _file(self, namespace: str, entry_id: str) -> Path:
        return self._folder(namespace) / _name(entry_id)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

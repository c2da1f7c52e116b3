import json
import threading
from collections.abc import MutableMapping
from typing import Any

from firefly_memory import MemoryEntry


class BlobStore:
    """Each namespace is one value of a mapping: a JSON list of entries."""

    def __init__(self, blobs: MutableMapping[str, bytes]) -> None:
        self._blobs = blobs
        self._lock = threading.Lock()

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        with self._lock:
            items = self._items(namespace)
            new = entry.model_dump(mode="json")
            if entry.entry_id in items:
                earlier = MemoryEntry.model_validate(items[entry.entry_id])
                if not earlier.is_expired:
                    new["created_at"] = earlier.created_at.isoformat()  # it keeps its place
            items[entry.entry_id] = new
            self._write(namespace, items)

    def load(self, namespace: str) -> list[MemoryEntry]:
        return [MemoryEntry.model_validate(item) for item in self._items(namespace).values()]

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        items = [item for item in self._items(namespace).values() if item["key"] == key]
        found = [entry for entry in map(MemoryEntry.model_validate, items) if not entry.is_expired]
        return max(found, key=lambda entry: (entry.created_at, entry.entry_id), default=None)

    def delete(self, namespace: str, entry_id: str) -> None:
        with self._lock:
            items = self._items(namespace)
            if items.pop(entry_id, None) is not None:
                self._write(namespace, items)

    def clear(self, namespace: str) -> None:
        with self._lock:
            self._blobs.pop(namespace, None)

    def _items(self, namespace: str) -> dict[str, dict[str, Any]]:
        return {item["entry_id"]: item for item in json.loads(self._blobs.get(namespace, b"[]"))}

    def _write(self, namespace: str, items: dict[str, dict[str, Any]]) -> None:
        self._blobs[namespace] = json.dumps(list(items.values())).encode()

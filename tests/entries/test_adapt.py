"""``adapt()`` turns a backend with five methods into a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    CorruptDataError,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MemoryStore,
    StoreClosedError,
    adapt,
)
from tests.support.folder_backend import FolderStore


class Recorder:
    """Five methods that remember what they were given."""

    def __init__(self) -> None:
        self.entries: dict[str, list[MemoryEntry]] = {}

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        self.entries.setdefault(namespace, []).append(entry)

    def load(self, namespace: str) -> list[MemoryEntry]:
        return self.entries.get(namespace, [])

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        return next((entry for entry in self.load(namespace) if entry.key == key), None)

    def delete(self, namespace: str, entry_id: str) -> None:
        self.entries[namespace] = [entry for entry in self.load(namespace) if entry.entry_id != entry_id]

    def clear(self, namespace: str) -> None:
        self.entries.pop(namespace, None)


class AsyncRecorder(Recorder):
    """The same with asynchronous methods of its own, which say that they were used."""

    awaited: int = 0

    async def async_save(self, namespace: str, entry: MemoryEntry) -> None:
        self.awaited += 1
        self.save(namespace, entry)

    async def async_load(self, namespace: str) -> list[MemoryEntry]:
        self.awaited += 1
        return self.load(namespace)

    async def async_load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        self.awaited += 1
        return self.load_by_key(namespace, key)

    async def async_delete(self, namespace: str, entry_id: str) -> None:
        self.awaited += 1
        self.delete(namespace, entry_id)

    async def async_clear(self, namespace: str) -> None:
        self.awaited += 1
        self.clear(namespace)


def test_adapting_a_store_of_the_library_returns_the_same_store() -> None:
    store = InMemoryStore()
    assert adapt(store) is store


def test_a_backend_gets_encoded_values() -> None:
    backend = Recorder()
    assert isinstance(backend, MemoryStore)
    store = adapt(backend)
    value = {"a\x00": 2**70, "plain": [1.5, "text"]}
    store.save("n\x00", MemoryEntry(key="k\x00", content=value))
    ((namespace, (entry,)),) = backend.entries.items()
    assert "\x00" not in f"{namespace}{entry.key}{entry.content}"
    entry.model_dump_json()
    assert store.load("n\x00")[0].content == value
    assert backend.entries[namespace][0].content == entry.content, "reading left it as it was"
    assert "Recorder" in repr(store)


async def test_asynchronous_methods_of_a_backend_are_awaited() -> None:
    backend = AsyncRecorder()
    store = adapt(backend)
    entry = MemoryEntry(key="k")
    await store.async_save("n", entry)
    assert await store.async_load("n") == [entry]
    assert await store.async_load_by_key("n", "k") == entry
    await store.async_delete("n", entry.entry_id)
    await store.async_clear("n")
    assert backend.awaited == 5
    store.save("n", entry)
    assert backend.awaited == 5


def test_closing_an_adapted_store_does_not_close_the_backend(tmp_path: Path) -> None:
    backend = FolderStore(tmp_path / "five")
    with adapt(backend) as store:
        store.save("n", MemoryEntry())
    with pytest.raises(StoreClosedError):
        store.load("n")
    assert len(backend.load("n")) == 1


def test_other_objects_than_backends_are_refused() -> None:
    things: list[Any] = [5, None, object()]
    for thing in things:
        with pytest.raises(ConfigurationError, match="is no store"):
            adapt(thing)
    classes: list[Any] = [Recorder, AsyncRecorder, InMemoryStore, FileStore]
    for each in classes:
        with pytest.raises(ConfigurationError, match=f"{each.__name__} is a class, not a store"):
            adapt(each)
    with pytest.raises(ConfigurationError, match="has no method save, load, load_by_key, delete, clear"):
        adapt(object())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="'durable' is not a Capability"):
        adapt(Recorder(), {"durable"})  # type: ignore[arg-type]


def test_a_backend_that_returns_a_wrong_type_is_an_error() -> None:
    backend = Recorder()
    backend.entries["n"] = [{"content": 1}]  # type: ignore[list-item]
    with pytest.raises(CorruptDataError, match="the backend returned dict"):
        adapt(backend).load("n")

"""Custom backends with faults, and the guarantees for correct ones."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    ConversationMemory,
    CorruptDataError,
    DatabaseStoreError,
    EntryStore,
    MemoryEntry,
    MemoryManager,
    SQLiteStore,
    StoreTimeoutError,
    adapt,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.over_entries import EntryConversationLog
from firefly_memory.entries import namespace_lock
from firefly_memory.entries.ordered_records import OrderedRecords
from tests.support.folder_backend import FolderStore


class Printed:
    """The protocol's methods as the documents print them."""

    def save(self, namespace: str, entry: MemoryEntry) -> None: ...

    def load(self, namespace: str) -> list[MemoryEntry]: ...  # type: ignore[empty-body]

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None: ...

    def delete(self, namespace: str, entry_id: str) -> None: ...

    def clear(self, namespace: str) -> None: ...


class Returning(Printed):
    """A backend whose ``load`` returns what it was given."""

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded

    def load(self, namespace: str) -> list[MemoryEntry]:
        found: list[MemoryEntry] = self.loaded
        return found


class InMemory(Printed):
    """With asynchronous forms, whose ``async_save`` waits until it may."""

    def __init__(self) -> None:
        self.entries: dict[str, MemoryEntry] = {}
        self.writing = threading.Event()
        self.may_write = threading.Event()
        self.calls: list[str] = []

    def load(self, namespace: str) -> list[MemoryEntry]:
        return list(self.entries.values())

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        self.calls.append(f"save {entry.content}")
        self.writing.set()
        assert self.may_write.wait(10)
        self.entries[entry.entry_id] = entry

    def delete(self, namespace: str, entry_id: str) -> None:
        self.calls.append("delete")
        del self.entries[entry_id]


class Awaited(InMemory):
    async def async_save(self, namespace: str, entry: MemoryEntry) -> None:
        self.writing.set()
        if not self.may_write.is_set():
            await asyncio.to_thread(self.may_write.wait, 10)
        self.entries[entry.entry_id] = entry

    async def async_load(self, namespace: str) -> list[MemoryEntry]:
        return self.load(namespace)

    async def async_load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        return None

    async def async_delete(self, namespace: str, entry_id: str) -> None: ...

    async def async_clear(self, namespace: str) -> None: ...


def edit(store: EntryStore, change: Callable[[OrderedRecords], object]) -> Any:
    log = store.blocking.log(CONVERSATION_LOG)
    assert isinstance(log, EntryConversationLog)
    return run_without_loop(log._entries.edit("n", change))


def async_edit(store: EntryStore, change: Callable[[OrderedRecords], object]) -> Any:
    log: Any = store.suspending.log(CONVERSATION_LOG)
    return log._entries.edit("n", change)


# What is not quite right


@pytest.mark.parametrize(
    ("loaded", "words"),
    [(None, "load() returned None, not a list of entries"), (..., "returned ellipsis"), (5, "returned int")],
)
def test_a_backend_that_does_not_load_a_list_is_an_error(loaded: object, words: str) -> None:
    store = adapt(Printed() if loaded is None else Returning(loaded))
    for operation, use in (
        ("load", lambda: store.load("n")),
        ("load", lambda: store.load_page("n")),
        ("count", lambda: store.count("n")),
        ("delete_many", lambda: store.delete_many("n", ["x"])),
    ):
        with pytest.raises(DatabaseStoreError) as caught:
            use()
        assert words in str(caught.value)
        assert caught.value.operation == operation


def test_two_entries_with_the_same_id_are_damage() -> None:
    store = adapt(Returning([MemoryEntry(entry_id="it"), MemoryEntry(entry_id="it")]))
    with pytest.raises(CorruptDataError, match="'it' occurs twice"):
        store.load("n")


def test_unvalidated_entries_are_damage() -> None:
    for fields in ({"scope": "no scope"}, {"created_at": None}):
        broken = MemoryEntry.model_construct(**(MemoryEntry().__dict__ | fields))
        with pytest.raises(CorruptDataError, match="namespace 'n'"):
            adapt(Returning([MemoryEntry(), broken])).load("n")


def test_errors_of_the_backend_pass_through_on_reading() -> None:
    def entries() -> Any:
        yield MemoryEntry()
        raise ValueError("the backend's own")

    with pytest.raises(ValueError, match="the backend's own"):
        adapt(Returning(entries())).load("n")


def test_coroutine_functions_as_blocking_methods_are_refused() -> None:
    class Misnamed(Printed):
        async def save(self, namespace: str, entry: MemoryEntry) -> None:  # type: ignore[override]
            ...

    with pytest.raises(ConfigurationError, match="Misnamed has coroutines where a store blocks; call them async_save"):
        adapt(Misnamed())  # type: ignore[arg-type]


# Cancellation


async def test_a_cancelled_save_waits_for_its_thread() -> None:
    """A thread inside the backend cannot be stopped."""
    backend = InMemory()
    store = adapt(backend)
    entries = [MemoryEntry(entry_id="it", content="first"), MemoryEntry(content="second")]
    task = asyncio.create_task(store.async_save_many("n", entries))
    await asyncio.to_thread(backend.writing.wait, 10)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    backend.may_write.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backend.calls == ["save first"], "what had not begun is not begun"
    await store.async_save("n", MemoryEntry(entry_id="it", content="later"))
    assert backend.entries["it"].content == "later"


async def test_an_error_after_a_cancellation_is_not_reported_to_the_event_loop() -> None:
    class Failing(InMemory):
        def save(self, namespace: str, entry: MemoryEntry) -> None:
            super().save(namespace, entry)
            raise LookupError

    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    backend = Failing()
    task = asyncio.create_task(adapt(backend).async_save("n", MemoryEntry()))
    await asyncio.to_thread(backend.writing.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    backend.may_write.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    assert not complaints


# Editing


def test_an_edit_writes_only_the_changed_entries() -> None:
    backend = InMemory()
    backend.may_write.set()
    store = adapt(backend)
    store.save_many("n", [MemoryEntry(entry_id=name, content=1) for name in "abc"])
    backend.calls.clear()

    def change(ordered: OrderedRecords) -> str:
        now = ordered["a"].created_at
        ordered.put(ordered["b"]._replace(content=True), now)
        ordered.remove("c")
        return "done"

    assert edit(store, len) == 3
    assert backend.calls == []
    assert edit(store, change) == "done"
    assert backend.calls == ["save True", "delete"]
    with pytest.raises(KeyError):
        edit(store, lambda ordered: (ordered.remove("a"), ordered.remove("not there")))
    assert sorted(backend.entries) == ["a", "b"]


def increase(ordered: OrderedRecords) -> None:
    before = ordered["it"]
    ordered.put(before._replace(content=before.content + 1), before.created_at)


def test_concurrent_edits_of_threads_with_own_stores_lose_nothing(tmp_path: Path) -> None:
    backend = FolderStore(tmp_path / "five")
    adapt(backend).save("n", MemoryEntry(entry_id="it", content=0))

    def work() -> None:
        for _ in range(10):
            edit(adapt(backend), increase)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.content for entry in adapt(backend).load("n")] == [40]


async def test_concurrent_edits_of_tasks_and_threads_lose_nothing() -> None:
    backend = Awaited()
    backend.may_write.set()
    store = adapt(backend)
    store.save("n", MemoryEntry(entry_id="it", content=0))
    tasks = [async_edit(store, increase) for _ in range(10)]
    await asyncio.gather(*tasks, *[asyncio.to_thread(edit, store, increase) for _ in range(10)])
    assert backend.entries["it"].content == 20


async def test_a_blocking_edit_does_not_wait_for_a_task_of_the_loop_that_it_blocks() -> None:
    backend = Awaited()
    store = adapt(backend)
    backend.entries["it"] = MemoryEntry(entry_id="it", content=0)
    task = asyncio.create_task(async_edit(store, increase))
    await asyncio.to_thread(backend.writing.wait, 10)
    backend.may_write.set()
    edit(store, lambda ordered: ordered.put(ordered["it"]._replace(entry_id="mine"), ordered["it"].created_at))
    await task
    assert sorted(backend.entries) == ["it", "mine"]


async def test_a_cancelled_edit_releases_its_lock() -> None:
    backend = Awaited()
    store = adapt(backend)
    backend.entries["it"] = MemoryEntry(entry_id="it", content=0)
    task = asyncio.create_task(async_edit(store, increase))
    await asyncio.to_thread(backend.writing.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    backend.may_write.set()
    await asyncio.to_thread(edit, store, increase)
    assert backend.entries["it"].content == 1


def test_a_hanging_backend_ends_in_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace_lock, "LOCK_TIMEOUT", 0.2)
    backend = Awaited()
    store = adapt(backend)

    async def wait() -> None:
        task = asyncio.create_task(store.async_save("n", MemoryEntry()))
        await asyncio.to_thread(backend.writing.wait, 10)
        for waiting in (async_edit(store, increase), asyncio.to_thread(edit, store, increase)):
            with pytest.raises(StoreTimeoutError) as caught:
                await waiting
            assert caught.value.retryable
        backend.may_write.set()
        await task

    asyncio.run(wait())


class Sealing:
    """Around a store, as a user would write it: contents are sealed on their way in and opened on their way out."""

    def __init__(self, inner: EntryStore) -> None:
        self._inner = inner

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        sealed = b64encode(json.dumps(entry.content).encode()).decode()[::-1]
        self._inner.save(namespace, entry.model_copy(update={"content": sealed}))

    def load(self, namespace: str) -> list[MemoryEntry]:
        return [self._opened(entry) for entry in self._inner.load(namespace)]

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        entry = self._inner.load_by_key(namespace, key)
        return None if entry is None else self._opened(entry)

    def delete(self, namespace: str, entry_id: str) -> None:
        self._inner.delete(namespace, entry_id)

    def clear(self, namespace: str) -> None:
        self._inner.clear(namespace)

    def _opened(self, entry: MemoryEntry) -> MemoryEntry:
        return entry.model_copy(update={"content": json.loads(b64decode(entry.content[::-1]))})


def test_a_backend_that_encrypts_contents_returns_the_original_values(tmp_path: Path) -> None:
    value = {"a": [1, {"b": None}], "é\x00": "\ud800", "n": 2**70}
    with SQLiteStore(tmp_path / "sealed.db") as inner:
        memory = MemoryManager(store=Sealing(inner))
        memory.set_fact("dict", value)
        memory.add_turn("c", "prompt", "answer", [{"role": "user", "content": value}])
        assert memory.get_fact("dict") == value
        assert memory.working.to_dict() == {"dict": value}
        (turn,) = memory.conversation.get_turns("c")
        assert turn.raw_messages == [{"role": "user", "content": value}]
        assert all(isinstance(entry.content, str) for name in inner.namespaces() for entry in inner.load(name))


def test_reserved_namespaces_are_refused_and_never_confused(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "sealed.db") as inner:
        store = adapt(Sealing(inner))
        memory = ConversationMemory(store=store)
        memory.add_turn("c", "prompt", "answer")
        for name in ("adapted-conversation:c", "adapted-adapted-conversation:c"):
            assert store.load(name) == []
            store.save(name, MemoryEntry(content=name))
            assert [entry.content for entry in store.load(name)] == [name]
        assert len(memory.get_turns("c")) == 1
        assert "adapted-conversation:c" in inner.namespaces()  # so that an export of the inner store has it

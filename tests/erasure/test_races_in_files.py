"""What is written in files, or over five methods, while a person is erased is deleted or refused."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from firefly_memory import (
    ConversationMemory,
    EntryStore,
    ErasedError,
    FileStore,
    erasure,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.in_memory import KeptConversation
from firefly_memory.conversations.listing import ListOfEntries
from firefly_memory.conversations.listing_file import ConversationListFile
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.over_entries import EntryConversationLog
from firefly_memory.databases.files import file_system
from firefly_memory.entries import namespace_lock
from firefly_memory.tombstones.log import conversation_identity, owner_identity
from tests.support.erasure_stores import add_tombstones, store_of
from tests.support.folder_backend import FolderStore


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


def turns_of(store: EntryStore, conversation_id: str) -> int:
    return len(ConversationMemory(store=store).get_turns(conversation_id))


class _Pause:
    """Lets the first call of a method wait, once it has begun, until :attr:`goes_on` is set."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: type, method: str) -> None:
        self.reached, self.goes_on = Event(), Event()
        original = getattr(owner, method)

        def paused(this: Any, *arguments: Any, **options: Any) -> Any:
            if not self.reached.is_set():
                self.reached.set()
                assert self.goes_on.wait(30)
            return original(this, *arguments, **options)

        patch.setattr(owner, method, paused)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Is set when somebody has to wait for a lock of the store."""
    found = Event()

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def watched(*arguments: Any) -> bool:
            got: bool = original(*arguments)
            if not got:
                found.set()
            return got

        monkeypatch.setattr(owner, name, watched)

    watch(file_system, "_try_lock")
    watch(namespace_lock._Lock, "acquire")
    return found


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("file", (ConversationListFile, "_append")),
        ("file", (KeptConversation, "append")),
        ("five-methods", (FolderStore, "save")),
        ("five-methods", (KeptConversation, "append")),
    ],
)
def test_an_erasure_waits_for_a_turn_that_looked_before_the_tombstone(
    kind: str, place: tuple[type, str], tmp_path: Path, busy: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(kind, tmp_path)
    memory = ConversationMemory(store=store)
    erasure.erase(store, "somebody")  # makes the key
    pause = _Pause(monkeypatch, *place)
    with ThreadPoolExecutor(2) as threads:
        writer = threads.submit(memory.add_turn, "chat", "secret", "a", owner="ann")
        assert pause.reached.wait(30)
        busy.clear()
        adding = threads.submit(add_tombstones, store, owner_identity("ann"), conversation_identity("chat"))
        adding.add_done_callback(lambda _: busy.set())
        assert busy.wait(30)
        waits = not adding.done()
        pause.goes_on.set()
        adding.result(30)
        with suppress(ErasedError):  # after it was listed
            writer.result(30)
    assert waits
    erasure.erase(store, "ann")
    assert list(memory.list_conversations()) == []
    assert not any(erasure.find_text(store, "secret").values())


def _after_first(patch: pytest.MonkeyPatch, owner: type, method: str, do: Callable[[], object]) -> None:
    """Does something when a coroutine method has ended for the first time."""
    original = getattr(owner, method)
    done: list[bool] = []

    async def followed(this: Any, *arguments: Any, **options: Any) -> Any:
        result = await original(this, *arguments, **options)
        if not done:
            done.append(True)
            do()
        return result

    patch.setattr(owner, method, followed)


@pytest.mark.parametrize("kind", ["file", "five-methods"])
def test_a_conversation_that_is_erased_once_it_is_listed_gets_no_turn(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(kind, tmp_path)
    memory = ConversationMemory(store=store)
    memory.add_turn("source", "p", "a", owner="bob")
    for listing in (ConversationListFile, ListOfEntries):
        _after_first(monkeypatch, listing, "add", lambda: erasure.erase(store, "ann"))
    with monkeypatch.context() as patch:
        patch.setattr(KeptConversation, "append", lambda *_: pytest.fail("a turn was made"))
        with pytest.raises(ErasedError):
            memory.add_turn("chat", "secret", "a", owner="ann")
    assert [each.conversation_id for each in memory.list_conversations()] == ["source"]
    assert turns_of(store, "chat") == 0
    assert not any(erasure.find_text(store, "secret").values())


@pytest.mark.parametrize("kind", ["file", "five-methods"])
def test_a_fork_whose_owner_is_erased_once_it_is_listed_gets_no_turns(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(kind, tmp_path)
    memory = ConversationMemory(store=store)
    memory.add_turn("source", "secret", "a", owner="ann")
    for listing in (ConversationListFile, ListOfEntries):
        _after_first(monkeypatch, listing, "add", lambda: erasure.erase(store, "ann"))
    with pytest.raises(ErasedError):
        memory.fork_conversation("source", "fork")
    assert list(memory.list_conversations()) == []
    assert not any(erasure.find_text(store, "secret").values())


def test_a_turn_whose_conversation_is_deleted_and_erased_before_it_is_listed_again_does_not_stay(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, log = ConversationMemory(store=files), files.blocking.log(CONVERSATION_LOG)
    assert isinstance(log, EntryConversationLog)
    backend, written = type(log._entries), []
    original = backend.edit

    async def edit(this: Any, *arguments: Any) -> Any:
        written.append(await original(this, *arguments))
        await log._list.remove(["chat"])
        add_tombstones(files, owner_identity("ann"))
        return written[-1]

    monkeypatch.setattr(backend, "edit", edit)
    with pytest.raises(ErasedError):
        memory.add_turn("chat", "secret", "a", owner="ann")
    assert len(written) == 1, "the turn was written"
    assert erasure.find_text(files, "secret") == {}


def test_a_turn_that_overtakes_the_deletion_of_everything_and_is_erased_does_not_stay(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, log = ConversationMemory(store=files), files.blocking.log(CONVERSATION_LOG)
    memory.add_turn("chat", "p", "a", owner="ann")

    def overtake() -> None:
        assert isinstance(log, EntryConversationLog)
        memory.add_turn("chat", "secret", "a", owner="ann")
        run_without_loop(log._list.remove(["chat"]))
        add_tombstones(files, owner_identity("ann"))

    _after_first(monkeypatch, ConversationListFile, "remove", overtake)
    memory.clear_all()
    assert erasure.find_text(files, "secret") == {}
    assert list(memory.list_conversations()) == []

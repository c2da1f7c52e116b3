"""Late writes are refused in memory, in files, and in a store that has only the five methods."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from firefly_memory import (
    ConversationMemory,
    EntryStore,
    ErasedError,
    FileStore,
    InMemoryStore,
    InvalidEntryError,
    StoreClosedError,
    WorkingMemory,
    adapt,
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
from firefly_memory.tombstones.log import TOMBSTONES, Identity, conversation_identity, owner_identity
from firefly_memory.tombstones.over_entries import NAMESPACE
from tests.support.folder_backend import FolderStore

KINDS = ["memory", "file", "five-methods"]
NOW = datetime(2024, 5, 6, tzinfo=UTC)


def store_of(kind: str, directory: Path) -> EntryStore:
    match kind:
        case "memory":
            return InMemoryStore()
        case "file":
            return FileStore(directory / "files")
        case _:
            return adapt(FolderStore(directory / "five"))


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EntryStore:
    return store_of(request.param, tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


def add(store: EntryStore, *identities: Identity, owner: str = "ann") -> None:
    run_without_loop(store.blocking.log(TOMBSTONES).add(identities, owner, NOW))


def texts_in(directory: Path) -> str:
    return "".join(path.read_text() for path in directory.rglob("*") if path.is_file())


def turns_of(store: EntryStore, conversation_id: str) -> int:
    return len(ConversationMemory(store=store).get_turns(conversation_id))


def test_tombstones_are_there_until_their_owner_is_readmitted(store: EntryStore) -> None:
    log = store.blocking.log(TOMBSTONES)
    of_ann, of_bob = [owner_identity("ann"), conversation_identity("chat")], [owner_identity("bob")]
    assert not run_without_loop(log.are_there([*of_ann, *of_bob]))
    add(store, *of_ann)
    add(store, *of_ann)
    add(store, *of_bob, owner="bob")
    add(store)
    for each in (*of_ann, *of_bob):
        assert run_without_loop(log.are_there([each]))
        assert run_without_loop(log.are_there([owner_identity("chat"), each])), "one of them is enough"
    assert not run_without_loop(log.are_there([owner_identity("chat"), Identity("namespace", "ann")]))
    assert run_without_loop(log.remove("ann")) == 2
    assert run_without_loop(log.remove("ann")) == 0
    assert not run_without_loop(log.are_there(of_ann))
    assert run_without_loop(log.are_there(of_bob))


@pytest.mark.parametrize("kind", ["file", "five-methods"])
def test_tombstones_name_nobody_and_other_stores_see_them(kind: str, tmp_path: Path) -> None:
    one, other = store_of(kind, tmp_path), store_of(kind, tmp_path)
    memory = ConversationMemory(store=other)
    for number in range(3):
        memory.add_turn(f"chat {number}", "p", "a", owner=f"person {number}")
        erasure.erase(one, f"person {number}")
        for facts in ({"scope_id": f"person {number}"}, {"conversation_id": f"chat {number}"}):
            with pytest.raises(ErasedError):
                WorkingMemory(store=other, **facts).set("k", 1)
        with pytest.raises(ErasedError):
            memory.add_turn(f"chat {number}", "p", "a")
        with pytest.raises(ErasedError):
            memory.new_conversation("new", owner=f"person {number}")
    assert not {f"{what} {number}" for what in ("chat", "person") for number in range(3)} & set(
        texts_in(tmp_path).split('"')
    )
    assert erasure.readmit(one, "person 0")
    memory.add_turn("chat 0", "p", "a", owner="person 0")
    with pytest.raises(ErasedError):
        memory.add_turn("chat 1", "p", "a")


def test_what_is_written_while_a_person_is_erased_is_deleted_or_refused(store: EntryStore) -> None:
    memory, facts = ConversationMemory(store=store), WorkingMemory(store=store, scope_id="ann")
    written = Event()

    def write(number: int) -> None:
        try:
            for count in range(1_000):
                memory.add_turn(f"chat {number}.{count}", "p", "a", owner="ann")
                memory.add_turn(f"chat {number}.{count}", "p", "a")
                facts.set(f"key {number}.{count}", "of ann")
                written.set()
        except ErasedError:
            return
        raise AssertionError("nothing was refused")

    with ThreadPoolExecutor(4) as threads:
        writers = [threads.submit(write, number) for number in range(4)]
        assert written.wait(30)
        erasure.erase(store, "ann")
        for writer in writers:
            writer.result(30)
    assert list(memory.list_conversations()) == []
    assert facts.to_dict() == {}
    assert not any(rows for rows in erasure.find_text(store, "chat ").values())


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
        adding = threads.submit(add, store, owner_identity("ann"), conversation_identity("chat"))
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
        add(files, owner_identity("ann"))
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
        add(files, owner_identity("ann"))

    _after_first(monkeypatch, ConversationListFile, "remove", overtake)
    memory.clear_all()
    assert erasure.find_text(files, "secret") == {}
    assert list(memory.list_conversations()) == []


def test_no_entry_and_no_conversation_reaches_the_tombstones_of_five_methods(tmp_path: Path) -> None:
    given = FolderStore(tmp_path / "five")
    store = adapt(given)
    memory = ConversationMemory(store=store)
    erasure.erase(store, "ann")
    tombstones = {entry.entry_id for entry in given.load(f"adapted-{NAMESPACE}")}
    assert len(tombstones) == 3, "the key, the owner and the scope of this name"
    for use in (store.load, store.clear, store.count):
        with pytest.raises(InvalidEntryError):
            use(NAMESPACE)
    for name in ("\x10tombstones", "\x10\x10tombstones", "tombstones"):
        memory.add_turn(name, "p", "a")
        memory.clear(name)
    memory.clear_all()
    assert {entry.entry_id for entry in given.load(f"adapted-{NAMESPACE}")} == tombstones
    with pytest.raises(ErasedError):
        memory.new_conversation("new", owner="ann")


@pytest.mark.parametrize("kind", ["memory", "five-methods"])
def test_text_is_found_in_turns_summaries_and_facts(kind: str, tmp_path: Path) -> None:
    store = store_of(kind, tmp_path)
    memory = ConversationMemory(store=store, summarizer=lambda _: "the summary", summarize_threshold=0)
    memory.add_turn("the id", "the prompt", "an answer", metadata={"the key": 1}, owner="the owner")
    memory.add_turn("the id", "p", "a" * 100)
    WorkingMemory(store=store, conversation_id="the id").set("the fact", ["the value"])
    for text in ("the id", "the prompt", "an answer", "the key", "the owner", "the fact", "the value"):
        assert any(erasure.find_text(store, text).values()), text
    assert not any(erasure.find_text(store, "another text").values())


def test_a_closed_store_erases_nobody(store: EntryStore) -> None:
    store.close_sync()
    for call in (erasure.erase, erasure.readmit, erasure.find_text):
        with pytest.raises(StoreClosedError):
            call(store, "ann")

"""Late writes are refused in memory, in files, and in a store that has only the five methods."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from firefly_memory import (
    ConversationMemory,
    CorruptDataError,
    EntryStore,
    ErasedError,
    FileStore,
    InvalidEntryError,
    MemoryEntry,
    SchemaMismatchError,
    StoreClosedError,
    WorkingMemory,
    adapt,
    erasure,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.tombstones.in_files import NAME
from firefly_memory.tombstones.log import TOMBSTONES, Identity, conversation_identity, owner_identity
from firefly_memory.tombstones.over_entries import NAMESPACE
from tests.support.erasure_stores import add_tombstones, store_of
from tests.support.folder_backend import FolderStore

KINDS = ["memory", "file", "five-methods"]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EntryStore:
    return store_of(request.param, tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


def texts_in(directory: Path) -> str:
    return "".join(path.read_text() for path in directory.rglob("*") if path.is_file())


def test_tombstones_are_there_until_their_owner_is_readmitted(store: EntryStore) -> None:
    log = store.blocking.log(TOMBSTONES)
    of_ann, of_bob = [owner_identity("ann"), conversation_identity("chat")], [owner_identity("bob")]
    assert not run_without_loop(log.are_there([*of_ann, *of_bob]))
    add_tombstones(store, *of_ann)
    add_tombstones(store, *of_ann)
    add_tombstones(store, *of_bob, owner="bob")
    add_tombstones(store)
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


def test_an_erasure_deletes_what_interrupted_writes_have_left(files: FileStore) -> None:
    memory = ConversationMemory(store=files)
    memory.add_turn("chat of ann", "p", "a", owner="ann")
    long = "long " * 100
    files.save(long, MemoryEntry(content="kept"))
    for path in [*files.path.glob("*.json"), files.path / "conversations.jsonl"]:
        path.with_name(f"{path.name}.tmp").write_text("half of a secr")
    erasure.erase(files, "ann")
    assert list(files.path.glob("*.tmp")) == []
    assert erasure.find_text(files, "chat of ann") == {}, "nor is it in the list of conversations"
    assert [entry.content for entry in files.load(long)] == ["kept"]


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "no JSON\n",
        '{"format": "firefly-memory-tombstones/1"}\n',
        '{"format": "firefly-memory-tombstones/1", "key": ""}\n',
        '{"format": "firefly-memory-tombstones/1", "key": "k"}\n{"tombstone": 7, "owner": "x"}\n',
        '{"format": "firefly-memory-tombstones/1", "key": "k"}\n[]\n',
    ],
)
def test_damaged_tombstones_let_nothing_pass(files: FileStore, damage: str) -> None:
    memory = ConversationMemory(store=files)
    memory.add_turn("there", "p", "a")
    files.path.joinpath(NAME).write_text(damage)
    with pytest.raises(CorruptDataError, match=NAME):
        memory.add_turn("new", "p", "a")
    with pytest.raises(CorruptDataError, match=NAME):
        WorkingMemory(store=files).set("k", 1)
    files.save("notes", MemoryEntry())
    memory.add_turn("there", "p", "a")
    with pytest.raises(CorruptDataError, match=NAME):
        erasure.erase(files, "ann")
    assert files.path.joinpath(NAME).read_text() == damage


def test_tombstones_of_a_newer_version_are_left_alone(files: FileStore) -> None:
    erasure.erase(files, "ann")
    first, *lines = files.path.joinpath(NAME).read_text().splitlines()
    newer = "\n".join([json.dumps({**json.loads(first), "format": "firefly-memory-tombstones/2"}), *lines, ""])
    files.path.joinpath(NAME).write_text(newer)
    with pytest.raises(SchemaMismatchError, match="pip install --upgrade"):
        ConversationMemory(store=files).new_conversation("c")
    assert files.path.joinpath(NAME).read_text() == newer


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


def test_text_is_found_in_every_file_and_in_its_name(files: FileStore) -> None:
    secret = "Caf\u00e9 \u2603"
    ConversationMemory(store=files).new_conversation(secret)
    files.save("notes", MemoryEntry(content={"x": secret}))
    files.save(secret, MemoryEntry())
    below = files.path / "below"
    below.mkdir()
    (below / "escaped.txt").write_text(json.dumps(secret))
    assert set(erasure.find_text(files, secret)) == {
        "conversations.jsonl",
        "notes.json",
        "%43af%c3%a9%20%e2%98%83.json",
        "below/escaped.txt",
    }


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

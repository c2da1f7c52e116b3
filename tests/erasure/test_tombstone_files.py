"""The file of tombstones: what is in it, damage, and what else is left in the directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firefly_memory import (
    ConversationMemory,
    CorruptDataError,
    FileStore,
    MemoryEntry,
    SchemaMismatchError,
    WorkingMemory,
    erasure,
)
from firefly_memory.tombstones.in_files import NAME


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


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

"""The list of a file store's conversations: a new one costs a line, and a crash loses none."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConversationMemory,
    CorruptDataError,
    FileStore,
    MemoryEntry,
    SchemaMismatchError,
    WorkingMemory,
)
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.conversations.listing_file import FORMAT, NAME, ConversationListFile
from tests.support.earlier_conversation_list import earlier_list


def ids(directory: Path) -> list[str]:
    """As a process sees them that was started just now."""
    with FileStore(directory) as store:
        return sorted(ConversationMemory(store=store).conversation_ids)


def lines(directory: Path) -> list[Any]:
    return [json.loads(line) for line in (directory / NAME).read_text().splitlines()]


def test_a_new_conversation_adds_a_line_to_the_list(tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        memory.new_conversation("first")
        before = (tmp_path / NAME).stat()
        for number in range(50):
            memory.new_conversation(f"empty {number}")
            memory.add_turn(f"chat {number}", "p", "a")
            memory.add_turn(f"chat {number}", "p", "a")
        after = (tmp_path / NAME).stat()
        assert after.st_ino == before.st_ino, "it was not replaced"
        assert len(lines(tmp_path)) == 1 + 101
        assert len(ids(tmp_path)) == 101
        memory.new_conversation("empty 7")
        assert len(lines(tmp_path)) == 1 + 101, "which was there"


def test_adding_a_conversation_reads_only_new_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    take = ConversationListFile._take

    def counting(self: ConversationListFile, line: bytes, number: int) -> None:
        parsed.append(line)
        take(self, line, number)

    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        for number in range(60):
            memory.new_conversation(str(number))
        monkeypatch.setattr(ConversationListFile, "_take", counting)
        memory.new_conversation("another")
        assert len(parsed) == 1
        memory.add_turn("one more", "p", "a")
        assert len(parsed) == 2


def test_the_list_has_the_documented_format(tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        memory.new_conversation("\x00 \ud800 ü")
        memory.add_turn("b", "p", "a")
        memory.clear("b")
        first, made, second, deleted = lines(tmp_path)
        assert first.keys() == {"format", "generation"}
        assert first["format"] == FORMAT
        assert made.keys() == second.keys() == {"conversation", "created_at"}
        assert deleted == {"deleted": "b"}
        assert memory.conversation_ids == ["\x00 \ud800 ü"]
        assert store.namespaces() == []


def test_two_stores_see_what_each_other_did(tmp_path: Path) -> None:
    with FileStore(tmp_path) as one, FileStore(tmp_path) as other:
        mine, theirs = ConversationMemory(store=one), ConversationMemory(store=other)
        for number in range(300):
            mine.new_conversation("a")
            assert theirs.conversation_ids == ["a"], number
            theirs.clear("a")
            assert mine.conversation_ids == []
        assert len(lines(tmp_path)) < 250, "what was deleted is left behind now and then"


def test_a_rewritten_list_omits_deleted_conversations(tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        for number in range(120):
            memory.new_conversation(str(number))
        created = {each.conversation_id: each.created_at for each in memory.list_conversations(1_000)}
        memory.clear_all()
        assert memory.conversation_ids == []
        assert len(lines(tmp_path)) == 1
        memory.new_conversation("7")
        (again,) = memory.list_conversations(10)
        assert again.created_at > created["7"]
    assert ids(tmp_path) == ["7"]


@pytest.mark.parametrize(
    "torn", [b'{"conv', b'{"conversation": "x", "created_at": "2026-01-01T00:00:00+00:00"}', b"\0" * 9]
)
def test_an_unfinished_line_is_cut_off(torn: bytes, tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        memory.new_conversation("a")
        with (tmp_path / NAME).open("ab") as file:
            file.write(torn)
        assert ids(tmp_path) == memory.conversation_ids == ["a"]
        memory.new_conversation("b")
        assert ids(tmp_path) == ["a", "b"]
        assert len(lines(tmp_path)) == 3


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "7",
        '"deleted"',
        "{}",
        '{"conversation": "x"}',
        '{"conversation": 7, "created_at": "2026-01-01T00:00:00+00:00"}',
        '{"conversation": "x", "created_at": "2026-01-01"}',
        '{"conversation": "x", "created_at": "0001-01-01T00:00:00+14:00"}',
        '{"deleted": []}',
        '{"conversation": "", "created_at": "2026-01-01T00:00:00+00:00"}',
        f'{{"conversation": "{"x" * 513}", "created_at": "2026-01-01T00:00:00+00:00"}}',
        '{"conversation": "\\u0000", "created_at": "2026-01-01T00:00:00+00:00"}',
        "[" * 10_000,
    ],
    ids=lambda line: line[:50],
)
def test_a_damaged_line_is_named_and_not_changed(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        memory.add_turn("a", "p", "a")
        with (tmp_path / NAME).open("a") as file:
            file.write(f"{line}\n")
        before = (tmp_path / NAME).read_bytes()
        for _ in range(2):
            with pytest.raises(CorruptDataError, match=f"line 3 of file {tmp_path / NAME}"):
                memory.new_conversation("b")
            with pytest.raises(CorruptDataError, match="line 3"):
                memory.list_conversations(10)
        memory.add_turn("a", "p", "a")
        assert (tmp_path / NAME).read_bytes() == before
    assert main(["doctor", "--url", f"file:{tmp_path}"]) == Exit.DRIFT
    assert "line 3 of file" in capsys.readouterr().out


@pytest.mark.parametrize("name", [NAME, "conversation%3aa.json"])
def test_a_failed_deletion_keeps_turns_and_facts(name: str, tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        memory.add_turn("a", "p", "a")
        WorkingMemory(conversation_id="a", store=store).set("k", 1)
        with (tmp_path / name).open("a") as file:
            file.write("{\n")
        before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        assert len(before) == 3
        with pytest.raises(CorruptDataError):
            memory.clear("a")
        assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_list_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"format": "firefly-memory-conversations/2"}\n')
    with FileStore(tmp_path) as store, pytest.raises(SchemaMismatchError, match="conversations/2"):
        ConversationMemory(store=store).new_conversation("a")
    (tmp_path / NAME).write_text("")
    with FileStore(tmp_path) as store, pytest.raises(CorruptDataError, match="line 1 of file"):
        ConversationMemory(store=store).new_conversation("a")


def test_the_list_of_an_earlier_version_is_read_and_converted(tmp_path: Path) -> None:
    earlier_list(tmp_path, "old", "older")
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        assert sorted(memory.conversation_ids) == ["old", "older"]
        assert memory.get_turns("old") == []
        assert not (tmp_path / NAME).exists(), "whoever reads changes nothing"
        memory.new_conversation("old")
        assert not (tmp_path / "conversation%3a.json").exists()
        memory.new_conversation("new")
        assert [each.conversation_id for each in memory.list_conversations(10)] == ["new", "older", "old"]
        earlier_list(tmp_path, "old", "by an earlier version meanwhile")
        assert len(memory.conversation_ids) == 4
        memory.clear("old")
        assert ids(tmp_path) == ["by an earlier version meanwhile", "new", "older"]


def test_a_converted_list_keeps_its_mode_and_group(tmp_path: Path) -> None:
    earlier_list(tmp_path, "old")
    old = tmp_path / "conversation%3a.json"
    if os.geteuid() == 0:
        os.chown(old, -1, 4711)
    old.chmod(0o660)
    before = old.stat()
    with FileStore(tmp_path) as store:
        ConversationMemory(store=store).new_conversation("new")
    after = (tmp_path / NAME).stat()
    assert (stat.S_IMODE(after.st_mode), after.st_gid) == (0o660, before.st_gid)


def test_a_reader_sees_all_conversations_while_a_list_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier_list(tmp_path, "old", "older")
    read = ConversationListFile._read_on

    with FileStore(tmp_path) as reader, FileStore(tmp_path) as writer:

        def read_and_be_overtaken(each: ConversationListFile) -> None:
            read(each)
            monkeypatch.setattr(ConversationListFile, "_read_on", read)
            ConversationMemory(store=writer).new_conversation("new")

        monkeypatch.setattr(ConversationListFile, "_read_on", read_and_be_overtaken)
        assert set(ConversationMemory(store=reader).conversation_ids) >= {"old", "older"}
        assert not (tmp_path / "conversation%3a.json").exists()


def test_a_list_restored_from_a_backup_is_read_completely(tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    with FileStore(tmp_path / "files") as running:
        memory = ConversationMemory(store=running)
        memory.new_conversation("x0")
        shutil.copy(tmp_path / "files" / NAME, backup)
        memory.new_conversation("x1")
        shutil.copy(backup, tmp_path / "files" / NAME)
        with FileStore(tmp_path / "files") as another:
            ConversationMemory(store=another).new_conversation("y1")
        assert sorted(memory.conversation_ids) == ["x0", "y1"]
        memory.new_conversation("z")
        path = tmp_path / "files" / NAME
        path.write_text(path.read_text().replace('"x0"', '"another length"'))
        assert sorted(memory.conversation_ids) == ["another length", "y1", "z"]


def test_one_conversation_is_found_without_a_copy_of_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        memory.new_conversation("empty")
        monkeypatch.delattr(ConversationListFile, "all")
        assert memory.get_turns("empty") == []
        assert memory.get_turns("none") == []


@pytest.mark.parametrize("name", ["", "x" * 513])
def test_an_invalid_conversation_id_is_not_converted(name: str, tmp_path: Path) -> None:
    earlier_list(tmp_path, "old", name)
    before = (tmp_path / "conversation%3a.json").read_bytes()
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        for act in (lambda: memory.conversation_ids, lambda: memory.new_conversation("new")):
            with pytest.raises(CorruptDataError, match=r"conversation%3a\.json"):
                act()
    assert (tmp_path / "conversation%3a.json").read_bytes() == before
    assert not (tmp_path / NAME).exists()


CREATING = """
import sys
from firefly_memory import ConversationMemory, FileStore
memory = ConversationMemory(store=FileStore(sys.argv[1]))
for number in range(int(sys.argv[3])):
    name = f"{sys.argv[2]} {number}"
    memory.new_conversation(name)
    print(name, flush=True)
"""


def creating(directory: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CREATING, str(directory), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_create_conversations_at_once_lose_none(tmp_path: Path) -> None:
    working = [creating(tmp_path, name, 25) for name in "abcd"]
    said = [name for each in working for name in each.communicate()[0].splitlines()]
    assert sorted(said) == ids(tmp_path)
    assert len(said) == 100


def test_a_conversation_acknowledged_before_a_kill_is_listed(tmp_path: Path) -> None:
    for round_ in range(3):
        with creating(tmp_path, str(round_), 100_000) as working:
            assert working.stdout is not None
            said = [working.stdout.readline().strip() for _ in range(10)]
            working.kill()
        assert set(said) <= set(ids(tmp_path))
    with FileStore(tmp_path) as store:
        store.save("n", MemoryEntry())
        ConversationMemory(store=store).new_conversation("after all")
    assert "after all" in ids(tmp_path)


def test_a_forked_child_can_use_the_list(tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        memory = ConversationMemory(store=store)
        memory.new_conversation("before")
        child = os.fork()
        if not child:
            memory.new_conversation("of the child")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        memory.new_conversation("of the parent")
        assert sorted(memory.conversation_ids) == ["before", "of the child", "of the parent"]

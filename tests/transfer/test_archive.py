"""Export and import of a store as JSON Lines, by function and by command."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from firefly_memory import (
    Capability,
    ConversationMemory,
    CorruptDataError,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    SQLiteStore,
    TurnConflictError,
    adapt,
)
from firefly_memory.archive import async_export_jsonl, async_import_jsonl, export_jsonl, import_jsonl
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from tests.support.backends import OWN, Backend, Place
from tests.support.command_line import run
from tests.support.empty_store import delete_everything
from tests.support.ram_use import Work, assert_more_takes_no_more_memory
from tests.support.stored_contents import contents, equal, filled
from tests.support.terminal import shown_on_a_terminal

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "backend", [each for each in OWN if {Capability.LISTING, Capability.ATOMIC_BATCHES} <= each.capabilities], ids=str
)
def test_an_export_of_one_backend_can_be_imported_into_another(backend: Backend, place: Place) -> None:
    store = adapt(backend.open(place))
    delete_everything(store)  # what other tests left
    try:
        filled(store)
        file = io.StringIO()
        counts = export_jsonl(store, file)
        assert (counts.entries, counts.conversations, counts.turns) == (62, 3, 9)
        with InMemoryStore() as other:
            for _ in range(2):
                assert import_jsonl(other, io.StringIO(file.getvalue())) == counts
                assert equal(contents(other), contents(store))
            again = io.StringIO()
            export_jsonl(other, again)
            assert sorted(again.getvalue().splitlines()[1:]) == sorted(file.getvalue().splitlines()[1:])
    finally:
        delete_everything(store)
        store.close_sync()


async def test_asynchronous_export_and_import_do_the_same(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "a.db") as store, FileStore(tmp_path / "files") as other:
        await asyncio.to_thread(filled, store)
        file = io.StringIO()
        seen: list[int] = []
        counts = await async_export_jsonl(store, file, progress=lambda _, counts: seen.append(counts.total))
        assert seen[-1] == counts.total
        assert seen == sorted(seen)
        assert await async_import_jsonl(other, io.StringIO(file.getvalue())) == counts
        assert contents(other) == contents(store)


def test_a_store_without_listing_exports_its_conversations(place: Place) -> None:
    (backend,) = [each for each in OWN if each.name == "five-methods"]
    store = adapt(backend.open(place))
    ConversationMemory(store=store).add_turn("c", "p", "a")
    file = io.StringIO()
    assert export_jsonl(store, file).turns == 1
    with InMemoryStore() as other:
        import_jsonl(other, io.StringIO(file.getvalue()))
        assert contents(other)["turns"] == {"c": ConversationMemory(store=store).get_turns("c")}
        filled(other)
        everything = io.StringIO()
        counts = export_jsonl(other, everything)
    target = adapt(backend.open(place))
    assert import_jsonl(target, io.StringIO(everything.getvalue())) == counts
    assert target.load("working:s")[0].content == "v"


def test_messages_may_be_left_out() -> None:
    with InMemoryStore() as store, InMemoryStore() as other:
        filled(store)
        file = io.StringIO()
        export_jsonl(store, file, raw_messages=False)
        assert 'raw_messages": [' not in file.getvalue()
        import_jsonl(other, io.StringIO(file.getvalue()))
        turns = ConversationMemory(store=other).get_turns("chat")
        assert [turn.user_prompt for turn in turns] == [f"prompt {number} \ud800" for number in range(8)]
        assert turns[0].raw_messages == []


def test_a_damaged_or_cut_archive_is_refused_and_names_the_line() -> None:
    with InMemoryStore() as store:
        filled(store)
        file = io.StringIO()
        export_jsonl(store, file)
    lines = file.getvalue().splitlines(keepends=True)

    def problem(lines: Iterable[str]) -> str:
        with InMemoryStore() as other, pytest.raises(CorruptDataError) as caught:
            import_jsonl(other, lines)
        return str(caught.value)

    assert "it ends too early" in problem(lines[:-1])
    assert "it ends too early" in problem([])
    assert "after line 5" in problem(lines[:5])
    assert "line 1 " in problem(lines[1:])
    assert "line 3 " in problem([*lines[:2], "{", *lines[3:]])
    assert "line 3 " in problem([*lines[:2], '"text"', *lines[3:]])
    assert "line 3 " in problem([*lines[:2], '{"entry": {"namespace": "n"}}', *lines[3:]])
    assert "lines are missing" in problem([*lines[:2], *lines[3:]])
    assert "after the end" in problem([*lines, lines[1]])
    assert "no lines of the kind 'other'" in problem([lines[0], '{"other": {}}'])
    turns = [number for number, line in enumerate(lines) if line.startswith('{"turn": {"conversation_id": "chat"')]
    assert f"line {turns[0] + 1} " in problem([*lines[: turns[0]], *lines[turns[0] + 1 :]])
    assert "another conversation" in problem([lines[0], lines[turns[0]]])
    summaries = [line.replace('"summarized_turns": ', '"summarized_turns": 9') for line in lines]
    assert "summarized_turns" in problem(summaries)
    assert "line 2 " in problem([lines[0], "[" * 100_000 + "]" * 100_000])
    header = json.loads(lines[0]) | {"format": "other/9"}
    assert "other/9" in problem([json.dumps(header), *lines[1:]])


def test_a_conversation_with_other_turns_in_the_target_is_a_conflict() -> None:
    with InMemoryStore() as store, InMemoryStore() as other:
        filled(store)
        file = io.StringIO()
        export_jsonl(store, file)
        ConversationMemory(store=other).add_turn("chat", "something else", "")
        with pytest.raises(TurnConflictError):
            import_jsonl(other, io.StringIO(file.getvalue()))


@contextmanager
def exporting(entries: int, directory: Path) -> Iterator[Sequence[Work]]:
    with SQLiteStore(directory / "memory.db") as store, (directory / "out").open("w") as out:
        store.save_many("n", [MemoryEntry(content="x" * 200) for _ in range(entries)])
        yield [lambda: export_jsonl(store, out)]


def test_the_memory_of_an_export_does_not_grow_with_the_store(tmp_path: Path) -> None:
    assert_more_takes_no_more_memory(exporting, tmp_path, 2_000, 20_000)


def test_the_commands_copy_a_store(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.db") as store:
        expected = contents(filled(store))
    exported = run("export", "--url", "sqlite:///a.db", "all.jsonl", cwd=tmp_path)
    assert (exported.returncode, exported.stdout) == (0, "")
    assert exported.stderr == "exported 62 entries, 3 conversations with 9 turns and 7 flushes\n"
    settings = {"FIREFLY_AGENTIC_MEMORY_BACKEND": "sqlite", "FIREFLY_AGENTIC_MEMORY_SQLITE_PATH": "b.db"}
    for _ in range(2):
        imported = run("import", "all.jsonl", "--quiet", cwd=tmp_path, **settings)
        assert (imported.returncode, imported.stdout, imported.stderr) == (0, "", "")
    with SQLiteStore(tmp_path / "b.db") as store:
        assert contents(store) == expected
    piped = subprocess.run(
        f"{sys.executable} -m firefly_memory.cli export --url sqlite:///a.db --no-messages"
        f" | {sys.executable} -m firefly_memory.cli import --url file:files",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "imported 62 entries" in piped.stderr


def own_files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        ["sqlite:///memory.db", "memory.db"],
        ["sqlite:///memory.db", "nested/../memory.db"],
        ["sqlite:///memory.db", "link"],
        ["sqlite:///memory.db", "hard"],
        ["sqlite:///memory.db", "memory.db-wal"],
        ["sqlite:///memory.db", "memory.db-shm"],
        ["sqlite:///memory.db", "memory.db-journal"],
        ["sqlite:///memory.db", "other.db"],
        ["memory:", "other.db"],
        ["memory:", "other.db-wal"],
        ["memory:", "other.db-journal"],
        ["memory:", "lone-wal"],
        ["memory:", "fs/NAME"],
        ["sqlite:///memory.db", "fs/new.json"],
        ["memory:", "fs/conversations.jsonl"],
        ["memory:", "fs/.locks/00.lock"],
        ["memory:", "fs/.locks/new"],
        ["file:fs", "fs/new.jsonl"],
        ["file:fs", "fs/NAME"],
        ["file:fs", "nested/../fs/nested/new.jsonl"],
        ["file:linked", "fs/new.jsonl"],
    ],
    ids=" ".join,
)
def test_an_export_does_not_replace_a_store(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("memory.db", "other.db"):
        with SQLiteStore(tmp_path / name) as store:
            store.save("n", MemoryEntry(content="kept"))
    with FileStore(tmp_path / "fs") as store:
        store.save("n", MemoryEntry(content="kept"))
    (tmp_path / "fs" / "nested").mkdir()
    (tmp_path / "nested").mkdir()
    (tmp_path / "lone-wal").write_bytes(bytes.fromhex("377f0682") + bytes(28))
    (tmp_path / "link").symlink_to("memory.db")
    (tmp_path / "hard").hardlink_to(tmp_path / "memory.db")
    (tmp_path / "linked").symlink_to("fs")
    url, file = arguments
    if file == "fs/NAME":
        file = str(next(path for path in (tmp_path / "fs").iterdir() if path.is_file()))
    before = own_files(tmp_path)
    assert main(["export", "--url", url, file]) == Exit.USAGE
    assert "name another file" in capsys.readouterr().err
    assert own_files(tmp_path) == before


def test_an_export_does_not_replace_the_store_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_BACKEND", "sqlite")
    monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_SQLITE_PATH", "memory.db")
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save("n", MemoryEntry(content="kept"))
    before = own_files(tmp_path)
    assert main(["export", "memory.db"]) == Exit.USAGE
    assert own_files(tmp_path) == before


def test_an_export_writes_to_a_pipe_and_does_not_replace_it(tmp_path: Path) -> None:
    """Nor a device: run as root, that would be the end of /dev/null."""
    with SQLiteStore(tmp_path / "a.db") as store:
        store.save("n", MemoryEntry(content="through a pipe"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        try:
            ended = run("export", "--url", "sqlite:///a.db", "pipe", cwd=tmp_path)
            assert ended.returncode == 0, ended.stderr
            assert pipe.is_fifo()
            assert "through a pipe" in reader.communicate()[0]
        finally:
            reader.kill()


def test_a_terminal_shows_a_progress_bar(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.db") as store:
        filled(store)
    shown = shown_on_a_terminal("export", "--url", "sqlite:///a.db", "out", cwd=tmp_path)
    assert b"exported:" in shown
    assert b"62 entries, 3 conversations with 9 turns" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["export", "--url", "redis://user:correct-horse@host"], 2, "no store has a URL that starts with 'redis'"),
        (["export"], 2, "pass --url"),
        (["export", "--url", "sqlite:///a.db", "no/such/directory/file"], 1, "No such file or directory"),
        (["import", "--url", "sqlite:///a.db", "missing.jsonl"], 1, "missing.jsonl: No such file"),
        (["import", "--url", "sqlite:///a.db", "bad.jsonl"], 1, "line 1 of the archive is damaged"),
        (["export", "--url", "postgresql://user:correct-horse@127.0.0.1:1/x"], 6, "127.0.0.1"),
        (["export", "--url", "sqlite:///mistyped.db"], 3, "run: firefly-memory db upgrade --url sqlite:///mistyped.db"),
        (["export", "--url", "sqlite:///empty.db"], 3, "run: firefly-memory db upgrade --url sqlite:///empty.db"),
        (["export", "--url", "file:mistyped"], 6, "there is no directory"),
        (["export", "--url", "memory:", "."], 2, "is a directory"),
        (["export", "--url", "memory:", "/"], 2, "is a directory"),
        (["export", "--url", "memory:", "newdir/"], 2, "newdir/ is a directory"),
        (
            ["import", "--url", "sqlite:///a.db", "latin.jsonl"],
            1,
            "the archive after line 0 is damaged (it is not UTF-8",
        ),
        (["nonsense"], 2, "there is no command 'nonsense'"),
        ([], 2, "COMMAND"),
    ],
    ids=str,
)
def test_an_error_is_one_line_and_an_exit_code(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("nonsense\n")
    (tmp_path / "latin.jsonl").write_bytes(b'{"format": "\xe9"}\n')
    with SQLiteStore(tmp_path / "a.db"):
        pass
    sqlite3.connect(tmp_path / "empty.db").close()
    before = set(tmp_path.iterdir())
    ended = run(*arguments, cwd=tmp_path)
    assert ended.returncode == code
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "correct-horse" not in ended.stderr
    if "COMMAND" not in words:
        assert len(ended.stderr.splitlines()) == 1
    assert set(tmp_path.iterdir()) <= before | {tmp_path / f"a.db{end}" for end in ("", "-wal", "-shm")}


@pytest.mark.parametrize("url", ["file:new", "sqlite:///new.db", "sqlite:///new/new.db"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.jsonl", "missing.jsonl: No such file"),
        ("empty.jsonl", "the archive after line 0 is damaged (it ends too early"),
        ("other.jsonl", "line 1 of the archive is damaged"),
        ("latin.jsonl", "the archive after line 0 is damaged (it is not UTF-8"),
        (".", "Is a directory"),
    ],
)
def test_an_invalid_archive_creates_no_store(
    url: str, name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "other.jsonl").write_text('{"format": "another"}\n')
    (tmp_path / "latin.jsonl").write_bytes(b'{"format": "\xe9"}\n')
    before = set(tmp_path.iterdir())
    assert main(["import", "--url", url, name]) == Exit.FAILED
    assert words in capsys.readouterr().err
    assert set(tmp_path.iterdir()) == before


def test_the_help_explains_each_command(tmp_path: Path) -> None:
    assert "export" in run("--help", cwd=tmp_path).stdout
    assert "sqlite:///memory.db" in run("export", "--help", cwd=tmp_path).stdout
    assert "started again" in run("import", "--help", cwd=tmp_path).stdout

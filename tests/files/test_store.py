"""``FileStore``: its locks, forks, cancelled writers, and files that people change."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConfigurationError, FileStore, MemoryEntry, StoreTimeoutError
from firefly_memory.codec import DOCUMENT
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.over_entries import EntryConversationLog
from firefly_memory.databases.files.file_system import exclusive_lock
from firefly_memory.entries.ordered_records import OrderedRecords
from firefly_memory.entries.record import Record, to_record
from firefly_memory.entries.threaded_view import threaded
from firefly_memory.testing.rules.isolation import LOOKALIKES
from tests.support.forked_child import in_child


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files", timeout=10)


def only_file(directory: Path) -> Path:
    (path,) = directory.glob("*.json")
    return path


def contents(store: FileStore, namespace: str = "n") -> list[Any]:
    return [entry.content for entry in store.load(namespace)]


def edit(store: FileStore, change: Callable[[OrderedRecords], object]) -> object:
    """What the conversations of a file store do with it."""
    log = store.blocking.log(CONVERSATION_LOG)
    assert isinstance(log, EntryConversationLog)
    return run_without_loop(log._entries.edit("n", change))


def record(content: object) -> Record:
    return to_record(DOCUMENT, "n", MemoryEntry(entry_id="it", content=content))


# Forks

forks_beside_threads = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def open_files(directory: Path) -> list[str]:
    names = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(link.readlink()))
        except FileNotFoundError:  # the one that lists them
            continue
    return [name for name in names if name.startswith(str(directory))]


@forks_beside_threads
def test_a_fork_waits_for_writers(store: FileStore, tmp_path: Path) -> None:
    """So that no child inherits a lock, or half a file."""
    writing, forking = threading.Event(), threading.Event()
    os.register_at_fork(before=forking.set)

    def change(ordered: OrderedRecords) -> None:
        writing.set()
        assert forking.wait(10)
        ordered.put(record("written"), record("written").created_at)

    def child() -> None:
        assert not open_files(tmp_path)
        assert contents(store) == ["written"]

    writer = threading.Thread(target=edit, args=(store, change))
    writer.start()
    assert writing.wait(10)
    code = in_child(child)
    writer.join()
    assert code == 0


@forks_beside_threads
def test_surviving_children_keep_no_lock(store: FileStore) -> None:
    done = threading.Event()
    failed: list[BaseException] = []

    def keep_saving() -> None:
        try:
            while not done.is_set():
                store.save("n", MemoryEntry(entry_id="it"))
        except BaseException as exc:  # noqa: BLE001 - shown below
            failed.append(exc)

    threads = [threading.Thread(target=keep_saving) for _ in range(2)]
    until, end = os.pipe()
    children = []
    for thread in threads:
        thread.start()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(until, 1)
            os._exit(0)
        children.append(child)
    done.set()
    for thread in threads:
        thread.join()
    quick = FileStore(store.path, timeout=0.2)
    try:
        quick.save("n", MemoryEntry(content="afterwards"))
    finally:
        os.close(end)
        os.close(until)
        for child in children:
            os.waitpid(child, 0)
    assert not failed


def test_a_lock_is_released_although_a_child_has_its_file_open(tmp_path: Path) -> None:
    """One that was forked behind Python's back."""
    path = tmp_path / "locks" / "00.lock"
    with exclusive_lock(path, 1):
        (held,) = [int(link.name) for link in Path("/proc/self/fd").iterdir() if link.resolve() == path]
        inherited = os.dup(held)
    with exclusive_lock(path, 0.01):
        os.close(inherited)


# Cancellation


@contextmanager
def locked(store: FileStore) -> Iterator[None]:
    """The locks in the hands of somebody else."""
    with open(only_lock(store)) as held:  # noqa: PTH123
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def only_lock(store: FileStore) -> Path:
    (path,) = (store.path / ".locks").iterdir()
    return path


async def given_up(call: Any) -> None:
    """It ends by being cancelled, not by the store's own time-out: it does not wait for the lock."""
    with pytest.raises(TimeoutError) as caught:
        await asyncio.wait_for(call, 0.05)
    assert not isinstance(caught.value, StoreTimeoutError)


async def test_cancelled_writes_are_not_made_later(store: FileStore) -> None:
    store.save("n", MemoryEntry(entry_id="it", content="first"))
    loop = asyncio.get_running_loop()
    with locked(store):
        await given_up(store.async_save("n", MemoryEntry(entry_id="it", content="given up")))
        await given_up(store.async_clear("n"))
        await given_up(store.async_delete("n", "it"))
        await given_up(store.async_save_many("n", [MemoryEntry()]))
    await loop.shutdown_default_executor()
    assert contents(store) == ["first"]


async def test_a_save_can_be_cancelled_before_a_thread_begins_it(store: FileStore) -> None:
    store.save("n", MemoryEntry(entry_id="it", content="first"))
    end = threading.Event()
    others = [asyncio.create_task(asyncio.to_thread(end.wait, 10)) for _ in range(32)]  # as many threads as there are
    await asyncio.sleep(0)
    await given_up(store.async_save("n", MemoryEntry(entry_id="it", content="given up")))
    assert not any(other.done() for other in others)
    end.set()
    await asyncio.gather(*others)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert contents(store) == ["first"]


async def test_a_call_that_is_cancelled_repeatedly_still_waits_for_its_thread(store: FileStore) -> None:
    """A thread that is writing already cannot be stopped: nobody goes on before it has ended."""
    writing, end = threading.Event(), threading.Event()

    def change(ordered: OrderedRecords) -> None:
        writing.set()
        assert end.wait(10)
        ordered.put(record("given up"), record("given up").created_at)

    log: Any = store.blocking.log(CONVERSATION_LOG)
    entries: Any = threaded(log._entries)
    task = asyncio.create_task(entries.edit("n", change))
    await asyncio.to_thread(writing.wait, 10)
    for _ in range(5):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert contents(store) == [], "it looks once more before it writes"


# Editing


def test_an_edit_that_changes_nothing_writes_nothing(store: FileStore) -> None:
    store.save("n", MemoryEntry(content="x"))
    path = only_file(store.path)
    before = path.stat()
    assert edit(store, len) == 1
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_edit_that_fails_writes_nothing(store: FileStore) -> None:
    def change(ordered: OrderedRecords) -> None:
        ordered.put(record("half"), record("half").created_at)
        raise LookupError("in the middle")

    store.save("n", MemoryEntry(entry_id="it", content="old"))
    with pytest.raises(LookupError):
        edit(store, change)
    assert contents(store) == ["old"]
    store.save("n", MemoryEntry(entry_id="it", content="new"))
    assert contents(store) == ["new"]


def test_replacing_1_by_true_is_a_change(store: FileStore) -> None:
    """Which Python calls equal."""
    store.save("n", MemoryEntry(entry_id="it", content=1))
    now = store.load("n")[0].created_at

    def change(ordered: OrderedRecords) -> None:
        ordered.put(ordered["it"]._replace(content=True), now)

    edit(store, change)
    assert contents(store)[0] is True


def test_an_edit_that_empties_a_namespace_removes_its_file(store: FileStore) -> None:
    store.save("n", MemoryEntry(entry_id="it"))
    edit(store, lambda ordered: ordered.remove("it"))
    assert not list(store.path.glob("*.json"))


def test_edits_of_many_threads_lose_nothing(store: FileStore) -> None:
    store.save("n", MemoryEntry(entry_id="it", content=0))

    def increase(ordered: OrderedRecords) -> None:
        before = ordered["it"]
        ordered.put(before._replace(content=before.content + 1), before.created_at)

    def work() -> None:
        for _ in range(20):
            edit(store, increase)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert contents(store) == [80]


# The directory and the files


def test_a_relative_directory_stays_where_it_was_when_the_store_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = FileStore("files")
    store.save("n", MemoryEntry(content="here"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert contents(store) == ["here"]
    store.save("n", MemoryEntry(content="still here"))
    assert contents(store) == ["here", "still here"]
    assert not list((tmp_path / "elsewhere").iterdir())
    assert repr(store) == "FileStore('files')"


@pytest.mark.parametrize("base_dir", ["", b"files", "a\x00b", 5, None])
def test_an_invalid_base_dir_is_refused(base_dir: Any) -> None:
    with pytest.raises(ConfigurationError, match="base_dir must name a directory"):
        FileStore(base_dir)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_keeps_its_mode(mode: int, store: FileStore) -> None:
    store.save("n", MemoryEntry())
    path = only_file(store.path)
    path.chmod(mode)
    store.save("n", MemoryEntry())
    assert path.stat().st_mode & 0o777 == mode
    assert store.count("n") == 2


def test_a_file_keeps_its_owner(store: FileStore) -> None:
    store.save("n", MemoryEntry())
    path = only_file(store.path)
    # Only root may give files away, others to a group of theirs.
    owner = (12, 34) if os.geteuid() == 0 else (os.geteuid(), os.getgroups()[-1])
    os.chown(path, *owner)
    store.save("n", MemoryEntry())
    assert (path.stat().st_uid, path.stat().st_gid) == owner


def test_a_link_stays_a_link_and_its_target_is_written_and_deleted(store: FileStore, tmp_path: Path) -> None:
    store.save("n", MemoryEntry(entry_id="it", content="old"))
    path, target = only_file(store.path), tmp_path / "kept elsewhere.json"
    path.rename(target)
    path.symlink_to(Path("..") / target.name)
    store.save("n", MemoryEntry(entry_id="it", content="new"))
    assert path.is_symlink()
    assert '"new"' in target.read_text()
    assert contents(store) == ["new"]
    store.clear("n")
    assert not target.exists(), "what was erased is gone"
    assert store.namespaces() == []
    store.save("n", MemoryEntry(content="again"))
    assert path.is_symlink()
    assert '"again"' in target.read_text()


def test_a_save_does_not_write_through_a_planted_temporary_file(store: FileStore, tmp_path: Path) -> None:
    store.save("n", MemoryEntry(content="old"))
    precious = tmp_path / "precious"
    precious.write_text("precious")
    only_file(store.path).with_suffix(".json.tmp").symlink_to(precious)
    store.save("n", MemoryEntry(content="new"))
    assert contents(store) == ["old", "new"]
    assert precious.read_text() == "precious"


def test_similar_namespaces_have_different_files(tmp_path: Path) -> None:
    """The very names, where the conformance suite adds to them in order not to meet anybody else's."""
    with FileStore(tmp_path / "files") as store:
        for name in LOOKALIKES:
            store.save(name, MemoryEntry(content=ascii(name)))
        for name in LOOKALIKES:
            assert [entry.content for entry in store.load(name)] == [ascii(name)]
        assert store.namespaces(limit=1_000) == sorted(
            LOOKALIKES,
            key=lambda name: name.replace("\x10", "\x10\x10").replace("\x00", "\x100").replace("\ud800", "\x10d800"),
        )
    folded = [path.name.lower() for path in (tmp_path / "files").glob("*.json")]
    assert len(set(folded)) == len(LOOKALIKES), "also where the file system folds case"
    assert [path.name for path in tmp_path.iterdir()] == ["files"]

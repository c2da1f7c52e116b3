"""R12 for stores in files: a disk failure raises one clear error and loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from firefly_memory import (
    ConfigurationError,
    CorruptDataError,
    DatabaseConnectionError,
    DatabaseStoreError,
    EntryStore,
    FileStore,
    MemoryEntry,
    SchemaMismatchError,
    SQLiteStore,
    StoreTimeoutError,
)
from firefly_memory.testing import stopped
from tests.support.small_disk import run_on

# Full and read-only disks


@pytest.mark.parametrize("work", ["fill_file_store", "fill_sqlite"])
def test_a_full_disk_raises_one_clear_error_and_loses_nothing(work: str, tmp_path: Path) -> None:
    report = run_on(tmp_path / "disk", work)
    assert report["error"].startswith("DatabaseStoreError: save failed: ")
    assert any(words in report["error"] for words in ("no space left", "larger than this system", "disk reports"))
    assert report["retryable"] == ("larger than this system" not in report["error"])
    assert (report["lost"], report["old"]) == (0, "old")
    assert report["after"] == ["old", "after"]


def test_a_read_only_disk_raises_one_clear_error(tmp_path: Path) -> None:
    report = run_on(tmp_path / "disk", "read_only")
    assert report["FileStore"].startswith("DatabaseConnectionError: save failed: ")
    assert any(words in report["FileStore"].lower() for words in ("read-only", "permission denied"))
    assert report["FileStore reads"] == ["written before"]
    assert report["SQLiteStore"].startswith("DatabaseConnectionError: ")
    assert "memory.db" in report["SQLiteStore"]
    assert "read-only" in report["SQLiteStore"] or "cannot be opened" in report["SQLiteStore"]


@pytest.mark.parametrize("make", [FileStore, lambda path: SQLiteStore(path / "memory.db")])
def test_a_file_in_place_of_the_directory_is_named(make: object, tmp_path: Path) -> None:
    assert callable(make)
    (tmp_path / "taken").write_text("a file")
    store = make(tmp_path / "taken")
    with pytest.raises(DatabaseConnectionError, match="taken: a file stands where the directory should be"):
        store.save("n", MemoryEntry())
    with pytest.raises(DatabaseConnectionError, match="taken"):
        store.initialize_sync()
    assert (tmp_path / "taken").read_text() == "a file"


# Files


def only_file(directory: Path) -> Path:
    (path,) = [path for path in directory.iterdir() if path.suffix == ".json"]
    return path


DAMAGE = {
    "nothing": "",
    "cut short": '{"format": "firefly-memory/1", "namespace": "n", "ent',
    "not JSON": "hello",
    "other JSON": "[1, 2]",
    "no format": '{"namespace": "n", "entries": []}',
    "no entries": '{"format": "firefly-memory/1", "namespace": "n"}',
    "entries of another type": '{"format": "firefly-memory/1", "namespace": "n", "entries": 5}',
    "an entry of another type": '{"format": "firefly-memory/1", "namespace": "n", "entries": ["x"]}',
    "an entry without fields": '{"format": "firefly-memory/1", "namespace": "n", "entries": [{}]}',
    "entries under names": '{"format": "firefly-memory/1", "namespace": "n", "entries": {}}',
    "a namespace of another type": '{"format": "firefly-memory/1", "namespace": 5, "entries": []}',
    "another namespace": '{"format": "firefly-memory/1", "namespace": "m", "entries": []}',
    "not UTF-8": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", ["n", "n" * 300], ids=["short name", "long name"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_never_reset(damage: str | bytes, name: str, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save(name, MemoryEntry(content="precious"))
    path = only_file(tmp_path)
    store.save("other", MemoryEntry(content="unharmed"))
    raw = damage if isinstance(damage, bytes) else damage.replace('"n"', json.dumps(name)).encode()
    path.write_bytes(raw)
    for operation, use in (
        ("load", lambda: store.load(name)),
        ("load", lambda: store.load_page(name)),
        ("load_by_key", lambda: store.load_by_key(name, "k")),
        ("count", lambda: store.count(name)),
        ("save", lambda: store.save(name, MemoryEntry())),
        ("save_many", lambda: store.save_many(name, [MemoryEntry()])),
        ("delete", lambda: store.delete(name, "x")),
        ("delete_many", lambda: store.delete_many(name, ["x"])),
        ("clear", lambda: store.clear(name)),
        ("namespaces", store.namespaces),
        ("cleanup_expired", store.cleanup_expired_sync),
    ):
        with pytest.raises(CorruptDataError, match="left as it is") as caught:
            use()
        assert str(path) in caught.value.where
        assert caught.value.operation == operation
        assert str(caught.value).startswith(f"{operation} failed: ")
    assert path.read_bytes() == raw
    assert [entry.content for entry in store.load("other")] == ["unharmed"]


@pytest.mark.parametrize("name", ["n", "n" * 300], ids=["short name", "long name"])
@pytest.mark.parametrize(
    ("text", "kind"),
    [("", CorruptDataError), ("{}", CorruptDataError), ('{"format": "firefly-memory/2"}', SchemaMismatchError)],
)
def test_an_unreadable_file_does_not_stop_the_clean_up_of_others(
    text: str, kind: type[DatabaseStoreError], name: str, tmp_path: Path
) -> None:
    store = FileStore(tmp_path)
    store.save(name, MemoryEntry())
    only_file(tmp_path).write_text(text)
    with stopped() as clock:
        for number in range(20):
            store.save(f"{number}", MemoryEntry(expires_at=clock.now() + timedelta(seconds=1)))
        clock.advance(seconds=2)
        with pytest.raises(kind) as caught:
            store.cleanup_expired_sync()
    assert caught.value.operation == "cleanup_expired"
    assert only_file(tmp_path).read_text() == text, "the only one that is left"


@pytest.mark.parametrize("name", ["n", "n" * 300], ids=["short name", "long name"])
def test_a_file_deleted_meanwhile_is_no_error(name: str, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save(name, MemoryEntry())
    path = only_file(tmp_path)
    path.unlink()
    path.symlink_to("what is not there")
    assert store.namespaces() == []
    assert store.cleanup_expired_sync() == 0
    assert store.load(name) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("created_at", "yesterday"), ("created_at", "2024-01-01T00:00:00"), ("created_at", "0001-01-01T00:00:00+05:00"), ("scope", "x"), ("importance", 7), ("metadata", []),
     ("expires_at", 5), ("unknown", 1), ("importance", "high"), ("content", {"~int": "zz"})],
)  # fmt: skip
def test_a_damaged_entry_is_named(field: str, value: object, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save("n", MemoryEntry(entry_id="it", key="k"))
    path = only_file(tmp_path)
    document = json.loads(path.read_text())
    document["entries"][0][field] = value
    path.write_text(json.dumps(document))
    uses: dict[str, Callable[[], object]] = {
        "load": lambda: store.load("n"),
        "load_page": lambda: store.load_page("n"),
        "load_by_key": lambda: store.load_by_key("n", "k"),
    }
    for operation, use in uses.items():
        with pytest.raises(CorruptDataError) as caught:
            use()
        assert caught.value.operation in (operation, operation.removesuffix("_page"))
    assert json.loads(path.read_text()) == document


def test_two_entries_with_the_same_id_in_a_file_are_damage(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save("n", MemoryEntry(entry_id="it"))
    path = only_file(tmp_path)
    document = json.loads(path.read_text())
    document["entries"] *= 2
    path.write_text(json.dumps(document))
    with pytest.raises(CorruptDataError, match="'it' occurs twice"):
        store.load("n")


def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save("n", MemoryEntry())
    path = only_file(tmp_path)
    text = path.read_text().replace("firefly-memory/1", "firefly-memory/2")
    path.write_text(text)
    with pytest.raises(SchemaMismatchError, match="pip install --upgrade firefly-memory") as caught:
        store.save("n", MemoryEntry())
    assert caught.value.operation == "save"
    assert str(path) in str(caught.value)
    assert path.read_text() == text


def test_a_file_can_be_edited_by_hand(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save("working:Session 42", MemoryEntry(entry_id="it", key="city", content={"zip": "8001", "city": "Zürich"}))
    path = only_file(tmp_path)
    assert path.name == "working%3a%53ession%2042.json"
    text = path.read_text()
    assert '"city": "Zürich"' in text
    assert len(text.splitlines()) > 10
    path.write_text(text.replace("Zürich", "Basel"))
    (entry,) = store.load("working:Session 42")
    assert list(entry.content.items()) == [("zip", "8001"), ("city", "Basel")]
    store.delete("working:Session 42", "it")
    assert not list(tmp_path.glob("*.json"))


def test_a_crash_before_the_rename_leaves_the_old_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save("n", MemoryEntry(content="old"))
    half_written = only_file(tmp_path).with_suffix(".json.tmp")
    half_written.write_text('{"format": "firefly-mem')
    assert [entry.content for entry in store.load("n")] == ["old"]
    assert store.namespaces() == ["n"]
    store.save("n", MemoryEntry(content="new"))
    assert [entry.content for entry in store.load("n")] == ["old", "new"]
    assert not half_written.exists()


def test_a_lock_that_is_never_released_ends_in_a_time_out(tmp_path: Path) -> None:
    import fcntl

    store = FileStore(tmp_path, timeout=0.05)
    store.save("n", MemoryEntry())
    (lock,) = (tmp_path / ".locks").iterdir()
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreTimeoutError, match="has been locked") as caught:
            store.save("n", MemoryEntry())
        assert caught.value.retryable
        assert caught.value.operation == "save"
        assert str(lock) in str(caught.value)
        assert store.count("n") == 1, "readers do not wait"
    store.save("n", MemoryEntry())
    assert store.count("n") == 2


def test_reading_creates_no_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "not" / "there")
    assert store.load("n") == []
    assert store.namespaces() == []
    assert store.cleanup_expired_sync() == 0
    store.clear("n")
    store.delete("n", "x")
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": ""}, "path of a file"),
        ({"path": "a\x00b"}, "path of a file"),
        ({"path": b"bytes"}, "path of a file"),
        ({"path": "sqlite:///x.db"}, "use firefly_memory.connect"),
        ({"path": "x.db", "synchronous": "OFF"}, "synchronous must be"),
        ({"path": "x.db", "timeout": 0}, "timeout must be"),
        ({}, "either path or engine"),
        ({"engine": "sqlite://"}, "Engine or AsyncEngine"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        SQLiteStore(**arguments)  # type: ignore[arg-type]


def test_both_kinds_of_store_leave_no_open_files_when_closed(tmp_path: Path) -> None:
    def open_files() -> set[str]:
        return {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()}

    stores: list[EntryStore] = [SQLiteStore(tmp_path / "memory.db"), FileStore(tmp_path / "files")]
    for store in stores:
        store.save("n", MemoryEntry())
        store.close_sync()
    assert not [name for name in open_files() if name.startswith(str(tmp_path))]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files", "memory.db"], "no -wal or -shm is left"

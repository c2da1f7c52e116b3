"""New files of stores and commands are private to their owner, and no planted file is written through."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    DatabaseConnectionError,
    FileStore,
    MemoryEntry,
    MemoryManager,
    SQLiteStore,
    connect,
)
from firefly_memory.cli import main
from firefly_memory.cli.exits import Exit
from firefly_memory.databases.files.file_system import exclusive_lock, keep_rights, new_file

PREFIX = "FIREFLY_AGENTIC_MEMORY_"
SOMEBODY_ELSE = 12345


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    return {
        str(path.relative_to(directory.parent)): stat.S_IMODE(path.stat().st_mode)
        for path in (directory, *directory.rglob("*"))
    }


def fill(url: str, **options: Any) -> None:
    with connect(url, **options) as store:
        MemoryManager(store=store).add_turn("c", "p", "a")
        store.save("n", MemoryEntry(content="secret"))


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077], ids=oct)
@pytest.mark.parametrize("url", ["file:new/store", "sqlite:///new/store/memory.db"])
def test_only_the_owner_can_read_new_files_of_a_store(url: str, mask: int, tmp_path: Path) -> None:
    with umask(mask), connect(url) as store:
        MemoryManager(store=store).add_turn("c", "p", "a")
        store.save("n", MemoryEntry(content="secret"))
        found = modes(tmp_path / "new")
    assert found.pop("new") == found.pop("new/store") == 0o700
    assert found.pop("new/store/.locks", 0o700) == 0o700
    assert set(found.values()) == {0o600}
    if url.startswith("sqlite"):
        assert {"new/store/memory.db", "new/store/memory.db-wal", "new/store/memory.db-shm"} == found.keys()
    else:
        assert any(name.endswith(".lock") for name in found)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077], ids=oct)
@pytest.mark.parametrize("url", ["file:new", "sqlite:///new/memory.db"])
def test_options_set_the_modes_of_files_and_directories(url: str, mask: int, tmp_path: Path) -> None:
    with umask(mask), connect(url, file_mode=0o660, directory_mode=0o2770) as store:
        store.save("n", MemoryEntry())
        found = modes(tmp_path / "new")
    assert found.pop("new") == 0o2770
    assert found.pop("new/.locks", 0o2770) == 0o2770
    assert set(found.values()) == {0o660}


@pytest.mark.parametrize("url", ["file:new", "sqlite:///new/memory.db"])
def test_variables_set_the_modes_of_files_and_directories(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("URL", url), ("FILE_MODE", "0640"), ("DIRECTORY_MODE", "750")):
        monkeypatch.setenv(PREFIX + name, value)
    with MemoryManager.from_config() as manager:
        manager.set_fact("k", "v")
    found = modes(tmp_path / "new")
    assert {mode for name, mode in found.items() if (tmp_path / name).is_dir()} == {0o750}
    assert {mode for name, mode in found.items() if (tmp_path / name).is_file()} == {0o640}


def test_db_upgrade_and_alembic_create_files_with_the_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["db", "upgrade", "--url", "sqlite:///mine.db"]) == Exit.DONE
    monkeypatch.setenv(f"{PREFIX}FILE_MODE", "0660")
    assert main(["db", "upgrade", "--url", "sqlite:///ours.db"]) == Exit.DONE
    ini = Path(__file__).parents[2] / "alembic.ini"
    command = [sys.executable, "-m", "alembic", "-c", str(ini), "-x", "url=sqlite:///theirs.db", "upgrade", "head"]
    subprocess.run(command, check=True, capture_output=True)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("*.db")}
    assert found == {"mine.db": 0o600, "ours.db": 0o660, "theirs.db": 0o660}


@pytest.mark.parametrize("url", ["file:there", "sqlite:///there/memory.db"])
def test_existing_files_keep_their_rights(url: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there").chmod(0o755)
    fill(url)
    data = tmp_path / "there" / ("n.json" if url.startswith("file") else "memory.db")
    data.chmod(0o640)
    fill(url)
    assert stat.S_IMODE(data.stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o755


def test_an_sqlite_file_is_created_at_the_target_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "memory.db").symlink_to("elsewhere.db")
    with umask(0):
        fill("sqlite:///memory.db")
    assert (tmp_path / "memory.db").is_symlink()
    assert stat.S_IMODE((tmp_path / "elsewhere.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [600, 0o400, 0o1600, -1, True, "0600", None, 0.5], ids=repr)
def test_an_invalid_mode_is_refused(mode: Any) -> None:
    for make in (FileStore, SQLiteStore):
        with pytest.raises(ConfigurationError, match="file_mode must be a mode such as 0o600"):
            make("x", file_mode=mode)
    with pytest.raises(ConfigurationError, match="directory_mode must be a mode such as 0o700"):
        FileStore("x", directory_mode=0o600)


@pytest.mark.parametrize("value", ["rw", "0888", "6", "u=rw", "-600"])
def test_a_variable_with_an_invalid_mode_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}FILE_MODE", value)
    with pytest.raises(ConfigurationError, match=f"{PREFIX}FILE_MODE: must be a mode such as 0660"):
        MemoryManager.from_config()


def test_nobody_else_can_open_a_new_file_before_it_has_its_mode(tmp_path: Path) -> None:
    made: list[int] = []
    watched = os.open

    def opened(path: Any, flags: int, mode: int = 0o777) -> int:
        made.append(mode)
        assert flags & os.O_EXCL
        assert flags & os.O_NOFOLLOW
        return watched(path, flags, mode)

    with umask(0), pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", opened)
        descriptor = new_file(tmp_path / "file", 0o666)
    os.close(descriptor)
    assert made == [0o600]
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666


def test_a_group_that_a_file_cannot_keep_gets_no_rights(tmp_path: Path) -> None:
    """Or another group would have them."""
    before = list(tmp_path.stat())
    before[0] = 0o660
    before[5] = 2**31  # no such group can be given
    descriptor = new_file(tmp_path / "file", 0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fchown", _not_permitted)
        keep_rights(descriptor, os.stat_result(before))
    os.close(descriptor)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def _not_permitted(*_: object) -> None:
    raise PermissionError


@contextmanager
def given_away(path: Path) -> Iterator[None]:
    """It belongs to somebody else: only root can have it so, others become somebody else instead."""
    if os.geteuid() == 0:
        os.lchown(path, SOMEBODY_ELSE, SOMEBODY_ELSE)
        yield
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "geteuid", lambda: SOMEBODY_ELSE)
            yield


def test_nobody_else_can_hold_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "1.lock"
    with umask(0), exclusive_lock(path, 1):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["link", "hanging link"])
def test_a_lock_is_not_created_at_the_target_of_a_planted_link(kind: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    if kind == "link":
        precious.write_text("precious")
    with FileStore(tmp_path / "files") as store:
        store.save("n", MemoryEntry())
        (lock,) = (tmp_path / "files" / ".locks").iterdir()
        lock.unlink()
        lock.symlink_to(precious)
        with pytest.raises(Exception, match=str(lock)):
            store.save("n", MemoryEntry())
    assert not precious.exists() or precious.read_text() == "precious"


def test_a_store_does_not_write_through_a_link_of_another_user(tmp_path: Path) -> None:
    victim = tmp_path / "victim.json"
    with FileStore(tmp_path / "files") as store:
        store.save("n", MemoryEntry(content="old"))
        path = tmp_path / "files" / "n.json"
        path.rename(victim)
        path.symlink_to(victim)
        store.save("n", MemoryEntry(content="by a link of my own"))
        before = victim.read_bytes()
        with given_away(path):
            with pytest.raises(DatabaseConnectionError, match="permission denied"):
                store.save("n", MemoryEntry())
            with pytest.raises(DatabaseConnectionError, match="permission denied"):
                store.clear("n")
        assert victim.read_bytes() == before


# Doctor


def warnings_of(url: str, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    main(["doctor", "--url", url, "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return [(each["found"], each["do"]) for each in findings if each["what"] == "permissions"]


@pytest.mark.parametrize("url", ["file:store", "sqlite:///store/memory.db"])
def test_doctor_names_files_that_others_may_read_or_write(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url)
    assert warnings_of(url, capsys) == []
    store = tmp_path / "store"
    for path in store.rglob("*"):
        path.chmod(path.stat().st_mode | (0o005 if path.is_dir() else 0o004))
    words = [found for found, _ in warnings_of(url, capsys)]
    first = "conversation%3ac.json" if url.startswith("file") else "memory.db"
    assert any(found.startswith(f"everybody may read {store / first}") for found in words)
    if url.startswith("file"):
        assert any(".lock" in found for found in words)
    for path in store.rglob("*"):
        path.chmod(path.stat().st_mode & 0o770)
    store.chmod(0o777)
    ((found, do),) = warnings_of(url, capsys)
    assert "everybody may" in found
    assert do.startswith("chmod o-")
    assert str(store) in do
    store.chmod(0o1777)
    assert len(warnings_of(url, capsys)) == (1 if url.startswith("file") else 0), "the sticky bit keeps others' files"


# Exports


@pytest.fixture
def exported(tmp_path: Path) -> str:
    fill("sqlite:///a.db")
    return "sqlite:///a.db"


def test_only_the_owner_can_read_an_export(exported: str, tmp_path: Path) -> None:
    with umask(0):
        assert main(["export", "--url", exported, "out.jsonl", "--quiet"]) == Exit.DONE
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".*.partial"))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o644], ids=oct)
def test_an_export_keeps_the_mode_of_the_file_it_replaces(mode: int, exported: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("earlier")
    out.chmod(mode)
    assert main(["export", "--url", exported, "out.jsonl", "--quiet"]) == Exit.DONE
    assert stat.S_IMODE(out.stat().st_mode) == mode
    assert "secret" in out.read_text()


def test_an_export_does_not_copy_the_mode_of_another_users_file(exported: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("put there to be read")
    out.chmod(0o666)
    with given_away(out):
        assert main(["export", "--url", exported, "out.jsonl", "--quiet"]) == Exit.DONE
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_an_export_does_not_write_through_a_planted_partial_file(exported: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "out.jsonl.partial").symlink_to(precious)
    assert main(["export", "--url", exported, "out.jsonl", "--quiet"]) == Exit.DONE
    assert precious.read_text() == "precious"
    assert (tmp_path / "out.jsonl.partial").is_symlink()


@pytest.mark.parametrize("exists", [True, False])
def test_an_export_neither_replaces_a_link_nor_writes_to_its_target(
    exists: bool, exported: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "precious"
    if exists:
        precious.write_text("precious")
    (tmp_path / "out.jsonl").symlink_to(precious)
    assert main(["export", "--url", exported, "out.jsonl", "--quiet"]) == Exit.USAGE
    assert f"out.jsonl is a link to {precious}; name that file itself" in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").is_symlink()
    assert precious.exists() is exists
    assert not exists or precious.read_text() == "precious"


def test_an_export_fails_before_it_replaces_anything(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("earlier")
    sqlite3.connect("empty.db").close()
    assert main(["export", "--url", "sqlite:///empty.db", "out.jsonl"]) == Exit.BEHIND
    assert (tmp_path / "out.jsonl").read_text() == "earlier"
    assert {path.name for path in tmp_path.iterdir()} <= {"out.jsonl", "empty.db", "empty.db-wal", "empty.db-shm"}


def test_an_export_writes_to_a_device_and_does_not_replace_it(exported: str, tmp_path: Path) -> None:
    """A null device of the test's own; where that cannot be made, a pipe stands for it."""
    device, link = tmp_path / "device", tmp_path / "link"
    reader = None
    if os.geteuid() == 0:
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    else:
        os.mkfifo(device)
        reader = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
    link.symlink_to(device)
    kind = stat.S_IFMT(device.stat().st_mode)
    for name in ("device", "link"):
        assert main(["export", "--url", exported, name, "--quiet"]) == Exit.DONE
        assert stat.S_IFMT(device.stat().st_mode) == kind
        assert link.is_symlink()
    assert not list(tmp_path.glob(".*.partial"))
    if reader is not None:
        os.close(reader)


def test_an_export_to_a_socket_is_refused(exported: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("out.jsonl")
        assert main(["export", "--url", exported, "out.jsonl", "--quiet"]) == Exit.USAGE
        assert "out.jsonl is a socket" in capsys.readouterr().err
        assert (tmp_path / "out.jsonl").is_socket()


def test_an_export_does_not_write_to_a_pipe_planted_by_another_user(
    exported: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o1777)
    os.mkfifo(public / "out.jsonl")
    with given_away(public / "out.jsonl"):
        assert main(["export", "--url", exported, "public/out.jsonl", "--quiet"]) == Exit.USAGE
    assert "another user has put" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "-"])
def test_an_export_accepts_every_name_of_the_standard_output(name: str, exported: str) -> None:
    command = [sys.executable, "-m", "firefly_memory.cli", "export", "--url", exported, name, "--quiet"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "secret" in ended.stdout
    assert Path("/dev/stdout").is_symlink()


def test_an_export_writes_to_a_process_substitution(exported: str, tmp_path: Path) -> None:
    script = f"{sys.executable} -m firefly_memory.cli export --url {exported} --quiet >(cat > through) && wait $!"
    subprocess.run(["bash", "-c", script], check=True)
    assert "secret" in (tmp_path / "through").read_text()

"""A small or read-only file system for one process: ``python -m tests.support.small_disk WORK DIRECTORY``.

:func:`run_on` starts it in a mount namespace of its own where the system allows that. Where it does not, the process
gets a limit on the size of its files instead, which fails the same writes with another error of the system's, or has
the rights to its files taken away.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from firefly_memory import DatabaseStoreError, EntryStore, FileStore, MemoryEntry, SQLiteStore

ROOT = Path(__file__).parents[2]
KILOBYTE = "x" * 1024

_UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
_LIMITED = sys.argv[3:] == ["limit"]
_MOUNT = 'mount -t tmpfs -o size=$1 none "$0" && shift && exec "$@"'


def run_on(directory: Path, work: str) -> dict[str, Any]:
    """Let ``work`` happen on a small disk at ``directory``, and return what it reports."""
    directory.mkdir(exist_ok=True)
    command = [sys.executable, "-W", "error", "-m", "tests.support.small_disk", work, str(directory)]
    if subprocess.run([*_UNSHARE, "true"], check=False, capture_output=True).returncode == 0:
        command = [*_UNSHARE, "sh", "-c", _MOUNT, str(directory), "768k", *command]
    else:
        command.append("limit")
    finished = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    report: dict[str, Any] = json.loads(finished.stdout)
    return report


def fill_file_store(directory: Path) -> dict[str, Any]:
    return _fill(FileStore(directory / "files"), directory / "ballast")


def fill_sqlite(directory: Path) -> dict[str, Any]:
    return _fill(SQLiteStore(directory / "memory.db"), directory / "ballast")


def _fill(store: EntryStore, ballast: Path) -> dict[str, Any]:
    """Save until the disk is full; then report the error, and whether the store lost nothing and works again."""
    ballast.write_text(KILOBYTE * 150)
    store.save("kept", MemoryEntry(entry_id="replaced", content="old"))
    saved = 0
    error: DatabaseStoreError | None = None
    while error is None:
        assert saved < 10_000, "the disk did not fill up"
        try:
            store.save("filling", MemoryEntry(content=KILOBYTE))
            saved += 1
        except DatabaseStoreError as caught:
            error = caught
    try:
        store.save("kept", MemoryEntry(entry_id="replaced", content=KILOBYTE * 800))
    except DatabaseStoreError:
        pass
    else:
        raise AssertionError("there was room for a large value")
    report = {
        "error": f"{type(error).__name__}: {error}",
        "retryable": error.retryable,
        "lost": saved - store.count("filling"),
        "old": store.load("kept")[0].content,
    }
    ballast.unlink()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.clear("filling")
    store.save("kept", MemoryEntry(content="after"))
    report["after"] = [entry.content for entry in store.load("kept")]
    store.close_sync()
    return report


def read_only(directory: Path) -> dict[str, Any]:
    """What stores say on a file system that has become read-only."""
    files, database = FileStore(directory / "files"), SQLiteStore(directory / "memory.db")
    for store in (files, database):
        store.save("n", MemoryEntry(content="written before"))
        store.close_sync()
    if _LIMITED:
        for path in (directory, *directory.rglob("*")):
            path.chmod(path.stat().st_mode & 0o555)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(directory)], check=True)
    report: dict[str, Any] = {}
    for store in (FileStore(directory / "files"), SQLiteStore(directory / "memory.db")):
        name = type(store).__name__
        try:
            store.save("n", MemoryEntry(content="refused"))
        except DatabaseStoreError as error:
            report[name] = f"{type(error).__name__}: {error}"
        try:
            report[f"{name} reads"] = [entry.content for entry in store.load("n")]
        except DatabaseStoreError as error:
            report[f"{name} reads"] = f"{type(error).__name__}: {error}"
    return report


if __name__ == "__main__":
    if _LIMITED:
        resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, resource.RLIM_INFINITY))
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))

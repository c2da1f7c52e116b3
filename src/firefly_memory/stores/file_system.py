"""What the file store needs of an operating system: locks between processes, files replaced durably, clear errors."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from firefly_memory.errors import DatabaseConnectionError, DatabaseStoreError, StoreTimeoutError

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_REASONS = {
    errno.ENOSPC: "there is no space left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than this system allows",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EEXIST: "a file stands where the directory should be",
    errno.EISDIR: "a directory stands where the file should be",
}
_UNREACHABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.EISDIR}
_MAY_PASS = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE}


@contextmanager
def translated(operation: str, place: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into an error of ours that says what to look at."""
    try:
        yield
    except OSError as exc:
        if isinstance(exc, DatabaseStoreError):
            raise
        reason = _REASONS.get(exc.errno or 0, exc.strerror or str(exc))
        kind = DatabaseConnectionError if exc.errno in _UNREACHABLE else DatabaseStoreError
        raise kind(operation, f"{exc.filename or place}: {reason}", retryable=exc.errno in _MAY_PASS) from exc


@contextmanager
def exclusive_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock file at ``path``: one holder among all threads and processes. A dead holder holds nothing."""
    make_directory(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        deadline = time.monotonic() + timeout
        pause = 0.000_5
        while True:
            try:
                _try_lock(descriptor)
                break
            except OSError as exc:
                if exc.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
                    raise
                if time.monotonic() >= deadline:
                    raise StoreTimeoutError(
                        "waiting for another writer", f"{path} has been locked for {timeout:g} seconds", retryable=True
                    ) from exc
            time.sleep(pause)
            pause = min(pause * 2, 0.01)
        yield
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data``: after a crash at any point it holds the old data or the new."""
    beside = path.with_name(path.name + ".tmp")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
    _flush_directory(path.parent)


def remove_durably(path: Path) -> None:
    """Delete ``path`` if it is there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return
    _flush_directory(path.parent)


def make_directory(directory: Path) -> None:
    """Create ``directory`` and its parents, durably, where they are missing."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    with suppress(FileExistsError):
        directory.mkdir()
    if not directory.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(directory))
    _flush_directory(directory.parent)


def _flush_directory(directory: Path) -> None:
    if sys.platform == "win32":  # cannot open directories, and writes their entries through
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""What the file store needs of an operating system: locks between processes, files replaced durably, clear errors."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from firefly_memory.errors import DatabaseConnectionError, DatabaseStoreError, StoreTimeoutError
from firefly_memory.forks import ForkAware, ForkBarrier
from firefly_memory.stores.cancellation import stop_if_given_up

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


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
_MAY_PASS = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ETIMEDOUT}


@contextmanager
def translated(operation: str, place: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into an error of ours that says what to look at."""
    try:
        yield
    except OSError as exc:
        if isinstance(exc, DatabaseStoreError):
            raise
        reason = _REASONS.get(exc.errno or 0, exc.strerror or str(exc))
        kind: type[DatabaseStoreError] = DatabaseStoreError
        if exc.errno in _UNREACHABLE:
            kind = DatabaseConnectionError
        elif exc.errno == errno.ETIMEDOUT:
            kind = StoreTimeoutError
        raise kind(operation, f"{exc.filename or place}: {reason}", retryable=exc.errno in _MAY_PASS) from exc


class _Forks(ForkAware):
    """Waits with a fork until no thread holds a lock: the child would hold it too, for as long as it lives."""

    def __init__(self) -> None:
        self.barrier = ForkBarrier()
        self.watch_forks()

    def before_fork(self) -> None:
        self.barrier.shut()

    def after_fork_in_parent(self) -> None:
        self.barrier.open()

    def after_fork_in_child(self) -> None:
        self.barrier = ForkBarrier()


_forks = _Forks()


@contextmanager
def exclusive_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock file at ``path``: one holder among all threads and processes. A dead holder holds nothing."""
    make_directory(path.parent)
    deadline = time.monotonic() + timeout
    pause = 0.000_5
    while True:
        stop_if_given_up()
        with _forks.barrier, _opened(path) as descriptor:
            if _try_lock(descriptor):
                try:
                    yield
                finally:
                    _unlock(descriptor)  # closing does not do it while a forked child has the file open too
                return
        if time.monotonic() >= deadline:
            raise TimeoutError(errno.ETIMEDOUT, f"has been locked for {timeout:g} seconds", str(path))
        time.sleep(pause)
        pause = min(pause * 2, 0.01)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        _lock(descriptor)
    except OSError as exc:
        if exc.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise
        return False
    return True


def write_durably(path: Path, data: bytes) -> None:
    """Make ``data`` the contents of ``path``: after a crash at any point it holds the old data or the new.

    Of a link, the target is replaced. A file keeps its mode, and its owner as far as the system allows.
    """
    path = path.resolve()
    beside = path.with_name(path.name + ".tmp")
    try:
        beside.unlink(missing_ok=True)
        before = path.stat() if path.exists() else None
        with open(beside, "xb", opener=before and _private) as file:
            if before is not None:
                _make_alike(file.fileno(), before)
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
    """Delete ``path`` if it is there; of a link, the target."""
    path = path.resolve()
    try:
        path.unlink()
    except FileNotFoundError:
        return
    _flush_directory(path.parent)


def _private(name: str, flags: int) -> int:
    """Open a file that nobody else can read, not even before it gets its mode."""
    return os.open(name, flags, 0o600)


def _make_alike(descriptor: int, model: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    for owner, group in ((-1, model.st_gid), (model.st_uid, -1)):
        with suppress(PermissionError):
            os.fchown(descriptor, owner, group)
    with suppress(PermissionError):  # where the file system has no modes of its own
        os.fchmod(descriptor, stat.S_IMODE(model.st_mode))


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

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

from firefly_memory.concurrency.cancellation import stop_if_given_up
from firefly_memory.concurrency.process_fork import ForkAware, ForkBarrier
from firefly_memory.errors import DatabaseConnectionError, DatabaseStoreError, OutcomeUnknownError, StoreTimeoutError
from firefly_memory.validation import ONLY_MINE, FileModes

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


_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

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


class UnsyncedDirectoryError(OSError):
    """A file was replaced or deleted, but its directory could not be synced: a crash may undo the change."""


@contextmanager
def translated(operation: str, path: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into an error of ours that says what to look at."""
    try:
        yield
    except OSError as exc:
        if isinstance(exc, DatabaseStoreError):
            raise
        reason = f"{exc.filename or path}: {_REASONS.get(exc.errno or 0, exc.strerror or str(exc))}"
        if isinstance(exc, UnsyncedDirectoryError):
            raise OutcomeUnknownError(operation, reason) from exc
        kind: type[DatabaseStoreError] = DatabaseStoreError
        if exc.errno in _UNREACHABLE:
            kind = DatabaseConnectionError
        elif exc.errno == errno.ETIMEDOUT:
            kind = StoreTimeoutError
        raise kind(operation, reason, retryable=exc.errno in _MAY_PASS) from exc


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
def exclusive_lock(path: Path, timeout: float, modes: FileModes = ONLY_MINE) -> Iterator[None]:
    """Hold the lock file at ``path``: one holder among all threads and processes. A dead holder holds nothing.

    Whoever may open the file may hold it, for as long as he likes: it needs a mode like that of the files it is for.
    """
    make_directory(path.parent, modes.directory)
    deadline = time.monotonic() + timeout
    pause = 0.000_5
    while True:
        stop_if_given_up()
        with _forks.barrier, _opened(path, modes.file) as descriptor:
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
def _opened(path: Path, mode: int) -> Iterator[int]:
    with suppress(FileExistsError):
        os.close(new_file(path, mode))
    descriptor = os.open(path, os.O_RDWR | _NO_LINKS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def new_file(path: Path, mode: int) -> int:
    """Make a file of exactly this mode, whatever the umask, and open it to be written; ``FileExistsError`` if anything
    is there, a link too. Nobody else can ever open it before it has its mode."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINKS | getattr(os, "O_BINARY", 0), 0o600)
    try:
        _give_mode(descriptor, mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _give_mode(descriptor: int, mode: int) -> None:
    if sys.platform != "win32" and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        with suppress(PermissionError):  # where the file system has no modes of its own
            os.fchmod(descriptor, mode)


def _try_lock(descriptor: int) -> bool:
    try:
        _lock(descriptor)
    except OSError as exc:
        if exc.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise
        return False
    return True


def write_durably(path: Path, data: bytes, mode: int = ONLY_MINE.file, like: Path | None = None) -> None:
    """Make ``data`` the contents of ``path``: after a crash at any point it holds the old data or the new.

    Of a link, the target is replaced. A file keeps its mode, and its owner as far as the system allows; a new one has
    those of the file ``like``, or else ``mode``.
    """
    path = followed(path)
    beside = path.with_name(path.name + ".tmp")  # one name, so that the next write removes what a crash has left
    try:
        beside.unlink(missing_ok=True)
        before = next((each.stat() for each in (path, like) if each is not None and each.exists()), None)
        with open(new_file(beside, ONLY_MINE.file if before is not None else mode), "wb") as file:
            if before is not None:
                keep_rights(file.fileno(), before)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
    _sync_change_in(path.parent)


def remove_durably(path: Path) -> None:
    """Delete ``path`` if it is there; of a link, the target."""
    path = followed(path)
    try:
        path.unlink()
    except FileNotFoundError:
        return
    _sync_change_in(path.parent)


def _sync_change_in(directory: Path) -> None:
    try:
        flush_directory(directory)
    except OSError as exc:
        raise UnsyncedDirectoryError(exc.errno, exc.strerror, str(directory)) from exc


def followed(path: Path) -> Path:
    """Where a link leads, unless somebody else made it: then it may lead anywhere."""
    if path.is_symlink() and not is_trusted(path.lstat()):
        raise PermissionError(errno.EACCES, "a link that another user has made", str(path))
    return path.resolve()


def is_trusted(there: os.stat_result) -> bool:
    """Whether it belongs to this user, or to one who may do everything anyway."""
    return sys.platform == "win32" or there.st_uid in (0, os.geteuid())


def keep_rights(descriptor: int, before: os.stat_result) -> None:
    """Give a new file the owner, the group and the mode of the one that it replaces, as far as the system allows. A
    group that it cannot have gets no rights."""
    if sys.platform == "win32":
        return
    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
        with suppress(PermissionError):
            os.fchown(descriptor, owner, group)
    has_group = os.fstat(descriptor).st_gid == before.st_gid
    _give_mode(descriptor, before.st_mode & (0o777 if has_group else 0o707))


def make_directory(directory: Path, mode: int = ONLY_MINE.directory) -> None:
    """Create ``directory`` and its parents, durably, where they are missing, each of exactly this mode."""
    if directory.is_dir():
        return
    make_directory(directory.parent, mode)
    try:
        directory.mkdir(ONLY_MINE.directory)
    except FileExistsError:
        if not directory.is_dir():
            raise
    else:
        made = stat.S_IMODE(directory.stat().st_mode)
        wanted = mode | (made & stat.S_ISGID)  # which a directory has from the one that it is in
        if sys.platform != "win32" and made != wanted:
            with suppress(PermissionError):
                directory.chmod(wanted)
    flush_directory(directory.parent)


def flush_directory(directory: Path) -> None:
    if sys.platform == "win32":  # cannot open directories, and writes their entries through
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

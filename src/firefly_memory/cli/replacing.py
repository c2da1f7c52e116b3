"""Where an archive is written to: a file that is there as a whole or not at all, and replaces no store, no link and
no device. Whoever plants something at its name, or beside it, gets nothing written through it."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from firefly_memory.conversations.listing_file import NAME as LIST_FILE
from firefly_memory.databases.files.file_system import flush_directory, is_trusted, keep_rights, new_file
from firefly_memory.errors import ConfigurationError, FireflyMemoryError
from firefly_memory.stores.file import LOCKS
from firefly_memory.target import Target, path_of
from firefly_memory.tombstones.in_files import NAME as TOMBSTONES_FILE
from firefly_memory.urls import Medium
from firefly_memory.validation import ONLY_MINE

_SQLITE = b"SQLite format 3\0"
_BESIDE = ("", "-wal", "-shm", "-journal")
_WAL = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_SEPARATORS = tuple(each for each in (os.sep, os.altsep) if each)


@contextmanager
def written(name: str) -> Iterator[IO[str]]:
    """The standard output, or a file. A pipe or device is written to; ``ConfigurationError`` for what cannot be."""
    if name == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    path = Path(name)
    if path.is_dir() or not path.name or name.endswith(_SEPARATORS):
        raise ConfigurationError(f"{name} is a directory; name the file to write")
    writing = _replaced(path) if _is_replaceable(path) else _through(path)
    try:
        with writing as file:
            yield file
    except OSError as exc:
        if exc.filename is None and not isinstance(exc, FireflyMemoryError):
            exc.filename = name  # which no write says
        raise


def _is_replaceable(path: Path) -> bool:
    """Whether there is a regular file, or nothing; a link is neither."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True


def _check_replaceable(path: Path) -> None:
    if not _is_replaceable(path):
        raise ConfigurationError(f"{path} was put there meanwhile, and is no file that can be replaced")


@contextmanager
def _replaced(path: Path) -> Iterator[IO[str]]:
    before = path.lstat() if path.exists() else None
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    descriptor = new_file(partial, ONLY_MINE.file)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            if before is not None and sys.platform != "win32" and before.st_uid == os.geteuid():
                keep_rights(file.fileno(), before)  # somebody else's rights are no model: he may have put it there
            yield file
            file.flush()
            os.fsync(file.fileno())
        _check_replaceable(path)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


@contextmanager
def _through(path: Path) -> Iterator[IO[str]]:
    """To a pipe or a device, of this name or where the link of this name leads."""
    in_public = bool(path.parent.stat().st_mode & stat.S_IWOTH)
    if in_public and not is_trusted(path.lstat()):
        raise ConfigurationError(f"another user has put {path} there, where everybody may write; name another file")
    if path.is_symlink() and (path.is_file() or not path.exists()):
        raise ConfigurationError(
            f"{path} is a link to {os.path.realpath(path)}; name that file itself, or - for the standard output"
        )
    if path.is_socket():
        raise ConfigurationError(f"{path} is a socket; name a file, or - for the standard output")
    descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigurationError(f"{path} was put there meanwhile; start again")
        yield file


def check_replaces_no_store(path: Path, exported: Target) -> None:
    """``ConfigurationError`` if ``path`` is a part of ``exported``, of any store in files or of an SQLite database."""
    reason = _is_a_store(path, exported) if path.name else None  # a directory is refused where files are opened
    if reason is not None:
        raise ConfigurationError(f"{path} {reason}, which the archive would replace; name another file")


def _is_a_store(path: Path, exported: Target) -> str | None:
    own = path_of(exported)
    if own is not None and exported.row.medium is Medium.DIRECTORY and _real(path).is_relative_to(_real(own)):
        return "is inside the directory of the store"
    if own is not None and any(_are_the_same(path, Path(f"{own}{end}")) for end in _BESIDE):
        return "is the database of the store"
    if _is_of_a_file_store(path):
        return "belongs to a store in files"
    return "is a part of an SQLite database" if _is_of_a_database(path) else None


def _are_the_same(one: Path, other: Path) -> bool:
    if _real(one) == _real(other):
        return True
    return one.exists() and other.exists() and one.samefile(other)


def _real(path: Path | str) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve() fails where links lead in a circle


def _is_of_a_file_store(path: Path) -> bool:
    """Whether it is one of the locks or, beside them, what only the store writes."""
    path = _real(path)
    has_such_a_name = path.suffix == ".json" or path.name in (LIST_FILE, TOMBSTONES_FILE)
    return path.parent.name == LOCKS or (has_such_a_name and (path.parent / LOCKS).is_dir())


def _is_of_a_database(path: Path) -> bool:
    path = _real(path)
    databases = (path.with_name(path.name.removesuffix(end)) for end in _BESIDE if path.name.endswith(end))
    return _start_of(path).startswith(_WAL) or any(_start_of(each) == _SQLITE for each in databases)


def _start_of(path: Path) -> bytes:
    if not path.is_file():  # a pipe waits for a writer
        return b""
    with path.open("rb") as file:
        return file.read(len(_SQLITE))

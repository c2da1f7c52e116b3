"""An archive does not replace a store: neither the one that is exported nor another database."""

from __future__ import annotations

import os
from pathlib import Path

from firefly_memory.errors import ConfigurationError
from firefly_memory.settings import naming
from firefly_memory.store_urls import Kind, directory_in
from firefly_memory.target import Target

_SQLITE = b"SQLite format 3\0"
_BESIDE = ("", "-wal", "-shm", "-journal")


def partial_of(path: Path) -> Path:
    """Where a file is written until it is whole."""
    return path.with_name(f"{path.name}.partial")


def check_replaces_no_store(path: Path, exported: Target) -> None:
    """``ConfigurationError`` if ``path``, or its partial file, is a part of ``exported`` or an SQLite database."""
    if not path.name:
        return  # a directory, which is refused where files are opened
    for each in (path, partial_of(path)):
        reason = _is_a_store(each, exported)
        if reason is not None:
            raise ConfigurationError(f"{each} {reason}, which the archive would replace; name another file")


def _is_a_store(path: Path, exported: Target) -> str | None:
    if exported.kind is Kind.FILE and _real(path).is_relative_to(_real(directory_in(exported.url))):
        return "is inside the directory of the store"
    if exported.kind is Kind.SQLITE and any(_are_the_same(path, own) for own in _files_of(exported)):
        return "is the database of the store"
    return "is an SQLite database" if _has_a_database(path) else None


def _files_of(exported: Target) -> list[Path]:
    from firefly_memory.stores.sql.sqlite.database import IN_MEMORY, sqlite_path

    with naming(exported.variable):
        name = sqlite_path(exported.url)
    return [] if name == IN_MEMORY else [Path(f"{name}{end}") for end in _BESIDE]


def _are_the_same(one: Path, other: Path) -> bool:
    if _real(one) == _real(other):
        return True
    return one.exists() and other.exists() and one.samefile(other)


def _real(path: Path | str) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve() fails where links lead in a circle


def _has_a_database(path: Path) -> bool:
    if not path.is_file():  # a pipe waits for a writer
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE

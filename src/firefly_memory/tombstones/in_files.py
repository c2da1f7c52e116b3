"""The tombstones of a directory of files: JSON Lines, which are replaced as a whole when one is added or removed.

The first line names the format, and has the key and a random ``generation``. Each line after it is a tombstone, with
the tombstone of its person. After a crash, the file has the old lines or the new.

Whoever writes holds the lock of what is written, looks here, and only then writes. Whoever adds a tombstone waits after
that until each lock was free once. So a write is before the tombstone, and can be found, or after it, and is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, Protocol, runtime_checkable
from urllib.parse import unquote

from pydantic_core import from_json, to_json

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.concurrency.cancellation import stop_if_given_up
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.databases.files.file_system import write_durably
from firefly_memory.databases.text_forms import forms_of
from firefly_memory.errors import ErasedError, SchemaMismatchError
from firefly_memory.facets import FacetLogs
from firefly_memory.tombstones.log import Identity, owner_identity, tombstone

NAME = "tombstones.jsonl"
FORMAT = "firefly-memory-tombstones/1"


class _Tombstones(NamedTuple):
    """What the file has."""

    first: bytes
    """The first line, which is another one in each generation."""
    key: str
    owner_of: Mapping[str, str]


_NONE = _Tombstones(b"", "", {})


class Directory(Protocol):
    """The store's directory, as far as tombstones need it."""

    directory: Path
    tombstones: FileTombstones

    @property
    def file_mode(self) -> int: ...

    def alone(self, namespace: str) -> AbstractContextManager[None]:
        """A lock against all other writers of ``namespace``."""

    def working(self, operation: str) -> AbstractContextManager[None]:
        """Turns errors of the system into errors of the library, and refuses calls of a closed store."""

    def wait_for_writers(self) -> None:
        """Wait until each write that is under way has ended."""

    def remove_unfinished(self) -> None:
        """Delete what writes that broke off have left."""


class FileTombstones:
    """The file, for whoever writes in its directory."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._path = directory.directory / NAME
        self._lock = ForkSafeLock()
        self._read_last = _NONE

    def check(self, operation: str, identities: Iterable[Identity]) -> None:
        """``ErasedError`` if one of these is refused."""
        if self.are_there(identities):
            raise ErasedError(operation)

    def are_there(self, identities: Iterable[Identity]) -> bool:
        there = self._read()
        return bool(there.owner_of) and any(tombstone(there.key, each) in there.owner_of for each in identities)

    def add(self, identities: Iterable[Identity], owner: str) -> None:
        with self._directory.alone(NAME):
            there = self._read()
            key = there.key or token_hex(32)
            of = tombstone(key, owner_identity(owner))
            added = {tombstone(key, each): of for each in identities}
            if not added.keys() <= there.owner_of.keys():
                self._replace(key, {**added, **there.owner_of})
        self._directory.wait_for_writers()

    def remove(self, owner: str) -> int:
        with self._directory.alone(NAME):
            there = self._read()
            of = tombstone(there.key, owner_identity(owner))
            left = {each: whose for each, whose in there.owner_of.items() if whose != of}
            if len(left) < len(there.owner_of):
                self._replace(there.key, left)
            return len(there.owner_of) - len(left)

    def _read(self) -> _Tombstones:
        """The file as it is now; of a generation that was read before, only the first line is read again."""
        with self._lock:
            try:
                with self._path.open("rb") as file:
                    first = file.readline()
                    if not first or first != self._read_last.first:
                        self._read_last = self._parsed(first, file.read())
            except FileNotFoundError:
                self._read_last = _NONE
            return self._read_last

    def _parsed(self, first: bytes, lines: bytes) -> _Tombstones:
        try:
            head = from_json(first)
            form, key = head["format"], _text(head["key"])
            if form != FORMAT:
                raise SchemaMismatchError(
                    "load", f"{form} in {self._path}", FORMAT, "pip install --upgrade firefly-memory"
                )
            parsed = [from_json(line) for line in lines.splitlines()]
            return _Tombstones(first, key, {_text(each["tombstone"]): _text(each["owner"]) for each in parsed})
        except DAMAGE as exc:
            raise damaged("load", f"file {self._path}", exc) from exc

    def _replace(self, key: str, owner_of: Mapping[str, str]) -> None:
        stop_if_given_up()
        first = {"format": FORMAT, "generation": token_hex(8), "key": key}
        lines = ({"tombstone": each, "owner": owner} for each, owner in owner_of.items())
        data = b"".join(to_json(line) + b"\n" for line in (first, *lines))
        write_durably(self._path, data, self._directory.file_mode)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{type(value).__name__} in place of a text that is not empty")
    return value


@runtime_checkable
class Scrubbed(Protocol):
    """The operations of a facet that leave something of deleted rows in their files."""

    async def scrub(self) -> None: ...


class Entries(Protocol):
    """The store, as far as tombstones need it."""

    log: FacetLogs


class FileTombstoneLog:
    """A :class:`~firefly_memory.tombstones.log.TombstoneLog` in a directory of files."""

    def __init__(self, entries: Entries, directory: Directory) -> None:
        self._logs = entries.log
        self._directory = directory

    async def add(self, identities: Sequence[Identity], owner: str, now: datetime) -> None:
        with self._directory.working("erase"):
            self._directory.tombstones.add(identities, owner)

    async def are_there(self, identities: Sequence[Identity]) -> bool:
        with self._directory.working("erase"):
            return self._directory.tombstones.are_there(identities)

    async def remove(self, owner: str) -> int:
        with self._directory.working("readmit"):
            return self._directory.tombstones.remove(owner)

    async def find_text(self, text: str) -> Sequence[tuple[str, int]]:
        """Every file below the directory, whoever wrote it, that has the text in it or in its name."""
        forms = forms_of(text)
        with self._directory.working("find_text"):
            directory = self._directory.directory
            return [(str(path.relative_to(directory)), 1) for path in _files(directory) if _has(path, forms)]

    async def scrub(self) -> None:
        """Delete what interrupted writes have left, and the lines that other facets keep of what was deleted."""
        for log in list(self._logs.made()):
            if log is not self and isinstance(log, Scrubbed):
                await log.scrub()
        with self._directory.working("erase"):
            self._directory.remove_unfinished()


def _files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        yield from (Path(folder) / name for name in sorted(names))


def _has(path: Path, forms: Iterable[str]) -> bool:
    contents = b""
    with suppress(FileNotFoundError):  # deleted since
        contents = path.read_bytes()
    name = unquote(path.name)
    return any(form.encode("utf-8", "surrogatepass") in contents or form in name for form in forms)

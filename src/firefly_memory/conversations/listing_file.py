"""The list of a file store's conversations: JSON Lines that only grow, so that a new conversation costs one line.

The first line names the format and has a random ``generation``. Each line after it says that a conversation was made
(``{"conversation": id, "created_at": instant}``, with its ``owner`` if it has one) or deleted (``{"deleted": id}``).
What was deleted is left behind when most lines are about it: then the file is replaced by one of another generation. A
line without a line feed was not finished by somebody who died: readers leave it, and the next writer cuts it off.

Each process remembers what it has read, and reads only what was added since.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from secrets import token_hex
from types import NoneType
from typing import Any, BinaryIO, Protocol

from pydantic_core import from_json, to_json

from firefly_memory.clock import instant_of
from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.concurrency.cancellation import stop_if_given_up
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.conversations.listing import CREATE, NAMESPACE_OF_LIST, Listed
from firefly_memory.conversations.log import identities_of
from firefly_memory.databases.files.file_system import followed, write_durably
from firefly_memory.entries.ordered_records import OrderedRecords
from firefly_memory.errors import CorruptDataError, InvalidEntryError, SchemaMismatchError
from firefly_memory.identifiers import original_name, stored_name
from firefly_memory.tombstones.in_files import FileTombstones

NAME = "conversations.jsonl"
FORMAT = "firefly-memory-conversations/1"

_FEW = 100  # lines of deleted conversations that may always stay


class Directory(Protocol):
    """The operations of the store's directory that the list needs."""

    directory: Path
    tombstones: FileTombstones

    @property
    def file_mode(self) -> int: ...

    def alone(self, namespace: str) -> AbstractContextManager[None]:
        """A lock against all other writers of ``namespace``."""

    def working(self, operation: str) -> AbstractContextManager[None]:
        """Turns errors of the system into errors of the library, and refuses calls of a closed store."""

    def path(self, namespace: str) -> Path: ...

    def read(self, namespace: str) -> OrderedRecords: ...

    def write(self, namespace: str, ordered: OrderedRecords) -> None: ...


class ConversationListFile:
    """A :class:`~firefly_memory.conversations.listing.ConversationList` in one file."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._path = directory.directory / NAME
        self._lock = ForkSafeLock()
        self._forget()

    def _forget(self) -> None:
        self._first = b""  # line, which tells one generation from another
        self._last = b""  # line that was read: if it has changed, the file has been replaced
        self._listed: dict[str, Listed] = {}
        self._end = 0  # of the lines that were read
        self._lines = 0

    async def add(self, conversation_id: str, new: Listed, operation: str = CREATE) -> bool:
        with self._directory.working("create"), self._directory.alone(NAMESPACE_OF_LIST), self._lock:
            self._take_over()
            self._read_on()
            if conversation_id in self._listed:
                return False
            self._directory.tombstones.check(operation, identities_of(conversation_id, new.owner))
            self._append([_line(conversation_id, new)])
            return True

    async def remove(self, conversation_ids: Collection[str]) -> None:
        with self._directory.working("delete"), self._directory.alone(NAMESPACE_OF_LIST), self._lock:
            self._take_over()
            self._read_on()
            doomed = [each for each in conversation_ids if each in self._listed]
            gone = set(doomed)
            left = len(self._listed) - len(doomed)
            if self._lines + len(doomed) > 2 * left + _FEW:
                self._replace({each: made for each, made in self._listed.items() if each not in gone})
            elif doomed:
                self._append([{"deleted": each} for each in doomed])

    async def scrub(self) -> None:
        with self._directory.working("erase"), self._directory.alone(NAMESPACE_OF_LIST), self._lock:
            self._take_over()
            self._read_on()
            if self._lines > len(self._listed):
                self._replace(self._listed)

    async def all(self) -> Mapping[str, Listed]:
        with self._directory.working("load"), self._lock:
            earlier = self._read_both()
            return {**earlier, **self._listed}

    async def find(self, conversation_id: str) -> Listed | None:
        with self._directory.working("load"), self._lock:
            earlier = self._read_both()
            return self._listed.get(conversation_id, earlier.get(conversation_id))

    def _read_both(self) -> Mapping[str, Listed]:
        """The list as an earlier version kept it: as entries, perhaps left by an interrupted conversion. It is read
        first, because a conversion writes the lines before it deletes the entries."""
        earlier = self._earlier()
        self._read_on()
        return earlier

    def _earlier(self) -> Mapping[str, Listed]:
        earlier = self._directory.read(NAMESPACE_OF_LIST)
        try:
            return {_checked(record.key or ""): Listed(record.created_at, None) for record in earlier}
        except InvalidEntryError as exc:
            raise CorruptDataError("load", f"file {self._directory.path(NAMESPACE_OF_LIST)}", str(exc)) from exc

    def _take_over(self) -> None:
        """Convert the entries of an earlier version to lines, once."""
        earlier = self._earlier()
        if earlier:
            self._read_on()
            self._replace({**earlier, **self._listed}, like=self._directory.path(NAMESPACE_OF_LIST))
            self._directory.write(NAMESPACE_OF_LIST, OrderedRecords())

    def _read_on(self) -> None:
        try:
            with self._path.open("rb") as file:
                self._read_lines(file)
        except FileNotFoundError:
            self._forget()

    def _read_lines(self, file: BinaryIO) -> None:
        first = file.readline()
        file.seek(max(self._end - len(self._last), 0))
        if not first or first != self._first or file.read(len(self._last)) != self._last:
            self._forget()
            self._check_format(first)
            self._first, self._last, self._end = first, first, len(first)
        file.seek(self._end)
        finished = file.read().rpartition(b"\n")[0]
        for number, line in enumerate(finished.split(b"\n") if finished else (), self._lines + 2):
            self._take(line, number)
        if finished:
            self._end += len(finished) + 1
            self._last = finished.rpartition(b"\n")[2] + b"\n"

    def _take(self, line: bytes, number: int) -> None:
        try:
            said = from_json(line)
            if "deleted" in said:
                self._listed.pop(said["deleted"], None)
            else:
                new = Listed(instant_of(said["created_at"]), _checked_owner(said.get("owner")))
                self._listed.setdefault(_checked(said["conversation"]), new)
        except DAMAGE as exc:
            self._forget()
            where = f"line {number} of file {self._path}"
            raise damaged("load", where, exc) from exc
        self._lines += 1

    def _check_format(self, first: bytes) -> None:
        try:
            form = from_json(first)["format"]
        except (KeyError, TypeError, ValueError) as exc:
            raise damaged("load", f"line 1 of file {self._path}", exc) from exc
        if form != FORMAT:
            newer = "pip install --upgrade firefly-memory"
            raise SchemaMismatchError("load", f"{form} in {self._path}", FORMAT, newer)

    def _append(self, lines: Iterable[Mapping[str, str]]) -> None:
        """Write lines after the last finished line, and flush them to the disk."""
        stop_if_given_up()
        if not self._first:
            self._replace({})
        data = _as_lines(lines)
        with followed(self._path).open("r+b", buffering=0) as file:
            file.truncate(self._end)
            try:
                file.seek(self._end)
                written = 0
                while written < len(data):
                    written += file.write(data[written:])
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(self._end)
                raise
        self._read_on()

    def _replace(self, conversations: Mapping[str, Listed], like: Path | None = None) -> None:
        """Write the file anew with only these conversations. A new file gets the rights of the file ``like``."""
        stop_if_given_up()
        first = {"format": FORMAT, "generation": token_hex(8)}
        lines = (_line(*conversation) for conversation in conversations.items())
        write_durably(self._path, _as_lines([first, *lines]), self._directory.file_mode, like)
        self._read_on()


def _checked(conversation_id: str) -> str:
    """:class:`InvalidEntryError` for what is the stored form of no id."""
    if stored_name("conversation", original_name(conversation_id)) != conversation_id:
        raise InvalidEntryError("conversation", "is not written as a store writes it")
    return conversation_id


def _checked_owner(owner: Any) -> str | None:
    if not isinstance(owner, (str, NoneType)):
        raise TypeError(f"the owner is {type(owner).__name__}, not text")
    return owner


def _line(conversation_id: str, conversation: Listed) -> dict[str, str]:
    line = {"conversation": conversation_id, "created_at": conversation.created_at.isoformat()}
    return line if conversation.owner is None else {**line, "owner": conversation.owner}


def _as_lines(lines: Iterable[Mapping[str, str]]) -> bytes:
    return b"".join(to_json(line) + b"\n" for line in lines)

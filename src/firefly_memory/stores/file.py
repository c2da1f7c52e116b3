"""``FileStore``: one human-readable JSON file per namespace.

A file of entries is never changed in place: the new text is written beside it, flushed to disk and renamed over it, so
that a crash, a full disk or a cancelled task leaves the old file or the new one. Only the list of conversations grows.
Writers of all threads and processes take a lock first; readers need none.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from pydantic_core import from_json, to_json

from firefly_memory.clock import instant_of
from firefly_memory.codec import DAMAGE, DOCUMENT, Form, damaged
from firefly_memory.concurrency.cancellation import stop_if_given_up
from firefly_memory.databases.files.file_system import (
    exclusive_lock,
    make_directory,
    remove_durably,
    translated,
    write_durably,
)
from firefly_memory.entries.fact_ids import id_of_today, id_out_of_the_way, mark_of
from firefly_memory.entries.ordered_records import OrderedRecords
from firefly_memory.entries.record import Position, Record, as_it_is
from firefly_memory.entries.scopes import FACTS_OF_CONVERSATIONS, identities_of_namespace
from firefly_memory.entries.store_operations import RecordView
from firefly_memory.entries.threaded_view import threaded
from firefly_memory.errors import (
    ConfigurationError,
    CorruptDataError,
    DatabaseStoreError,
    SchemaMismatchError,
    StoreClosedError,
)
from firefly_memory.facets import FacetLogs, Purged
from firefly_memory.identifiers import CONVERSATIONS, original_name, original_or_none, stored_text
from firefly_memory.likely_names import answers_guesses
from firefly_memory.protocols import Capability
from firefly_memory.reprs import even_half_built, shown
from firefly_memory.stores.base import EntryStore
from firefly_memory.tombstones.guard import UNGUARDED, Guard
from firefly_memory.tombstones.in_files import FileTombstones
from firefly_memory.validation import ONLY_MINE, FileModes, file_modes, seconds

T = TypeVar("T")

FORMAT = "firefly-memory/1"

LOCKS = ".locks"  # the directory of the locks, inside that of the store

_LOCKS = 64  # lock files; namespaces share them by hash, so that they need not be deleted, which cannot be done safely
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")  # no capitals: some file systems fold case
_LONGEST_NAME = 200  # most file systems allow 255 bytes


class FileStore(EntryStore):
    """Entries in JSON files below ``base_dir``, which is created when it is first written to.

    A relative path counts from where the process is when the store is made. Every write rewrites the file of its
    namespace: this is for small amounts that people want to read or edit. ``timeout`` is how long a writer waits for
    another one, in seconds. ``file_mode`` and ``directory_mode`` are the rights on what is made, whatever the umask.
    """

    path: Path

    @answers_guesses
    def __init__(
        self,
        base_dir: str | os.PathLike[str] = ".firefly_memory",
        *,
        timeout: float = 30.0,
        file_mode: int = ONLY_MINE.file,
        directory_mode: int = ONLY_MINE.directory,
    ) -> None:
        given = os.fspath(base_dir) if isinstance(base_dir, (str, os.PathLike)) else None
        if not isinstance(given, str) or not given or "\0" in given:
            raise ConfigurationError(
                f"base_dir must name a directory, not {shown(base_dir)}; use '.' for the current one"
            )
        self._shown = given
        self.path = Path(given).absolute()
        files = _Files(self.path, seconds("timeout", timeout), file_modes(file_mode, directory_mode))
        view = RecordView(_FileBackend(files))
        super().__init__(view, threaded(view))

    @even_half_built
    def __repr__(self) -> str:
        return f"FileStore({self._shown!r})"


class _Files:
    """The directory: which file is whose, and how one is read and replaced."""

    def __init__(self, directory: Path, timeout: float, modes: FileModes) -> None:
        self.directory = directory
        self.timeout = timeout
        self.modes = modes
        self.closed = False
        self.tombstones = FileTombstones(self)

    @property
    def file_mode(self) -> int:
        return self.modes.file

    @contextmanager
    def working(self, operation: str) -> Iterator[None]:
        """Inside the block, errors of the system are ours, and say what was done."""
        if self.closed:
            raise StoreClosedError(operation)
        try:
            with translated(operation, self.directory):
                yield
        except DatabaseStoreError as exc:
            exc.operation = operation  # whoever reads a file does not know what for
            raise

    def path(self, namespace: str) -> Path:
        name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in namespace.encode())
        if name.startswith("."):
            name = "%2e" + name[1:]
        if len(name) > _LONGEST_NAME:
            digest = hashlib.sha256(namespace.encode()).hexdigest()
            name = f"{name[: _LONGEST_NAME - 65]}~{digest}"
        return self.directory / f"{name}.json"

    def paths(self) -> list[Path]:
        """Every file there is."""
        try:
            return [Path(entry) for entry in os.scandir(self.directory) if entry.name.endswith(".json")]
        except FileNotFoundError:
            return []

    def namespace_of(self, path: Path) -> str:
        """Whose file it is; ``FileNotFoundError`` if it is gone and its name, having been cut short, does not say."""
        return self._document(path)[0] if "~" in path.name else unquote(path.stem)

    def namespaces(self, prefix: str = "") -> list[str]:
        """Every namespace with ``prefix``, a short one, that has a file, in order; other files are not read."""
        found: list[str] = []
        start = self.path(prefix).stem if prefix else ""
        for path in self.paths():
            if not path.name.startswith(start):
                continue
            with suppress(FileNotFoundError):
                found.append(self.namespace_of(path))
        return sorted(found)

    def read(self, namespace: str) -> OrderedRecords:
        path = self.path(namespace)
        try:
            _, items = self._document(path)
        except FileNotFoundError:
            return OrderedRecords()
        with _reading(path):
            return OrderedRecords(_with_ids_of_today([_record(namespace, item) for item in items]))

    def write(self, namespace: str, ordered: OrderedRecords) -> None:
        stop_if_given_up()
        path = self.path(namespace)
        if len(ordered) == 0:
            remove_durably(path)
            return
        document = {"format": FORMAT, "namespace": namespace, "entries": [_listed(record) for record in ordered]}
        write_durably(path, to_json(document, indent=2) + b"\n", self.modes.file)

    @contextmanager
    def alone(self, namespace: str) -> Iterator[None]:
        """Inside the block nobody else writes what belongs to ``namespace``."""
        with self._locked(self._locks()[zlib.crc32(namespace.encode()) % _LOCKS]):
            yield

    def wait_for_writers(self) -> None:
        """Wait until whoever holds a lock now has let it go."""
        for path in self._locks():
            if path.exists():
                with self._locked(path):
                    pass

    def remove_unfinished(self) -> None:
        """Delete what writes that broke off have left beside the files, while nobody writes."""
        if not any(self.directory.glob("*.tmp")):
            return
        with ExitStack() as locks:
            for path in self._locks():  # nobody who has one of them waits for another
                locks.enter_context(self._locked(path))
            for left in self.directory.glob("*.tmp"):
                remove_durably(left)

    def _locks(self) -> list[Path]:
        return [self.directory / LOCKS / f"{bucket:02}.lock" for bucket in range(_LOCKS)]

    def _locked(self, path: Path) -> AbstractContextManager[None]:
        return exclusive_lock(path, self.timeout, self.modes)

    def edit(self, namespace: str, change: Callable[[OrderedRecords], T]) -> T:
        """Let ``change`` work on the records of a namespace while nobody else does; all that it did, or nothing."""
        with self.alone(namespace):
            ordered = self.read(namespace)
            result = change(ordered)
            if ordered.changed:
                self.write(namespace, ordered)
            return result

    def _document(self, path: Path) -> tuple[str, list[Any]]:
        """The namespace and the items in a file."""
        text = path.read_bytes()
        with _reading(path):
            document = from_json(text, allow_inf_nan=False)
            form = document["format"]
            if form != FORMAT:
                raise SchemaMismatchError("load", f"{form} in {path}", FORMAT, "pip install --upgrade firefly-memory")
            owner, items = document["namespace"], document["entries"]
            if not isinstance(items, list):
                raise TypeError(f"its entries are no list, but {type(items).__name__}")
            if self.path(owner) != path:
                raise ValueError(f"it belongs to namespace {owner!r}")
        return owner, items


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Inside the block, whatever is not as it should be is damage to the file at ``path``."""
    try:
        yield
    except DAMAGE as exc:
        raise damaged("load", f"file {path}", exc) from exc


class _FileBackend:
    form: Form = DOCUMENT
    read_instant = staticmethod(as_it_is)
    capabilities = frozenset({Capability.ATOMIC_BATCHES, Capability.LISTING, Capability.DURABLE, Capability.SHARED})

    def __init__(self, files: _Files) -> None:
        self._files = files
        self.log = FacetLogs("in_files", lambda log: log(self, files))

    async def initialize(self, migrate: bool | None) -> None:
        with self._files.working("initialize"):
            if migrate is False:
                return  # nothing is made for who only looks: what is not there is empty
            make_directory(self._files.directory, self._files.modes.directory)

    async def close(self) -> None:
        self._files.closed = True

    async def save(self, record: Record, now: datetime) -> None:
        self._save("save", [record], now)

    async def save_if(self, record: Record, expected: Any, now: datetime) -> bool:
        guard = Guard("save_if", identities_of_namespace(record.namespace))
        return await self.edit(record.namespace, lambda ordered: ordered.put_if(record, expected, now), guard)

    async def save_many(self, records: list[Record], now: datetime) -> None:
        self._save("save_many", records, now)

    def _save(self, operation: str, records: list[Record], now: datetime) -> None:
        def put(ordered: OrderedRecords) -> None:
            self._check(ordered, guard)
            for record in records:
                ordered.put(record, now)

        guard = Guard(operation, identities_of_namespace(records[0].namespace))
        with self._files.working(operation):
            self._files.edit(records[0].namespace, put)

    async def edit(self, namespace: str, change: Callable[[OrderedRecords], T], guard: Guard = UNGUARDED) -> T:
        def guarded(ordered: OrderedRecords) -> T:
            self._check(ordered, guard)
            return change(ordered)

        with self._files.working("edit"):
            return self._files.edit(namespace, guarded)

    def _check(self, ordered: OrderedRecords, guard: Guard) -> None:
        """``ErasedError`` if the guard says so. Whoever calls it has the lock of the namespace."""
        if guard.applies(len(ordered)):
            self._files.tombstones.check(guard.operation, guard.identities)

    async def scan(self, namespace: str, limit: int | None, after: Position | None, now: datetime) -> list[Record]:
        with self._files.working("load"):
            return self._files.read(namespace).scan(limit, after, now)

    async def scan_several(self, namespaces: list[str], now: datetime) -> list[Record]:
        return [record for namespace in namespaces for record in await self.scan(namespace, None, None, now)]

    async def newest(self, namespace: str, key: str, now: datetime) -> Record | None:
        with self._files.working("load_by_key"):
            return self._files.read(namespace).newest(key, now)

    async def delete(self, namespace: str, entry_id: str, now: datetime) -> None:
        self._delete("delete", namespace, [entry_id], now)

    async def delete_many(self, namespace: str, entry_ids: list[str], now: datetime) -> int:
        return self._delete("delete_many", namespace, entry_ids, now)

    def _delete(self, operation: str, namespace: str, entry_ids: list[str], now: datetime) -> int:
        with self._files.working(operation):
            if not self._files.path(namespace).exists():
                return 0
            return len(self._files.edit(namespace, lambda ordered: ordered.delete(entry_ids, now)))

    async def clear(self, namespace: str) -> None:
        with self._files.working("clear"):
            if self._files.path(namespace).exists():
                self._files.edit(namespace, OrderedRecords.clear)

    async def namespaces_of_facts(self) -> list[str]:
        with self._files.working("clear_all"):
            return self._files.namespaces(FACTS_OF_CONVERSATIONS)

    async def count(self, namespace: str, now: datetime) -> int:
        with self._files.working("count"):
            return self._files.read(namespace).count(now)

    async def namespaces(self, prefix: str, limit: int, after: str, now: datetime) -> list[str]:
        with self._files.working("namespaces"):
            fitting = (name for name in self._files.namespaces() if name > after and name.startswith(prefix))
            live = (name for name in fitting if self._files.read(name).has_live(now))
            return list(islice(live, limit))

    async def purge(self, limit: int, now: datetime) -> Purged:
        deleted = 0
        damage: DatabaseStoreError | None = None
        with self._files.working("cleanup_expired"):
            for path in self._files.paths():
                try:
                    deleted += self._purge(self._files.namespace_of(path), limit - deleted, now)
                except FileNotFoundError:
                    continue
                except (CorruptDataError, SchemaMismatchError) as exc:
                    damage = exc  # the other files are cleaned all the same
                if deleted == limit:
                    return Purged(deleted, more=True)
            if damage is not None:
                raise damage
        return Purged(deleted, more=False)

    def _purge(self, namespace: str, limit: int, now: datetime) -> int:
        if not self._files.read(namespace).expired(1, now):
            return 0
        return self._files.edit(namespace, lambda ordered: ordered.purge(limit, now))


def _listed(record: Record) -> dict[str, Any]:
    """A record as an item of a file."""
    item = record._asdict()
    del item["namespace"]
    item["created_at"] = record.created_at.isoformat()
    item["expires_at"] = None if record.expires_at is None else record.expires_at.isoformat()
    return item


def _record(namespace: str, item: dict[str, Any]) -> Record:
    """The record that an item of a file stands for; ``TypeError`` for fields that are missing, unknown or no text."""
    record = Record(
        **item
        | {
            "namespace": namespace,
            "created_at": instant_of(item["created_at"]),
            "expires_at": None if item["expires_at"] is None else instant_of(item["expires_at"]),
        }
    )
    for name, value in (
        ("entry_id", record.entry_id),
        ("scope", record.scope),
        ("key", "" if record.key is None else record.key),
    ):
        if not isinstance(value, str):
            raise TypeError(f"{name} is {type(value).__name__}, not text")
    return record


def _with_ids_of_today(records: list[Record]) -> list[Record]:
    """The entries of a file that was last written before revision 0004, under their ids of today: the next write of
    the file keeps them."""
    if not records or records[0].namespace.startswith(CONVERSATIONS):
        return records
    namespace = original_name(records[0].namespace)
    taken = {record.entry_id for record in records}
    renamed = []
    for record in records:
        new = stored_text(id_of_today(namespace, original_or_none(record.key), original_name(record.entry_id)))
        if new != record.entry_id:
            while new in taken:
                new = id_out_of_the_way(record.entry_id, mark_of(new))
            taken.add(new)
        renamed.append(record if new == record.entry_id else record._replace(entry_id=new))
    return renamed

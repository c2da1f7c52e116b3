"""Rows into a store: nothing is replaced there, so that the same again changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby, islice
from typing import Any

from firefly_memory.codec import TEXT
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.entries.fact_ids import fact_id, id_of_today
from firefly_memory.entries.record import Record, as_token, to_record
from firefly_memory.entries.scopes import NAMESPACE
from firefly_memory.errors import ConflictError, InvalidEntryError
from firefly_memory.identifiers import namespace_out_of_the_way, stored_namespace
from firefly_memory.protocols import ABSENT
from firefly_memory.stores.base import EntryStore
from firefly_memory.transfer.importers.firefly_legacy.entries import RefusedError, Row, entry_of
from firefly_memory.transfer.importers.firefly_legacy.sources import Source

_BATCH = 200
_EXAMPLES = 5
_REASONS = 50

_DIFFERS = "the store has an entry of this entry_id that differs; it was left as it is"
_TAKEN = "its entry_id belongs to another entry of the store, which was left as it is"
_TWICE = "its entry_id is there twice in the same namespace, with different entries"
_OTHERS = "other reasons"


@dataclass(slots=True)
class Refusals:
    """How often there was one reason, and the first few places."""

    count: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Counts:
    """What became of the rows."""

    taken: int = 0
    there_already: int = 0
    expired: int = 0
    superseded: int = 0
    """Earlier values of facts, of which the last one was taken."""
    refused: int = 0
    reasons: dict[str, Refusals] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.taken + self.there_already + self.expired + self.superseded + self.refused

    def refuse(self, reason: str, namespace: Any, entry_id: Any) -> None:
        self.refused += 1
        known = reason in self.reasons or len(self.reasons) < _REASONS  # memory stays bounded
        refusals = self.reasons.setdefault(reason if known else _OTHERS, Refusals())
        refusals.count += 1
        if len(refusals.examples) < _EXAMPLES:
            refusals.examples.append({"namespace": _shown(namespace), "entry_id": _shown(entry_id)})

    def as_json(self) -> dict[str, Any]:
        reasons = [{"reason": reason, **asdict(refusals)} for reason, refusals in self.reasons.items()]
        return {
            name: getattr(self, name) for name in ("taken", "there_already", "expired", "superseded", "refused")
        } | {"reasons": reasons}


def import_rows(
    source: Source, store: EntryStore, *, dry_run: bool = False, progress: Callable[[Counts], None] | None = None
) -> Counts:
    """Save what is not in ``store`` yet, and say what became of each row. Entries that have expired are left behind.

    A broken-off import is started again. With ``dry_run`` nothing is saved; what is counted as taken would be.
    """
    counts = Counts()
    for namespace, of_one in groupby(source.rows, key=lambda row: row.namespace):
        rows = _prepared(namespace, of_one, counts, as_text=source.as_text)
        batches = _Batches(store, counts, unique_ids=source.unique_ids, dry_run=dry_run)
        while batch := list(islice(rows, _BATCH)):
            batches.take(batch, as_text=source.as_text)
            if progress is not None:
                progress(counts)
    return counts


def _prepared(namespace: Any, rows: Iterable[Row], counts: Counts, *, as_text: bool) -> Iterator[Row]:
    """The rows; of working memory's the newest of each key, under the id that the fact has here, or nobody could
    replace or delete it. A scope has few of them."""
    if not (isinstance(namespace, str) and namespace.startswith(NAMESPACE)):
        yield from rows
        return
    newest: dict[str, MemoryEntry] = {}
    for row in rows:
        try:
            entry = entry_of(row, as_text=as_text)
            if entry.key is None or entry.is_expired:
                yield row
                continue
            fact_id(namespace, entry.key)
        except (RefusedError, InvalidEntryError):
            yield row  # to be refused
            continue
        other = newest.get(entry.key)
        counts.superseded += other is not None
        if other is None or (entry.created_at, entry.entry_id) > (other.created_at, other.entry_id):
            newest[entry.key] = entry
    for key, entry in newest.items():
        entry.entry_id = fact_id(namespace, key)
        yield Row(namespace, entry.entry_id, entry)


class _Batches:
    """The rows of one namespace."""

    def __init__(self, store: EntryStore, counts: Counts, *, unique_ids: bool, dry_run: bool) -> None:
        self._store = store
        self._counts = counts
        self._dry_run = dry_run
        # With ids that may come again, only an entry saved by itself is sure to replace none.
        self._is_new = None if unique_ids else False
        """Whether everything in the namespace came with this import."""

    def take(self, rows: Sequence[Row], *, as_text: bool) -> None:
        records: dict[str, tuple[Record, MemoryEntry]] = {}
        for row in rows:
            try:
                entry = entry_of(row, as_text=as_text)
                entry.entry_id = id_of_today(row.namespace, entry.key, entry.entry_id)
                record = self._record(namespace_out_of_the_way(row.namespace), entry)
            except RefusedError as refused:
                self._counts.refuse(str(refused), row.namespace, row.entry_id)
                continue
            except InvalidEntryError as error:
                self._counts.refuse(_reason(error), row.namespace, row.entry_id)
                continue
            if entry.is_expired:
                self._counts.expired += 1
            elif record.entry_id not in records:
                records[record.entry_id] = record, entry
            elif records[record.entry_id][0] == record:
                self._counts.there_already += 1
            else:
                self._counts.refuse(_TWICE, row.namespace, row.entry_id)
        if records:
            self._take_valid(namespace_out_of_the_way(rows[0].namespace), records)

    def _record(self, namespace: str, entry: MemoryEntry) -> Record:
        """The entry as a store would keep it, or :class:`InvalidEntryError`; also what entries are compared by."""
        return to_record(TEXT, stored_namespace(namespace), entry)

    def _take_valid(self, namespace: str, records: dict[str, tuple[Record, MemoryEntry]]) -> None:
        if self._is_new is None:
            self._is_new = self._store.count(namespace) == 0
        if self._is_new and self._save_all(namespace, [entry for _, entry in records.values()]):
            return
        there = {} if self._is_new else self._there(namespace, [record for record, _ in records.values()])
        for record, entry in records.values():
            if record.entry_id not in there:
                self._save_one(namespace, record, entry)
            else:
                self._compare(namespace, record, there[record.entry_id], entry.entry_id)

    def _save_all(self, namespace: str, entries: list[MemoryEntry]) -> bool:
        """Whether they could be saved together: if not, one of them is to blame, and the others are not."""
        if not self._dry_run:
            try:
                self._store.save_many(namespace, entries)
            except (InvalidEntryError, ConflictError):
                return False
        self._counts.taken += len(entries)
        return True

    def _save_one(self, namespace: str, record: Record, entry: MemoryEntry) -> None:
        try:
            saved = self._dry_run or self._store.save_if(namespace, entry, ABSENT)
        except InvalidEntryError as error:
            self._counts.refuse(_reason(error), namespace, entry.entry_id)
            return
        if saved:
            self._counts.taken += 1
        elif found := self._there(namespace, [record]):  # a store without transactions keeps a part of a batch
            self._compare(namespace, record, found[record.entry_id], entry.entry_id)
        else:
            self._counts.refuse(_TAKEN, namespace, entry.entry_id)

    def _compare(self, namespace: str, record: Record, found: Record, entry_id: str) -> None:
        if found == record:
            self._counts.there_already += 1
        else:
            self._counts.refuse(_DIFFERS, namespace, entry_id)

    def _there(self, namespace: str, records: Sequence[Record]) -> dict[str, Record]:
        """Those that the store has, as it has them: read from their places in the order of the namespace."""
        wanted = {record.entry_id for record in records}
        last = max(record.created_at for record in records)
        found: dict[str, Record] = {}
        after: str | None = as_token(min(record.created_at for record in records), "")
        while after is not None:
            page = self._store.load_page(namespace, _BATCH, after)
            for entry in page:
                record = to_record(TEXT, stored_namespace(namespace), entry)
                if record.entry_id in wanted:
                    found[record.entry_id] = record
            after = page.next if page and page[-1].created_at <= last else None
        return found


def _reason(error: InvalidEntryError) -> str:
    """Without the place inside of a value, which differs from row to row."""
    return f"{error.path.partition('[')[0]} {error.problem}"


def _shown(name: Any) -> str | None:
    return name if name is None or isinstance(name, str) else repr(name)

"""Adds entries of another program to a store. It replaces nothing, so it can be repeated."""

from __future__ import annotations

from collections.abc import Sequence

from firefly_memory.codec import TEXT
from firefly_memory.cursors import as_token
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.entries.fact_ids import id_of_today
from firefly_memory.entries.record import Record, to_record
from firefly_memory.errors import ConflictError, InvalidEntryError
from firefly_memory.identifiers import namespace_out_of_the_way, stored_namespace
from firefly_memory.protocols import ABSENT
from firefly_memory.stores.base import EntryStore
from firefly_memory.transfer.importers.outcome import Outcome
from firefly_memory.transfer.importers.source import Found, Refused, Superseded

BATCH = 200

_DIFFERS = "the store has an entry of this entry_id that differs; it was left as it is"
_TAKEN = "its entry_id belongs to another entry of the store, which was left as it is"
_TWICE = "its entry_id is there twice in the same namespace, with different entries"


class EntryAdder:
    """Adds the entries of one namespace."""

    def __init__(self, store: EntryStore, outcome: Outcome, *, unique_ids: bool, dry_run: bool) -> None:
        self._store = store
        self._outcome = outcome
        self._dry_run = dry_run
        # If ids can repeat, only an entry that is saved alone certainly replaces no other one.
        self._is_new = None if unique_ids else False
        """Whether everything in the namespace came with this import."""

    def take(self, found: Sequence[Found]) -> None:
        """Add a batch of entries."""
        records: dict[str, tuple[Record, MemoryEntry]] = {}
        for each in found:
            match each.result:
                case Refused(reason):
                    self._outcome.refuse(reason, each.namespace, each.entry_id)
                case Superseded():
                    self._outcome.superseded += 1
                case entry:
                    self._take_entry(each.namespace, entry, records)
        if records:
            self._take_valid(namespace_out_of_the_way(found[0].namespace), records)

    def _take_entry(self, namespace: str, entry: MemoryEntry, records: dict[str, tuple[Record, MemoryEntry]]) -> None:
        given = entry.entry_id
        try:
            entry.entry_id = id_of_today(namespace, entry.key, given)
            record = self._record(namespace_out_of_the_way(namespace), entry)
        except InvalidEntryError as error:
            self._outcome.refuse(_reason(error), namespace, given)
            return
        if entry.is_expired:
            self._outcome.expired += 1
        elif record.entry_id not in records:
            records[record.entry_id] = record, entry
        elif records[record.entry_id][0] == record:
            self._outcome.there_already += 1
        else:
            self._outcome.refuse(_TWICE, namespace, given)

    def _record(self, namespace: str, entry: MemoryEntry) -> Record:
        """The entry as a store would keep it, for comparisons; :class:`InvalidEntryError` if no store could."""
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
        """Save the entries together. ``False`` if that fails: then one of them is the cause."""
        if not self._dry_run:
            try:
                self._store.save_many(namespace, entries)
            except (InvalidEntryError, ConflictError):
                return False
        self._outcome.taken += len(entries)
        return True

    def _save_one(self, namespace: str, record: Record, entry: MemoryEntry) -> None:
        try:
            saved = self._dry_run or self._store.save_if(namespace, entry, ABSENT)
        except InvalidEntryError as error:
            self._outcome.refuse(_reason(error), namespace, entry.entry_id)
            return
        if saved:
            self._outcome.taken += 1
        elif found := self._there(namespace, [record]):  # a store without transactions keeps a part of a batch
            self._compare(namespace, record, found[record.entry_id], entry.entry_id)
        else:
            self._outcome.refuse(_TAKEN, namespace, entry.entry_id)

    def _compare(self, namespace: str, record: Record, found: Record, entry_id: str) -> None:
        if found == record:
            self._outcome.there_already += 1
        else:
            self._outcome.refuse(_DIFFERS, namespace, entry_id)

    def _there(self, namespace: str, records: Sequence[Record]) -> dict[str, Record]:
        """The entries that the store already has, read by their positions in the order of the namespace."""
        wanted = {record.entry_id for record in records}
        last = max(record.created_at for record in records)
        found: dict[str, Record] = {}
        after: str | None = as_token(min(record.created_at for record in records), "")
        while after is not None:
            page = self._store.load_page(namespace, BATCH, after)
            for entry in page:
                record = to_record(TEXT, stored_namespace(namespace), entry)
                if record.entry_id in wanted:
                    found[record.entry_id] = record
            after = page.next if page and page[-1].created_at <= last else None
        return found


def _reason(error: InvalidEntryError) -> str:
    """The reason without the path inside a value, which differs from row to row."""
    return f"{error.path.partition('[')[0]} {error.problem}"

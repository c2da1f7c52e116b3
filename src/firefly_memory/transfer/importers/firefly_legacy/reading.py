"""The rows of a predecessor as entries of this library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.entries.fact_ids import fact_id
from firefly_memory.entries.scopes import NAMESPACE
from firefly_memory.errors import InvalidEntryError
from firefly_memory.transfer.importers.firefly_legacy.entries import RefusedError, Row, entry_of
from firefly_memory.transfer.importers.source import Found, Refused, Superseded


def read_rows(rows: Iterable[Row], *, as_text: bool) -> Iterator[Found]:
    """Each row; ``as_text`` is what :func:`entry_of` needs to know of them."""
    for namespace, of_one in groupby(rows, key=lambda row: row.namespace):
        found = (_found(row, as_text=as_text) for row in of_one)
        is_working_memory = isinstance(namespace, str) and namespace.startswith(NAMESPACE)
        yield from _newest_facts(namespace, found) if is_working_memory else found


def _found(row: Row, *, as_text: bool) -> Found:
    try:
        return Found(row.namespace, row.entry_id, entry_of(row, as_text=as_text))
    except RefusedError as refused:
        return Found(row.namespace, row.entry_id, Refused(str(refused)))


def _newest_facts(namespace: str, rows: Iterable[Found]) -> Iterator[Found]:
    """Of working memory's rows the newest of each key, under the id that the fact has here: otherwise nobody could
    replace or delete it. A scope has few of them."""
    newest: dict[str, MemoryEntry] = {}
    for found in rows:
        entry = found.result
        if not isinstance(entry, MemoryEntry) or entry.key is None or not _is_live_fact(namespace, entry.key, entry):
            yield found
            continue
        other = newest.get(entry.key)
        if other is not None:
            yield Found(namespace, found.entry_id, Superseded())
        if other is None or (entry.created_at, entry.entry_id) > (other.created_at, other.entry_id):
            newest[entry.key] = entry
    for key, entry in newest.items():
        entry.entry_id = fact_id(namespace, key)
        yield Found(namespace, entry.entry_id, entry)


def _is_live_fact(namespace: str, key: str, entry: MemoryEntry) -> bool:
    """If it cannot have the id of a fact, it is refused like any entry with such names."""
    try:
        fact_id(namespace, key)
    except InvalidEntryError:
        return False
    return not entry.is_expired

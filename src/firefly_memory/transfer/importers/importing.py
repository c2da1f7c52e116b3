"""Imports what another program wrote."""

from __future__ import annotations

from itertools import groupby, islice

from firefly_memory.stores.base import EntryStore
from firefly_memory.transfer.counts import Progress, report
from firefly_memory.transfer.importers.adding import BATCH, EntryAdder
from firefly_memory.transfer.importers.outcome import Outcome
from firefly_memory.transfer.importers.source import ForeignSource


def import_entries(
    source: ForeignSource, store: EntryStore, *, dry_run: bool = False, progress: Progress | None = None
) -> Outcome:
    """Save the entries that ``store`` does not have yet, and return the outcome. Expired entries are not imported.

    A broken-off import is started again. With ``dry_run`` nothing is saved; what is counted as taken would be.
    """
    outcome = Outcome()
    for _, of_one in groupby(source.read(), key=lambda found: found.namespace):
        adder = EntryAdder(store, outcome, unique_ids=source.unique_ids, dry_run=dry_run)
        while batch := list(islice(of_one, BATCH)):
            adder.take(batch)
            report(progress, "imported", outcome)
    return outcome

"""What ``firefly-memory db import-legacy`` does: what the predecessors wrote, into a store of this library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firefly_memory.cli.exits import Exit
from firefly_memory.cli.invocation import current
from firefly_memory.cli.output import show
from firefly_memory.cli.progress import progress_bar
from firefly_memory.cli.target import Where
from firefly_memory.settings import read_url_file
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.memory import InMemoryStore
from firefly_memory.target import reading, store_of
from firefly_memory.transfer.importers.firefly_legacy.sources import IMPORTER, has_been_here
from firefly_memory.transfer.importers.firefly_legacy.sources import Where as OldPlace
from firefly_memory.transfer.importers.importing import import_entries
from firefly_memory.transfer.importers.outcome import Outcome


def run(
    where: Where,
    old: str | None,
    from_file: Path | None,
    *,
    table: str | None,
    database: str | None,
    collection: str | None,
    dry_run: bool,
    quiet: bool,
) -> Exit:
    url = old if from_file is None else read_url_file(from_file)
    assert url is not None
    with (
        IMPORTER(url, OldPlace(table, database, collection), timeout=where.timeout) as source,
        _new_store(where, dry_run=dry_run) as store,
        progress_bar("imported", quiet=quiet or current().json, total=lambda _: source.estimate()) as progress,
    ):
        outcome = import_entries(source, store, dry_run=dry_run, progress=progress)
    result = {"from": source.name, "dry_run": dry_run, **outcome.as_json()}
    show(result, _in_words(source.name, outcome, dry_run=dry_run))
    return Exit.DRIFT if outcome.refused else Exit.DONE


@contextmanager
def _new_store(where: Where, *, dry_run: bool) -> Iterator[EntryStore]:
    """The store to save into; for a dry run an empty one, where there is none yet."""
    new, timeout = where.target(), where.timeout
    store = store_of(new, timeout=timeout)
    is_there = (store.path is None or store.path.exists()) and has_been_here(new, timeout=timeout)
    dry = reading(new, timeout=timeout) if is_there else InMemoryStore()
    with dry if dry_run else store as opened:
        yield opened


def _in_words(name: str, outcome: Outcome, *, dry_run: bool) -> Iterator[str]:
    yield (
        f"{name}: {outcome.taken} {'would be taken' if dry_run else 'taken'}, {outcome.there_already} there already, "
        f"{outcome.expired} expired, {outcome.superseded} superseded, {outcome.refused} refused"
    )
    if outcome.taken == outcome.refused == 0:
        yield "nothing to do"
    for reason, refusals in outcome.reasons.items():
        yield f"refused {refusals.count}: {reason}"
        for each in refusals.examples:
            yield f"  {each['entry_id']!r} in {each['namespace']!r}"

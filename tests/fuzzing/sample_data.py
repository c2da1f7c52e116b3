"""A store with a little of everything that stores keep."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from firefly_memory import EntryStore
from firefly_memory.testing import stopped
from tests.support.facet_samples import archived, is_in, sample_of

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

WHOSE_ROWS_ARE_BENT = ("entries", "conversations", "agent_history")


def fill(store: EntryStore, facets: Collection[str] = WHOSE_ROWS_ARE_BENT) -> None:
    """The same in every process, so that a seed has the same examples."""
    with stopped(MOMENT):
        for facet in archived():
            if facet.name in facets and is_in(store.blocking, facet):
                sample_of(facet.name, "store_archived")(store)

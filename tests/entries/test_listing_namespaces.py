"""R11: namespaces are listed by few queries that read few rows, whatever is in the namespaces and is written meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import create_engine, event

from firefly_memory import EntryStore, MemoryEntry, PostgreSQLStore, SQLiteStore
from tests.support.backends import Place

SIZES = {f"size/{size:04}": size for size in (1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 127, 128, 129, 1_000, 1_001)}
SMALL = {f"small/{number:04}": 1 for number in range(1_000)}
LARGE = {f"very large/{number}": 1_000 for number in range(5)}
NAMES = sorted(SIZES | SMALL | LARGE)


class Listing:
    """A store that holds all of these namespaces, and the rows that each of its queries asked for."""

    def __init__(self, store: EntryStore, engine: Any) -> None:
        self.store = store
        self.rows: list[int] = []
        event.listen(engine, "before_cursor_execute", self._note)

    def _note(self, _connection: Any, _cursor: Any, sql: str, parameters: Any, *_: Any) -> None:
        if "LIMIT" in sql:
            self.rows.append(parameters["rows"] if isinstance(parameters, dict) else parameters[-2])  # LIMIT and OFFSET


@pytest.fixture(params=["sqlite", "postgresql"])
def listing(request: pytest.FixtureRequest, place: Place) -> Iterator[Listing]:
    on_sqlite = request.param == "sqlite"
    engine = create_engine(f"sqlite:///{place.directory / 'listing.db'}" if on_sqlite else place.with_driver("psycopg"))
    store: EntryStore = (
        SQLiteStore(engine=engine) if on_sqlite else PostgreSQLStore(engine=engine, schema_name="listing")
    )
    for namespace, size in (SIZES | SMALL | LARGE).items():
        store.save_many(namespace, [MemoryEntry() for _ in range(size)])
    yield Listing(store, engine)
    store.close_sync()
    if not on_sqlite:
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA listing CASCADE")
    engine.dispose()


def test_every_namespace_is_listed_once_and_in_order(listing: Listing) -> None:
    store = listing.store
    assert store.namespaces(limit=10_000) == NAMES
    assert store.namespaces("size/", limit=10_000) == sorted(SIZES)
    assert store.namespaces("size/", limit=3, after="size/0005") == ["size/0007", "size/0008", "size/0009"]
    assert store.namespaces("nothing", limit=5) == []
    found: list[str] = []
    while page := store.namespaces(limit=7, after=found[-1] if found else None):
        found += page
    assert found == NAMES


def test_small_namespaces_take_few_queries_and_large_ones_few_rows(listing: Listing) -> None:
    assert len(listing.store.namespaces("small/", limit=10_000)) == 1_000
    assert len(listing.rows) <= 12
    listing.rows.clear()
    assert len(listing.store.namespaces("very large/", limit=10_000)) == 5
    assert len(listing.rows) <= 6
    assert sum(listing.rows) <= 6 * 128
    listing.rows.clear()
    assert len(listing.store.namespaces(after="small/", limit=10_000)) == 1_005
    assert max(listing.rows) >= 500, "many small ones at a time"
    assert listing.rows[-1] <= 128, "and few rows again, once they are large"


def test_namespaces_that_stay_are_listed_while_others_come_and_go(listing: Listing) -> None:
    ended = Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            namespace = f"size/{number % 1_100:04} passing"
            listing.store.save(namespace, MemoryEntry())
            listing.store.clear(namespace)
            number += 37

    writer = Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            found = listing.store.namespaces("size/", limit=10_000)
            assert [name for name in found if not name.endswith(" passing")] == sorted(SIZES)
            assert found == sorted(set(found))
    finally:
        ended.set()
        writer.join()

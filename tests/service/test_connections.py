"""The service through connections that are the caller's, and kinds that two facets would share."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import create_engine

from firefly_memory import (
    ConfigurationError,
    InMemoryStore,
    MemoryEntry,
    PostgreSQLStore,
    WorkingMemory,
    adapt,
    service,
)
from firefly_memory.facets import Facet, Looking, absent, registered
from firefly_memory.testing import Mode
from tests.service.conftest import Look
from tests.support.backends import BY_NAME, Place

OTHERS = [
    "mongodb-motor",
    "sqlite-engine",
    "sqlite-aiosqlite",
    "postgresql-engine",
    "postgresql-async-engine",
    "postgresql-psycopg2-engine",
]


@pytest.mark.parametrize("backend", OTHERS)
async def test_rows_are_found_through_every_driver(backend: str, place: Place) -> None:
    own = f"looking {uuid4().hex}"
    async with adapt(BY_NAME[backend].open(place)) as store:
        for number in range(5):
            await store.async_save(own, MemoryEntry(entry_id=f"{own} {number}", key=f"k{number % 2}"))
        await WorkingMemory(store=store, scope_id=own).async_set("colour", "green")
        for mode in BY_NAME[backend].modes:
            look = Look(store, mode if "motor" not in backend else Mode.SUSPENDING)
            ids = [f"{own}/{own} {number}" for number in range(5)]
            entries = [row["id"] for row in await look.rows("entries", 3)]
            assert [row_id for row_id in entries if row_id in ids] == ids, "other tests may have rows there"
            assert len(set(entries)) == len(entries) == (await look.count("entries")).rows
            where = {"namespace": own, "key": "k1"}
            assert [row["id"] for row in await look.rows("entries", 1, where)] == [ids[1], ids[3]]
            assert await look.get("entries", ids[2]) is not None
            assert f"{own}/colour" in [row["id"] for row in await look.rows("working-facts", 2)]
        assert await look.delete("entries", where={"namespace": own}) == 5
        assert await look.delete("working-facts", [f"{own}/colour"]) == 1


def test_rows_of_a_transaction_are_found_in_it(place: Place, name: str) -> None:
    engine = create_engine(place.with_driver("psycopg"))
    with PostgreSQLStore(place.postgresql(), schema_name=name) as store, engine.connect() as connection:
        bound = store.bind(connection)
        bound.save("notes", MemoryEntry(entry_id="1"))
        assert [row["id"] for row in service.list(bound, "entries")] == ["notes/1"]
        assert service.count(store, "entries").rows == 0
        assert service.delete(bound, "entries", where={}) == 1
        connection.rollback()
    engine.dispose()


def test_two_facets_with_the_same_kind_are_both_named() -> None:
    nothing = absent("nothing to look at")
    again = Facet(
        name="again",
        title="entries again",
        storage=nothing,
        operations=nothing,
        moving=nothing,
        people=nothing,
        looking=Looking(
            diagnosis=nothing,
            sizes=nothing,
            resources="firefly_memory.entries.looking:RESOURCES",
            wakeups=nothing,
            index=nothing,
        ),
        packaging=nothing,
    )
    with (
        registered([again]),
        InMemoryStore() as store,
        pytest.raises(
            ConfigurationError, match="several resources have the kind 'entries': those of entries and again"
        ),
    ):
        service.resources(store)


def test_a_facet_without_rows_says_why() -> None:
    with pytest.raises(
        ConfigurationError, match="Looking of a facet does not declare resources: give each a value, or"
    ):
        Looking(diagnosis=absent("no"), sizes=absent("no"), wakeups=absent("no"), index=absent("no"))

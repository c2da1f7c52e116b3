"""One person's data in every facet of every backend: none of it is left after the erasure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConversationMemory,
    EntryStore,
    FileStore,
    InMemoryStore,
    InvalidEntryError,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    WorkingMemory,
    erasure,
    service,
)
from firefly_memory.facets import registered
from tests.support.backends import Place
from tests.support.facet_samples import of_people
from tests.support.spare_places import lent_database, lent_schema
from tests.toy_facet.facet import toys

SECRET = "Tarantella-\u00e9\U0001f98b"
"""What nobody else says. As JSON it may be escaped."""
PERSON = f"person {SECRET}"
NOTES = f"notes {SECRET}"
KINDS = ["memory", "file", "sqlite", "asyncpg", "psycopg", "mongodb"]


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place, toy_revisions: Path) -> AsyncIterator[EntryStore]:
    with registered(toys(toy_revisions)), _opened(request.param, place) as opened:
        async with opened as store:
            yield store


@contextmanager
def _opened(kind: str, place: Place) -> Iterator[EntryStore]:
    """A store with nothing in it."""
    match kind:
        case "memory":
            yield InMemoryStore()
        case "file":
            yield FileStore(place.directory / "files")
        case "sqlite":
            yield SQLiteStore(place.directory / "memory.db")
        case "mongodb":
            with lent_database(place.mongodb()) as name:
                yield MongoDBStore(place.mongodb(), database=name)
        case driver:
            with lent_schema(place.postgresql()) as name:
                yield PostgreSQLStore(place.with_driver(driver), schema_name=name, pool_min_size=0)


async def write_data_of(store: EntryStore, owner: str) -> None:
    """Something of a person in every facet that the store has; every text has the owner's name in it."""
    for store_data_of in of_people(store.suspending, "store_data_of"):
        await store_data_of(store, owner)
    await store.async_save(f"notes {owner.removeprefix('person ')}", MemoryEntry(content={"of": owner}, key=owner))


async def test_nothing_of_an_erased_person_is_left_anywhere(store: EntryStore, tmp_path: Path) -> None:
    await write_data_of(store, PERSON)
    await write_data_of(store, "person Bob")
    assert await erasure.async_find_text(store, SECRET) != {}
    of_bob = await erasure.async_find_text(store, "Bob")
    before = {each.kind: each.rows for each in await service.async_stats(store)}
    receipt = await erasure.async_erase(store, PERSON, [NOTES])
    assert await erasure.async_find_text(store, SECRET) == {}
    assert await erasure.async_find_text(store, "Bob") == of_bob
    after = {each.kind: each.rows for each in await service.async_stats(store)}
    deleted = {kind: rows for kind, rows in receipt.rows.items() if rows}
    assert deleted == {kind: rows // 2 for kind, rows in before.items() if rows}
    assert after == {kind: None if rows is None else rows // 2 for kind, rows in before.items()}
    await store.close()
    assert _files_with(SECRET, tmp_path) == []


def _files_with(text: str, directory: Path) -> list[str]:
    return [each.name for each in directory.rglob("*") if each.is_file() and text.encode() in each.read_bytes()]


async def test_late_writes_of_every_facet_are_refused(store: EntryStore) -> None:
    await write_data_of(store, PERSON)
    await erasure.async_erase(store, PERSON, [NOTES])
    for assert_late_writes_are_refused in of_people(store.suspending, "assert_late_writes_are_refused"):
        await assert_late_writes_are_refused(store, PERSON)
    assert await erasure.async_find_text(store, SECRET) == {}
    assert await erasure.async_readmit(store, PERSON)
    await write_data_of(store, PERSON)


async def test_a_dry_run_counts_what_an_erasure_deletes(store: EntryStore) -> None:
    await write_data_of(store, PERSON)
    counted = await erasure.async_erase(store, PERSON, [NOTES], dry_run=True)
    there = await erasure.async_find_text(store, SECRET)
    receipt = await erasure.async_erase(store, PERSON, [NOTES])
    assert there != {}
    assert counted.rows == receipt.rows
    assert (counted.is_dry_run, receipt.is_dry_run) == (True, False)


async def test_progress_grows_to_the_receipt(store: EntryStore) -> None:
    await write_data_of(store, PERSON)
    seen: list[int] = []
    receipt = await erasure.async_erase(store, PERSON, [NOTES], progress=lambda rows: seen.append(sum(rows.values())))
    assert seen == sorted(seen)
    assert seen[-1] == sum(receipt.rows.values())


def test_what_is_no_name_is_refused_before_anything_is_deleted() -> None:
    with InMemoryStore() as store:
        memory = ConversationMemory(store=store)
        memory.add_turn("chat", "p", "a", owner="ann")
        wrong: list[Any] = ["", 7, None, "x" * 513]
        for owner in wrong:
            with pytest.raises(InvalidEntryError):
                erasure.erase(store, owner)
        for namespaces in (["notes", ""], ["notes", 7], "notes", ["conversation:chat"]):
            with pytest.raises(InvalidEntryError):
                erasure.erase(store, "ann", namespaces)  # type: ignore[arg-type]
        assert len(memory.get_turns("chat")) == 1


def test_an_owner_named_as_a_conversation_loses_no_facts_of_others() -> None:
    with InMemoryStore() as store:
        facts = WorkingMemory(store=store, conversation_id="bob")
        facts.set("city", "Paris")
        erasure.erase(store, "conversation:bob")
        assert facts.to_dict() == {"city": "Paris"}
        facts.set("city", "Lyon")

"""R3, upsert."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from firefly_memory.entries.entry import MemoryEntry, MemoryScope
from firefly_memory.errors import EntryOwnershipError
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped


@check("R3")
async def saving_an_id_again_replaces_the_entry(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.view.save(namespace, MemoryEntry(entry_id="one", key="old", content="old", metadata={"a": 1}))
    later = datetime.now(UTC) + timedelta(days=1)
    new = MemoryEntry(
        entry_id="one", key="new", content={"new": True}, scope=MemoryScope.LONG_TERM, importance=0.9, expires_at=later
    )
    await subject.view.save(namespace, new)
    (loaded,) = await subject.view.load(namespace)
    assert loaded.model_dump(exclude={"created_at"}) == new.model_dump(exclude={"created_at"})
    assert await subject.view.load_by_key(namespace, "old") is None
    assert await subject.view.load_by_key(namespace, "new") == loaded
    await subject.view.save(namespace, MemoryEntry(entry_id="one"))
    (loaded,) = await subject.view.load(namespace)
    assert (loaded.key, loaded.expires_at, loaded.content, loaded.metadata) == (None, None, None, {})


@check("R3")
async def replacing_an_entry_keeps_its_place(subject: Subject) -> None:
    namespace = subject.namespace()
    first, *_ = await subject.saved(namespace, "a", "b", "c")
    await subject.view.save(namespace, MemoryEntry(entry_id=first.entry_id, content="A"))
    await subject.view.save_many(namespace, [MemoryEntry(entry_id=first.entry_id, content="AA")])
    assert await subject.contents(namespace) == ["AA", "b", "c"]
    assert (await subject.view.load(namespace))[0].created_at == first.created_at


@check("R3", Capability.UNIQUE_IDS)
async def an_id_of_another_namespace_is_refused_and_that_entry_stays(subject: Subject) -> None:
    mine, theirs = subject.namespace("mine"), subject.namespace("theirs")
    (entry,) = await subject.saved(theirs, "theirs")
    intruder = MemoryEntry(entry_id=entry.entry_id, content="mine")
    fresh = MemoryEntry(content="fresh")
    for attempt in (subject.view.save(mine, intruder), subject.view.save_many(mine, [fresh, intruder])):
        try:
            await attempt
        except EntryOwnershipError as error:
            assert (error.entry_id, error.namespace) == (entry.entry_id, mine)
        else:
            raise AssertionError("should have raised EntryOwnershipError")
    assert await subject.view.load(theirs) == [entry]
    assert await subject.view.load(mine) == []
    await subject.view.delete(theirs, entry.entry_id)
    await subject.view.save(mine, intruder)
    assert await subject.contents(mine) == ["mine"]


@check("R3")
async def an_id_of_another_namespace_never_overwrites_that_entry(subject: Subject) -> None:
    mine, theirs = subject.namespace("mine"), subject.namespace("theirs")
    (entry,) = await subject.saved(theirs, "theirs")
    try:
        await subject.view.save(mine, MemoryEntry(entry_id=entry.entry_id, content="mine"))
    except EntryOwnershipError:
        assert await subject.contents(mine) == []
    else:
        assert await subject.contents(mine) == ["mine"]
    assert await subject.view.load(theirs) == [entry]


@check("R3")
async def of_two_entries_with_one_id_saved_together_the_later_wins(subject: Subject) -> None:
    namespace = subject.namespace()
    first = MemoryEntry(entry_id="same", content="first", key="first")
    between = MemoryEntry(content="between")
    last = MemoryEntry(entry_id="same", content="last", key="last")
    await subject.view.save_many(namespace, [first, between, last])
    assert await subject.contents(namespace) == ["last", "between"]
    assert await subject.view.load_by_key(namespace, "first") is None
    assert (await subject.view.load(namespace))[0].created_at == first.created_at


@check("R3")
async def an_expired_entry_does_not_hold_on_to_its_id(subject: Subject) -> None:
    here, there = subject.namespace("here"), subject.namespace("there")
    with stopped() as clock:
        soon = clock.now() + timedelta(seconds=10)
        for entry_id in ("moves", "moves in company", "stays"):
            await subject.view.save(here, MemoryEntry(entry_id=entry_id, content="old", expires_at=soon))
        clock.advance(seconds=10)
        await subject.view.save(there, MemoryEntry(entry_id="moves", content="new"))
        await subject.view.save_many(
            there,
            [MemoryEntry(entry_id="moves in company", content="new"), MemoryEntry(entry_id="z", content="company")],
        )
        again = MemoryEntry(entry_id="stays", content="new")
        await subject.view.save(here, again)
        assert await subject.contents(there) == ["new", "new", "company"]
        assert await subject.view.load(here) == [again], "it is a new entry, with its own created_at"

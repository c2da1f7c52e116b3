"""R4, order, and R5, by key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.testing.checks import Subject, check
from firefly_memory.testing.clock import stopped

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


@check("R4")
async def entries_come_back_in_the_order_they_were_made(subject: Subject) -> None:
    namespace = subject.namespace()
    with stopped():  # not even the clock tells them apart
        await subject.saved(namespace, *range(50))
    assert await subject.contents(namespace) == list(range(50))


@check("R4")
async def order_is_by_created_at_whatever_the_order_of_saving(subject: Subject) -> None:
    namespace = subject.namespace()
    moments = [
        NOON + timedelta(microseconds=1),
        (NOON + timedelta(hours=1)).astimezone(timezone(timedelta(hours=-8))),
        NOON,
        (NOON - timedelta(microseconds=1)).astimezone(timezone(timedelta(hours=14))),
        NOON + timedelta(milliseconds=1),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
    ]
    entries = [MemoryEntry(content=moment.isoformat(), created_at=moment) for moment in moments]
    await subject.view.save_many(namespace, entries[:3])
    for entry in entries[3:]:
        await subject.view.save(namespace, entry)
    assert await subject.view.load(namespace) == sorted(entries, key=lambda entry: entry.created_at)


@check("R4")
async def ties_are_ordered_by_entry_id_by_code_point(subject: Subject) -> None:
    namespace = subject.namespace()
    ids = ["b", "B", "a", "A", "é", "e", "z", "Z", "\uffff", "\U0001f600", "10", "9", "a-b", "a b", "aB", "ab", "_"]
    await subject.view.save_many(namespace, [MemoryEntry(entry_id=each, created_at=NOON) for each in ids])
    assert [entry.entry_id for entry in await subject.view.load(namespace)] == sorted(ids)
    first = await subject.view.load_page(namespace, limit=8)
    rest = await subject.view.load_page(namespace, limit=100, after=first.next)
    assert [entry.entry_id for entry in (*first, *rest)] == sorted(ids)


@check("R5")
async def load_by_key_returns_the_newest_entry(subject: Subject) -> None:
    namespace = subject.namespace()
    old, new = await subject.saved(namespace, "old", "new", key="k")
    assert await subject.view.load_by_key(namespace, "k") == new
    await subject.view.save(namespace, MemoryEntry(entry_id=old.entry_id, key="k", content="old, saved again"))
    assert await subject.view.load_by_key(namespace, "k") == new, "saving again keeps the place in the order"
    await subject.view.save(namespace, MemoryEntry(entry_id=new.entry_id, key="k", content="new, saved again"))
    found = await subject.view.load_by_key(namespace, "k")
    assert found is not None
    assert found.content == "new, saved again"
    await subject.view.delete(namespace, new.entry_id)
    found = await subject.view.load_by_key(namespace, "k")
    assert found is not None
    assert found.content == "old, saved again"


@check("R5")
async def newest_is_by_created_at_then_entry_id(subject: Subject) -> None:
    namespace = subject.namespace()
    for entry_id, moment in (("m", NOON + timedelta(seconds=1)), ("z", NOON), ("a", NOON + timedelta(seconds=1))):
        await subject.view.save(namespace, MemoryEntry(entry_id=entry_id, key="k", created_at=moment))
    found = await subject.view.load_by_key(namespace, "k")
    assert found is not None
    assert found.entry_id == "m"


@check("R5")
async def an_expired_entry_uncovers_the_older_one(subject: Subject) -> None:
    namespace = subject.namespace()
    with stopped() as clock:
        await subject.saved(namespace, "lasting", key="k")
        await subject.saved(namespace, "passing", key="k", expires_at=clock.now() + timedelta(minutes=1))
        clock.advance(minutes=2)
        found = await subject.view.load_by_key(namespace, "k")
        assert found is not None
        assert found.content == "lasting"


@check("R5")
async def only_that_very_key_is_found(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.saved(namespace, "keyless")
    await subject.saved(namespace, "keyed", key="Key")
    for other in ("key", "KEY", "Key ", " Key", "Ke", "Keyy", "K%", "K_y", "None", "null", "*"):
        assert await subject.view.load_by_key(namespace, other) is None, other
    assert await subject.view.load_by_key(subject.namespace("elsewhere"), "Key") is None

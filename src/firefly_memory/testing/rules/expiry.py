"""R6, expiry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.errors import InvalidEntryError
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Subject, check, refusal
from firefly_memory.testing.clock import stopped


@check("R6")
async def an_entry_is_there_until_its_expiry_and_not_from_then_on(subject: Subject) -> None:
    namespace = subject.namespace()
    with stopped(datetime(2024, 6, 1, 12, 0, 0, 500, UTC)) as clock:
        moment = clock.now() + timedelta(seconds=1, microseconds=7)
        entry = MemoryEntry(key="k", content="passing", expires_at=moment)
        await subject.view.save(namespace, entry)
        clock.set(moment - timedelta(microseconds=1))
        assert await subject.view.load(namespace) == [entry]
        assert list(await subject.view.load_page(namespace)) == [entry]
        assert await subject.view.load_by_key(namespace, "k") == entry
        assert await subject.view.count(namespace) == 1
        assert not entry.is_expired
        clock.set(moment)
        assert await subject.view.load(namespace) == []
        assert list(await subject.view.load_page(namespace)) == []
        assert await subject.view.load_by_key(namespace, "k") is None
        assert await subject.view.count(namespace) == 0
        assert await subject.view.delete_many(namespace, [entry.entry_id]) == 0
        assert entry.is_expired


@check("R6")
async def an_entry_saved_after_its_expiry_is_never_seen(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.saved(namespace, "late", key="k", expires_at=datetime(2001, 1, 1, tzinfo=UTC))
    assert await subject.contents(namespace) == []
    assert await subject.view.load_by_key(namespace, "k") is None


@check("R6")
async def instants_of_any_time_zone_expire_when_they_should(subject: Subject) -> None:
    namespace = subject.namespace()
    with stopped() as clock:
        for hours in (-12, -3.5, 0, 5.75, 14):
            zone = timezone(timedelta(hours=hours))
            await subject.saved(namespace, hours, expires_at=(clock.now() + timedelta(minutes=1)).astimezone(zone))
        clock.advance(seconds=59)
        assert await subject.view.count(namespace) == 5
        clock.advance(seconds=1)
        assert await subject.view.count(namespace) == 0


@check("R6")
async def expiry_can_be_put_off_and_taken_back(subject: Subject) -> None:
    namespace = subject.namespace()
    with stopped() as clock:
        soon, later = clock.now() + timedelta(seconds=10), clock.now() + timedelta(seconds=30)
        for entry_id in ("sooner", "later", "never"):
            await subject.view.save(namespace, MemoryEntry(entry_id=entry_id, content=entry_id, expires_at=soon))
        await subject.view.save(namespace, MemoryEntry(entry_id="later", content="later", expires_at=later))
        await subject.view.save(namespace, MemoryEntry(entry_id="never", content="never"))
        clock.advance(seconds=20)
        assert await subject.contents(namespace) == ["later", "never"]
        clock.advance(days=20_000)
        assert await subject.contents(namespace) == ["never"]


@check("R6")
async def naive_instants_are_refused(subject: Subject) -> None:
    namespace = subject.namespace()
    naive = datetime(2030, 1, 1)  # noqa: DTZ001
    for field in ("created_at", "expires_at"):
        try:
            await subject.view.save(namespace, MemoryEntry(**{field: naive}))
        except ValueError as error:
            assert field in str(error)
        else:
            raise AssertionError(f"a naive {field} should have been refused")
        entry = MemoryEntry()
        entry.__dict__[field] = naive  # around the model's own check
        try:
            await subject.view.save(namespace, entry)
        except InvalidEntryError as error:
            assert error.path == field
        else:
            raise AssertionError(f"a naive {field} should have been refused at the door as well")
    assert await subject.contents(namespace) == []


@check("R6", Capability.LISTING)
async def cleanup_deletes_what_has_expired_and_counts_it(subject: Subject) -> None:
    one, two = subject.namespace("one"), subject.namespace("two")
    with stopped() as clock:
        await subject.view.cleanup_expired()
        soon, later = clock.now() + timedelta(minutes=1), clock.now() + timedelta(hours=1)
        for namespace in (one, two):
            await subject.saved(namespace, *range(7), expires_at=soon)
            await subject.saved(namespace, "later", expires_at=later)
            await subject.saved(namespace, "lasting", key="k")
        assert await subject.view.cleanup_expired() == 0
        clock.advance(minutes=1)
        assert await subject.view.cleanup_expired() == 14
        assert await subject.view.cleanup_expired() == 0
        clock.advance(minutes=-2)
        for namespace in (one, two):
            assert await subject.contents(namespace) == ["later", "lasting"]


@check("R6", Capability.LISTING)
async def a_namespace_of_expired_entries_is_not_listed(subject: Subject) -> None:
    passing, lasting = subject.namespace("expiry-passing"), subject.namespace("expiry-lasting")
    run = lasting.partition(":")[2]
    with stopped() as clock:
        await subject.saved(passing, "x", expires_at=clock.now() + timedelta(minutes=1))
        await subject.saved(lasting, "x")

        async def listed() -> list[str]:
            found = await subject.view.namespaces("expiry-", limit=1_000)
            return [namespace for namespace in found if namespace.endswith(run)]

        assert await listed() == [lasting, passing]
        clock.advance(minutes=1)
        assert await listed() == [lasting]
        await subject.view.cleanup_expired()
        assert await listed() == [lasting]


refusal("R6", Capability.LISTING, lambda view: view.cleanup_expired(), "cleanup_without_listing_is_refused")

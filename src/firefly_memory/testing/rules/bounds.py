"""R11, bounded: pages."""

from __future__ import annotations

from typing import Any

from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.errors import InvalidEntryError
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Subject, check, refusal


@check("R11")
async def pages_follow_each_other_without_gap_or_repetition(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = await subject.saved(namespace, *range(23))
    for limit in (1, 5, 22, 23, 24, 100):
        seen: list[MemoryEntry] = []
        after = None
        while True:
            page = await subject.view.load_page(namespace, limit, after)
            seen += page
            assert len(page) <= limit
            if page.next is None:
                break
            assert len(page) == limit
            after = page.next
        assert seen == entries, f"pages of {limit}"


@check("R11")
async def entries_that_come_and_go_do_not_disturb_the_pages(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = await subject.saved(namespace, *range(10))
    first = await subject.view.load_page(namespace, limit=4)
    for entry in entries[2:5]:  # the one the next page starts after among them
        await subject.view.delete(namespace, entry.entry_id)
    await subject.saved(namespace, "new")
    second = await subject.view.load_page(namespace, limit=4, after=first.next)
    assert [entry.content for entry in second] == [5, 6, 7, 8]
    third = await subject.view.load_page(namespace, limit=4, after=second.next)
    assert [entry.content for entry in third] == [9, "new"]
    assert third.next is None


@check("R11")
async def a_page_is_a_sequence_of_entries(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = await subject.saved(namespace, 1, 2, 3)
    page = await subject.view.load_page(namespace)
    assert (len(page), page[0], page[-1], list(page), page.next) == (3, entries[0], entries[2], entries, None)
    empty = await subject.view.load_page(subject.namespace("empty"))
    assert (list(empty), empty.next) == ([], None)
    none = await subject.view.load_page(namespace, limit=0)
    assert list(none) == []


@check("R11")
async def limits_and_positions_that_make_no_sense_are_refused(subject: Subject) -> None:
    namespace = subject.namespace()
    bad: list[dict[str, Any]] = [
        {"limit": -1}, {"limit": 2.5}, {"limit": "10"}, {"limit": True}, {"after": ""}, {"after": "nonsense"},
        {"after": "2024-01-01T00:00:00/naive"}, {"after": 5},
    ]  # fmt: skip
    for arguments in bad:
        try:
            await subject.view.load_page(namespace, **arguments)
        except InvalidEntryError as error:
            assert error.path in arguments
        else:
            raise AssertionError(f"{arguments} should have been refused")


LARGE = [2**31 - 2, 2**31 - 1, 2**31, 2**63 - 2, 2**63 - 1, 2**63, 10**30]


@check("R11")
async def a_limit_may_be_larger_than_any_number_of_entries(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = await subject.saved(namespace, 1, 2, 3)
    for limit in LARGE:
        page = await subject.view.load_page(namespace, limit)
        assert (list(page), page.next) == (entries, None), limit


@check("R11", Capability.LISTING)
async def a_limit_may_be_larger_than_any_number_of_namespaces(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.saved(namespace, 1)
    for limit in LARGE:
        assert await subject.view.namespaces(namespace, limit) == [namespace], limit


@check("R11", Capability.LISTING)
async def namespaces_are_listed_in_order_and_in_pages(subject: Subject) -> None:
    run = subject.namespace().partition(":")[2]
    names = sorted(f"{run}/{name}" for name in ("b", "a", "c/1", "c/2", "C", "é", "z", "10", "9"))
    for name in names:
        await subject.view.save(subject.exactly(name), MemoryEntry())
        await subject.view.save(name, MemoryEntry())
    assert await subject.view.namespaces(f"{run}/") == names
    assert await subject.view.namespaces(f"{run}/c") == [f"{run}/c/1", f"{run}/c/2"]
    assert await subject.view.namespaces(f"{run}/", limit=0) == []
    seen: list[str] = []
    while page := await subject.view.namespaces(f"{run}/", limit=4, after=seen[-1] if seen else None):
        seen += page
    assert seen == names
    await subject.view.clear(names[3])
    assert await subject.view.namespaces(f"{run}/") == names[:3] + names[4:]


refusal("R11", Capability.LISTING, lambda view: view.namespaces(), "listing_namespaces_is_refused")

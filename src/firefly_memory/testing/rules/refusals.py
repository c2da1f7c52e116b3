"""R12, clear, as far as it can be seen from outside; and the door."""

from __future__ import annotations

from typing import Any

from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.errors import FireflyMemoryError, InvalidEntryError, StoreClosedError
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Subject, check


@check("R12")
async def names_outside_the_bounds_are_refused_at_the_door(subject: Subject) -> None:
    namespace = subject.namespace()
    for name in ("", "x" * 513, "漢" * 513, "../" * 4_000):
        for call in (
            subject.view.save(name, MemoryEntry()),
            subject.view.save_many(name, [MemoryEntry()]),
            subject.view.load(name),
            subject.view.load_page(name),
            subject.view.load_by_key(name, "k"),
            subject.view.load_by_key(namespace, name),
            subject.view.delete(name, "x"),
            subject.view.delete(namespace, name),
            subject.view.delete_many(namespace, [name]),
            subject.view.clear(name),
            subject.view.count(name),
            subject.view.save(namespace, MemoryEntry(entry_id=name)),
            subject.view.save(namespace, MemoryEntry(key=name)),
        ):
            try:
                await call
            except InvalidEntryError as error:
                assert error.path in {"namespace", "entry_id", "key"}
            else:
                raise AssertionError(f"{name[:20]!r} should have been refused")
    assert await subject.contents(namespace) == []


@check("R12")
async def only_entries_are_saved(subject: Subject) -> None:
    namespace = subject.namespace()
    not_entries: list[Any] = [None, {"content": 1}, "text", MemoryEntry]
    for thing in not_entries:
        for call in (subject.view.save(namespace, thing), subject.view.save_many(namespace, [thing])):
            try:
                await call
            except InvalidEntryError as error:
                assert "MemoryEntry" in str(error)
            else:
                raise AssertionError(f"{thing!r} should have been refused")
    broken = MemoryEntry()
    for field, value in (("importance", 7.0), ("importance", "high"), ("scope", "nowhere"), ("metadata", [1])):
        broken = MemoryEntry()
        broken.__dict__[field] = value  # around the model's own check
        try:
            await subject.view.save(namespace, broken)
        except InvalidEntryError as error:
            assert error.path == field
        else:
            raise AssertionError(f"{field}={value!r} should have been refused")
    assert await subject.contents(namespace) == []


@check("R12")
async def one_text_in_place_of_several_ids_is_refused(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.view.save(namespace, MemoryEntry(entry_id="a"))
    try:
        await subject.view.delete_many(namespace, "a")
    except InvalidEntryError:
        pass
    else:
        raise AssertionError("should have raised InvalidEntryError")
    assert await subject.view.count(namespace) == 1


@check("R12")
async def unknown_namespaces_are_empty(subject: Subject) -> None:
    namespace = subject.namespace("never written")
    assert await subject.view.load(namespace) == []
    assert await subject.view.load_by_key(namespace, "k") is None
    assert await subject.view.count(namespace) == 0
    if Capability.LISTING in subject.store.capabilities:
        assert await subject.view.namespaces(namespace) == [], "reading creates nothing"


@check("R12")
async def initializing_twice_is_fine(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.view.initialize()
    await subject.saved(namespace, "kept")
    await subject.view.initialize()
    await subject.view.initialize(migrate=False)
    assert await subject.contents(namespace) == ["kept"]


@check("R12")
async def a_closed_store_says_so(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.view.initialize()
    await subject.view.close()
    await subject.view.close()
    for call in (
        subject.view.load(namespace),
        subject.view.save(namespace, MemoryEntry()),
        subject.view.save_many(namespace, [MemoryEntry(), MemoryEntry()]),
        subject.view.delete(namespace, "x"),
        subject.view.clear(namespace),
        subject.view.initialize(),
    ):
        try:
            await call
        except StoreClosedError as error:
            assert isinstance(error, FireflyMemoryError)
        else:
            raise AssertionError("should have raised StoreClosedError")

"""R7, isolation."""

from __future__ import annotations

from typing import Any

from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.errors import InvalidEntryError
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Subject, check

LOOKALIKES = [
    "a/b", "a_b", "a\\b", "a%b", "a*b", "a?b", "a.b", "a b", "a:b", "a-b", "ab", "AB", "Ab", "aB", "a", "b", "a/b/", "/a/b",
    "../a", "../../etc/passwd", "..", ".", "./a", "/a", "//a", "~", "~/a", "CON", "nul", "a.json", "a.json.tmp", ".locks",
    "é", "e\u0301", "ß", "SS", "ss", "İ", "i", "I", "ı", "Ａ", "\u200b", " a", "a ", "\ta", "a\n", "A\x00", "a\x00", "\x00",
    "\ud800", "\x10", "\x100", "\x10d800", "%2e", "%00", "'; DROP TABLE memory_entries; --", '"', "$where", "{}", "[]",
    "null", "None", "0", "漢", "\U0001f600", "a" * 512, "A" * 512, "漢" * 512, "a" * 499 + "b", "\U0001f600" * 512,
]  # fmt: skip


@check("R7")
async def names_that_look_alike_are_different_namespaces(subject: Subject) -> None:
    run = subject.namespace().partition(":")[2]
    names = [subject.exactly(name[: 512 - len(run)] + run) for name in LOOKALIKES]
    assert len(set(names)) == len(names)
    saved = {name: MemoryEntry(key="k", content=ascii(name)) for name in names}
    for name, entry in saved.items():
        await subject.view.save(name, entry)
    for name, entry in saved.items():
        assert await subject.view.load(name) == [entry], ascii(name)
        assert await subject.view.load_by_key(name, "k") == entry, ascii(name)
        assert await subject.view.count(name) == 1, ascii(name)
    for name in names[::2]:
        await subject.view.clear(name)
    for number, name in enumerate(names):
        assert await subject.view.count(name) == number % 2, ascii(name)


@check("R7")
async def keys_that_look_alike_are_different_keys(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.view.save_many(namespace, [MemoryEntry(key=key, content=ascii(key)) for key in LOOKALIKES])
    for key in LOOKALIKES:
        found = await subject.view.load_by_key(namespace, key)
        assert found is not None, ascii(key)
        assert (found.key, found.content) == (key, ascii(key))


@check("R7")
async def ids_that_look_alike_are_different_entries(subject: Subject) -> None:
    namespace = subject.namespace()
    for entry_id in LOOKALIKES:
        await subject.view.save(namespace, MemoryEntry(entry_id=entry_id, content=ascii(entry_id)))
    assert await subject.view.count(namespace) == len(LOOKALIKES)
    assert await subject.view.delete_many(namespace, LOOKALIKES[::2]) == len(LOOKALIKES[::2])
    left = {entry.entry_id: entry.content for entry in await subject.view.load(namespace)}
    assert left == {entry_id: ascii(entry_id) for entry_id in LOOKALIKES[1::2]}


@check("R7")
async def deleting_reaches_the_own_namespace_only(subject: Subject) -> None:
    mine, theirs = subject.namespace("mine"), subject.namespace("theirs")
    (entry,) = await subject.saved(theirs, "theirs", key="k")
    await subject.view.delete(mine, entry.entry_id)
    assert await subject.view.delete_many(mine, [entry.entry_id]) == 0
    await subject.view.clear(mine)
    assert await subject.view.load(theirs) == [entry]


@check("R7")
async def names_that_are_no_text_are_refused(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.saved(namespace, "x", key="k")
    not_text: list[Any] = [None, 5, b"bytes", ["list"], {"$ne": ""}, {"$gt": ""}, True]
    for name in not_text:
        for call in (
            subject.view.load(name),
            subject.view.count(name),
            subject.view.clear(name),
            subject.view.load_by_key(namespace, name),
            subject.view.delete(namespace, name),
            subject.view.save(name, MemoryEntry()),
        ):
            try:
                await call
            except InvalidEntryError:
                continue
            raise AssertionError(f"{name!r} should have been refused")
    assert await subject.view.count(namespace) == 1


@check("R7", Capability.LISTING)
async def prefixes_are_compared_letter_by_letter(subject: Subject) -> None:
    run = subject.namespace().partition(":")[2]
    names = [f"{run}{rest}" for rest in ("", "a", "A", "a%", "a_", "ab", "a\x00", "b", "é", "\U0001f600", "\uffff")]
    for name in names:
        await subject.view.save(subject.exactly(name), MemoryEntry())
    for prefix in ("", "a", "A", "a%", "a_", "_", "%", "é", "a\x00", "c"):
        found = await subject.view.namespaces(run + prefix)
        assert sorted(found) == sorted(name for name in names if name.startswith(run + prefix)), ascii(prefix)

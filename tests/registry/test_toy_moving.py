"""The items of a facet of another package, in archives and in copies from and to every store that can keep it."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path

from firefly_memory import EntryStore, InMemoryStore, MemoryEntry, SQLiteStore, clock
from firefly_memory.archive import async_export_jsonl, async_import_jsonl
from firefly_memory.copying import async_copy_store
from firefly_memory.facets import registered
from firefly_memory.transfer.counts import Counts
from tests.registry.conftest import Open
from tests.toy_facet.facet import key, toys
from tests.toy_facet.log import Note

IDS = ["A", "Z", "a", "b", "z", "\u00fc", "\U0001f600"]


async def put_all(store: EntryStore, number: int = 1) -> None:
    now = clock.now().replace(microsecond=0)
    log = store.suspending.log(key(number))
    for note_id in IDS:
        await log.put(Note(note_id, f"note {note_id}", now + timedelta(hours=1)))
    await log.put(Note("expired", "", now - timedelta(hours=1)))


async def lines_of(store: EntryStore) -> list[str]:
    file = io.StringIO()
    await async_export_jsonl(store, file)
    return file.getvalue().splitlines()


async def test_notes_go_from_every_store_to_every_other(open_store: Open, tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "source.db") as source, open_store() as store, InMemoryStore() as target:
        await source.async_save("n", MemoryEntry(content=1))
        await put_all(source)
        everything = Counts(entries=1, toy_1_notes=len(IDS))
        for before in (Counts(), everything):
            copied = await async_copy_store(source, store)
            assert copied.equal
            assert (copied.before, copied.target.counts) == (before, everything)
        lines = await lines_of(store)
        assert lines[1:] == (await lines_of(source))[1:]
        for _ in range(2):
            assert await async_import_jsonl(target, lines) == everything
        assert (await lines_of(target))[1:] == lines[1:]


async def test_an_archive_has_the_facets_in_the_order_of_the_registry(tmp_path: Path) -> None:
    with registered(toys(tmp_path / "revisions", 3)):
        async with InMemoryStore() as store:
            for number in (3, 1):
                await put_all(store, number)
            header, *items, end = map(json.loads, await lines_of(store))
    assert list(header["kinds"]) == ["toy_1_note", "toy_3_note"]
    assert [next(iter(item)) for item in items] == ["toy_1_note"] * len(IDS) + ["toy_3_note"] * len(IDS)
    assert {name: number for name, number in end["end"].items() if number} == {
        "toy_1_notes": len(IDS),
        "toy_3_notes": len(IDS),
    }

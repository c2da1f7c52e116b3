"""The notes of a facet of another package are pruned, without a change to the library."""

from __future__ import annotations

from typing import Any

import pytest

from firefly_memory.clock import now
from firefly_memory.retention import async_prune
from tests.registry.conftest import Open
from tests.toy_facet.facet import key
from tests.toy_facet.log import Note
from tests.toy_facet.retention import ToyPruner

NOTES = key()


async def test_notes_beyond_the_number_of_each_owner_go(open_store: Open) -> None:
    async with open_store() as store:
        log = store.suspending.log(NOTES)
        for number in range(8):
            await log.put(Note(f"n/{number}", "body", None, "ann" if number % 2 else None))
        cases: list[tuple[dict[str, Any], list[int]]] = [
            ({"older_than": "1d"}, [*range(8)]),
            ({"keep_last": 3, "owner": "ann"}, [0, *range(2, 8)]),
            ({"keep_last": 3}, [*range(2, 8)]),
            ({"keep_last": 1}, [6, 7]),
        ]
        for options, stays in cases:
            counted = await async_prune(store, dry_run=True, **options)
            assert (await async_prune(store, **options)).rows == counted.rows
            assert [note.note_id for note in await log.page(9, "", now())] == [f"n/{number}" for number in stays]


async def test_a_note_that_was_written_meanwhile_stays(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = ToyPruner.delete

    async def write_and_delete(pruner: ToyPruner, doomed: Any) -> Any:
        await store.suspending.log(NOTES).put(Note("n/0", "new body"))
        return await delete(pruner, doomed)

    monkeypatch.setattr(ToyPruner, "delete", write_and_delete)
    async with open_store() as store:
        log = store.suspending.log(NOTES)
        for number in range(3):
            await log.put(Note(f"n/{number}", "body"))
        assert (await async_prune(store, keep_last=1)).rows == {"toy-1-notes": 1}
        assert [note.note_id for note in await log.page(9, "", now())] == ["n/0", "n/2"]

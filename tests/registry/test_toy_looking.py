"""The rows of a facet of another package: listed, shown, counted and deleted, without a change to the library."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from firefly_memory import ConfigurationError, FileStore, InMemoryStore, NotSupportedError, clock, service
from firefly_memory.facets import registered
from tests.registry.conftest import Open
from tests.toy_facet.facet import key, toys
from tests.toy_facet.log import Note

KIND = "toy-1-notes"
NOTES = key()


async def test_notes_are_listed_shown_counted_and_deleted_in_every_store(open_store: Open) -> None:
    soon = clock.now() + timedelta(hours=1)
    async with open_store() as store:
        log = store.suspending.log(NOTES)
        for number in range(5):
            await log.put(Note(f"n/{number}", f"body {number % 2}", soon if number else None))
        await log.put(Note("old", "body", clock.now() - timedelta(hours=1)))
        assert KIND in [each.kind for each in service.resources(store)]
        page = await service.async_list(store, KIND, limit=3)
        rest = await service.async_list(store, KIND, limit=3, after=page.next)
        assert [row["id"] for row in (*page, *rest)] == [f"n/{number}" for number in range(5)]
        assert rest.next is None
        found = await service.async_list(store, KIND, where={"body~": "BODY 1", "expires_at>=": clock.now()})
        assert [row["id"] for row in found] == ["n/1", "n/3"]
        assert await service.async_get(store, KIND, "n/0") == {
            "id": "n/0",
            "note_id": "n/0",
            "body": "body 0",
            "expires_at": None,
            "owner": None,
            "group": None,
            "position": 0,
        }
        assert await service.async_get(store, KIND, "old") is None
        assert {each.kind: each.rows for each in await service.async_stats(store)}[KIND] == 5
        assert await service.async_delete(store, KIND, ["n/0", "old", "unknown"]) == 1
        assert await service.async_delete(store, KIND, where={"body": "body 1"}) == 2
        assert (await service.async_count(store, KIND)).rows == 2


@pytest.mark.usefixtures("toy")
def test_a_store_that_cannot_keep_notes_has_none(tmp_path: Path) -> None:
    with FileStore(tmp_path / "files") as store:
        assert KIND not in [each.kind for each in service.resources(store)]
        assert KIND not in [each.kind for each in service.stats(store)]
        with pytest.raises(NotSupportedError, match="notes of toy 1 cannot be kept in FileStore"):
            service.list(store, KIND)


def test_a_kind_is_there_only_while_it_is_registered(tmp_path: Path) -> None:
    with registered(toys(tmp_path / "revisions", 3)), InMemoryStore() as store:
        kinds = [each.kind for each in service.resources(store)]
        assert kinds[-3:] == ["toy-1-notes", "toy-2-notes", "toy-3-notes"]
    with InMemoryStore() as store, pytest.raises(ConfigurationError, match="there is no kind 'toy-1-notes'"):
        service.list(store, KIND)

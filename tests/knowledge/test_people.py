"""The chunks of a person: erased, and pruned by the time when they were added, in both modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from firefly_memory import ErasedError, InMemoryStore
from firefly_memory.erasure import Receipt, async_erase, async_readmit, erase, find_text, readmit
from firefly_memory.facets import registered
from firefly_memory.identifiers import stored_name
from firefly_memory.knowledge import people, retention
from firefly_memory.knowledge.facet import FACET
from firefly_memory.knowledge.people import KnowledgeEraser
from firefly_memory.knowledge.retention import KnowledgePruner
from firefly_memory.people import Doomed, Owned
from firefly_memory.retention import Pruned, async_prune, prune
from firefly_memory.testing import Mode
from firefly_memory.testing.clock import stopped
from tests.knowledge import START, Chunks, row

ANN = "ann \x00\u2603"
OWNERS = [ANN, None, "bob"]
COUNT = 9


@pytest.fixture(autouse=True, params=[2, 200])
def _pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(people, "_PAGE", request.param)
    monkeypatch.setattr(retention, "PAGE", request.param)
    with registered([FACET]):
        yield


@pytest.fixture
async def store() -> InMemoryStore:
    """Nine chunks of Ann, of nobody and of Bob, a day between them, in several spaces and collections."""
    store = InMemoryStore()
    for day in range(COUNT):
        space, collection, owner = f"space {day % 2}", f"collection {day % 4}", OWNERS[day % 3]
        await Chunks(store).add(row(f"day {day}", day=day, space=space, collection=collection, owner=owner))
    return store


@pytest.fixture(params=Mode)
def mode(request: pytest.FixtureRequest) -> Mode:
    mode: Mode = request.param
    return mode


async def erase_it(store: InMemoryStore, mode: Mode, **options: Any) -> Receipt:
    return erase(store, ANN, **options) if mode is Mode.BLOCKING else await async_erase(store, ANN, **options)


async def prune_it(store: InMemoryStore, mode: Mode, **options: Any) -> Pruned:
    return prune(store, **options) if mode is Mode.BLOCKING else await async_prune(store, **options)


async def left(store: InMemoryStore) -> list[int]:
    return sorted(int(each.text[-1]) for each in await Chunks(store).every())


async def test_erasing_a_person_deletes_the_chunks_of_all_spaces(store: InMemoryStore, mode: Mode) -> None:
    counted = await erase_it(store, mode, dry_run=True)
    assert await left(store) == [*range(COUNT)]
    receipt = await erase_it(store, mode)
    assert counted.rows == receipt.rows == {"chunks": 3}
    assert await left(store) == [1, 2, 4, 5, 7, 8]
    assert find_text(store, "\u2603") == {}
    assert (await erase_it(store, mode)).rows == {}


async def test_an_erased_person_gets_chunks_again_after_a_readmission(store: InMemoryStore, mode: Mode) -> None:
    await erase_it(store, mode)
    with pytest.raises(ErasedError):
        await Chunks(store, mode).add(row("day 0", owner=ANN))
    assert readmit(store, ANN) if mode is Mode.BLOCKING else await async_readmit(store, ANN)
    await Chunks(store, mode).add(row("day 0", owner=ANN))
    assert await left(store) == [0, 1, 2, 4, 5, 7, 8]


async def test_the_eraser_finds_only_what_belongs_to_the_person(store: InMemoryStore) -> None:
    eraser = KnowledgeEraser(store.suspending)
    found = [each async for page in eraser.owned(stored_name("owner", ANN)) for each in page]
    mine = [each for each in await Chunks(store).every() if each.owner == stored_name("owner", ANN)]
    assert found == [Owned(each.id, (), {"chunks": 1}) for each in mine]
    assert [page async for page in eraser.owned("nobody")] == []
    assert await eraser.delete(()) == {}
    assert await eraser.delete(found) == {"chunks": 3}
    assert await eraser.delete(found) == {"chunks": 0}, "nothing of it is there any more"


NOBODYS = [1, 4, 7]

BOUNDS: list[tuple[Mapping[str, Any], Sequence[int]]] = [
    ({"older_than": "3d"}, sorted({*NOBODYS, 6, 7, 8})),
    ({"older_than": "1d", "owner": "bob"}, [0, 1, 3, 4, 6, 7, 8]),
    ({"older_than": "1d", "owner": "eve"}, [*range(COUNT)]),
    ({"keep_last": 1}, [*range(COUNT)]),
    ({"max_tokens": 1}, [*range(COUNT)]),
    ({"keep_last": 1, "older_than": "4d"}, sorted({*NOBODYS, 5, 6, 7, 8})),
]


@pytest.mark.parametrize(("bounds", "stays"), BOUNDS, ids=str)
async def test_only_old_chunks_of_people_go(
    store: InMemoryStore, mode: Mode, bounds: Mapping[str, Any], stays: list[int]
) -> None:
    with stopped(START + timedelta(days=9)):
        counted = await prune_it(store, mode, dry_run=True, **bounds)
        assert await left(store) == [*range(COUNT)]
        pruned = await prune_it(store, mode, **bounds)
    assert await left(store) == stays
    assert counted.rows == pruned.rows == ({"chunks": COUNT - len(stays)} if len(stays) < COUNT else {})


async def test_a_chunk_that_is_added_again_meanwhile_stays(
    store: InMemoryStore, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = KnowledgePruner.delete
    again = row("day 0", day=9, owner=ANN, space="space 0", collection="collection 0")

    async def add_and_delete(pruner: KnowledgePruner, doomed: Sequence[Doomed]) -> Any:
        await Chunks(store, mode)("delete", [again.id])
        await Chunks(store, mode).add(again)
        return await delete(pruner, doomed)

    monkeypatch.setattr(KnowledgePruner, "delete", add_and_delete)
    with stopped(START + timedelta(days=9)):
        pruned = await prune_it(store, mode, older_than="3d")
    assert await left(store) == [0, 1, 4, 6, 7, 8]
    assert pruned.rows == {"chunks": 3}

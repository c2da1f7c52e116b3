"""A facet of another package says what its rows can be filtered by. Every store filters before it cuts to a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from firefly_memory import EntryStore, InMemoryStore
from firefly_memory.search import searching
from firefly_memory.search.counting import KeptCounts
from firefly_memory.search.embedders.batches import embed_all
from firefly_memory.search.filters import Conditions, conditions_of
from firefly_memory.search.hits import checked_request
from firefly_memory.search.index import SearchIndex, Vector
from firefly_memory.search.results import Found
from firefly_memory.search.searching import Searcher, beside_the_loop
from firefly_memory.search.signatures import signature_bytes, vector_bytes
from firefly_memory.testing.clock import StoppedClock, stopped
from tests.registry.conftest import Open
from tests.support.knowledge_stores import Letters
from tests.toy_facet.facet import key
from tests.toy_facet.log import LANGUAGE, Note, ToyLog, scope_of, subject

NOW = datetime.fromisoformat("2024-05-06T07:08:09.123456+00:00")
SOON = NOW + timedelta(hours=1)
EMBEDDER = Letters()
PEOPLE = ("ann", "ben", None)
SCOPES = [scope_of(each) for each in PEOPLE]

NOTES = [
    Note(f"{person or 'nobody'} {number}", f"dog {'dog ' * number}{number}", expires, person, group, number)
    for person in PEOPLE
    for number, (expires, group) in enumerate([(None, "g"), (SOON, "g"), (None, "g"), (None, None), (SOON, None)])
]

FILTERS: list[dict[str, Any]] = [
    {},
    {"owner": ["ann"]},
    {"owner": ["ann", "ben", "ann", "it's % $1 \u00e9"]},
    {"owner": []},
    {"owner": ["nobody we know"]},
    {"position": 2},
    {"position": 1.5},
    {"position": -1},
    {"position": 9},
    {"owner": ("ben",), "position": 1},
]


@pytest.fixture
def now() -> Iterator[StoppedClock]:
    with stopped(NOW) as standing:
        yield standing


def log_of(store: EntryStore) -> ToyLog:
    return store.suspending.log(key())


async def put(store: EntryStore, notes: Sequence[Note], now: StoppedClock) -> None:
    now.set(NOW)
    for note in notes:
        now.advance(microseconds=1)
        (vector,) = embed_all(EMBEDDER, [note.body])
        await log_of(store).put(note, Vector(EMBEDDER.name, vector_bytes(vector), signature_bytes(vector)))


@pytest.fixture
async def store(open_store: Open, now: StoppedClock) -> AsyncIterator[EntryStore]:
    async with open_store() as store:
        await put(store, NOTES, now)
        yield store


async def found(
    store: EntryStore, question: str, mode: Any, filters: dict[str, Any] | None = None, most: int = 100
) -> list[Found]:
    index = log_of(store).index
    search = Searcher(subject(1), index, EMBEDDER, LANGUAGE, beside_the_loop, KeptCounts(), set())
    return await search.found(checked_request(question, most, mode, explain=True), SCOPES, filters)


def passing(filters: dict[str, Any], now: StoppedClock) -> set[str]:
    return {
        note.note_id
        for note in NOTES
        if (note.expires_at is None or note.expires_at > now.now())
        and ("owner" not in filters or note.owner in filters["owner"])
        and note.position >= filters.get("position", 0)
    }


async def test_hits_are_those_that_pass_and_the_same_in_every_store(store: EntryStore, now: StoppedClock) -> None:
    async with InMemoryStore() as reference:
        await put(reference, NOTES, now)
        for moment, mode in product((NOW + timedelta(minutes=1), SOON), ("text", "semantic", "hybrid", "fuzzy")):
            now.set(moment)
            for filters in FILTERS if mode != "semantic" else FILTERS[-3:]:
                hits = await found(store, "dog", mode, filters)
                assert {hit.id for hit in hits} == passing(filters, now), filters
                assert hits == await found(reference, "dog", mode, filters)
                assert hits[:2] == await found(store, "dog", mode, filters, 2)


async def test_a_neighbour_that_does_not_pass_lends_nothing(store: EntryStore, now: StoppedClock) -> None:
    await put(
        store, [Note("asks", "the piano", None, "carl", "g", 1), Note("beside", "yes", None, "carl", "g", 2)], now
    )
    scope = [scope_of("carl")]
    search = Searcher(subject(1), log_of(store).index, None, LANGUAGE, beside_the_loop, KeptCounts(), set())
    request = checked_request("piano", 9, "text", explain=False)
    assert [each.id for each in await search.found(request, scope)] == ["asks", "beside"]
    assert [each.id for each in await search.found(request, scope, {"position": 2})] == []
    assert [each.id for each in await search.found(request, scope, {"position": 1})] == ["asks", "beside"]


async def test_rows_that_do_not_pass_take_no_place_among_the_candidates(
    store: EntryStore, now: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "CANDIDATES", 3)
    monkeypatch.setattr(searching, "NEAREST", 3)
    await put(store, [Note(f"better {number}", "dog", None, "ann") for number in range(5)], now)
    for mode in ("text", "semantic", "hybrid", "fuzzy"):
        (hit,) = await found(store, "dog", mode, {"owner": ["ann"], "position": 3}, 1)
        assert hit.id in ("ann 3", "ann 4")


async def test_each_question_to_the_index_is_filtered(store: EntryStore, now: StoppedClock) -> None:
    def where(**filters: Any) -> Conditions:
        return conditions_of(subject(1).filters, filters)

    index: SearchIndex = log_of(store).index
    every = [note.note_id for note in NOTES]
    for filters in FILTERS:
        wanted = passing(filters, now)
        assert set(await index.best(SCOPES, {"dog": 2}, 99, where(**filters))) == wanted
        assert set(await index.best(SCOPES, {"dog": 2, "1": 5}, 99, where(**filters))) == wanted
        assert {each.id for each in await index.around(SCOPES, every, where(**filters))} == wanted
        assert set(await index.containing(SCOPES, "dog", 99, where(**filters))) == wanted
        signatures = await index.signatures(SCOPES, EMBEDDER.name, len(NOTES), where(**filters))
        assert signatures is not None
        assert set(signatures.ids) == wanted
        if wanted:
            assert await index.signatures(SCOPES, EMBEDDER.name, len(wanted) - 1, where(**filters)) is None
            assert set(await index.best(SCOPES, {"dog": 2}, 1, where(**filters))) <= wanted
        ann = {note.note_id for note in NOTES if note.owner == "ann"}
        assert set(await index.best(SCOPES[:1], {"dog": 2}, 99, where(**filters))) == wanted & ann
        assert set((await index.signatures(SCOPES[:1], EMBEDDER.name, 99, where(**filters)) or signatures).ids) == (
            wanted & ann
        )


@pytest.mark.parametrize("mode", ["text", "fuzzy"])
async def test_a_filter_that_the_subject_lacks_is_an_error(toy: None, mode: str) -> None:
    async with InMemoryStore() as store:
        with pytest.raises(KeyError, match="body"):
            await found(store, "dog", mode, {"body": ["dog"]})

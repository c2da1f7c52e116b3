"""The notes of a facet of another package are searched, without a change to the library: ``git diff`` shows none below
``src``. The toy says what of its notes is searched and who are neighbours. It has no search of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pymongo
import pytest

from firefly_memory import EntryStore, ErasedError, InMemoryStore, MongoDBStore, clock, connect, erasure, service
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.search import searching
from firefly_memory.search.counting import KeptCounts
from firefly_memory.search.embedders.batches import embed_all
from firefly_memory.search.hits import Explanation, Hit, checked_request
from firefly_memory.search.index import Vector
from firefly_memory.search.neighbours import BEFORE
from firefly_memory.search.searching import NO_EMBEDDER, Searcher, beside_the_loop
from firefly_memory.search.signatures import signature_bytes, vector_bytes
from firefly_memory.testing import Mode
from firefly_memory.testing.clock import StoppedClock, stopped
from tests.registry.conftest import Open
from tests.support.backends import Place
from tests.support.facet_package import NAME, environment, run, write_package
from tests.support.knowledge_stores import Letters
from tests.support.servers import EmbeddedMongoDB
from tests.support.spare_places import lent_database
from tests.toy_facet.facet import key
from tests.toy_facet.log import LANGUAGE, Note, ToyLog, scope_of, subject

KIND = "toy-1-notes"
NOW = datetime.fromisoformat("2024-05-06T07:08:09.123456+00:00")
VECTOR = Vector("letters", bytes(104), bytes(4))

DOG = Note("dog", "The dog is called Rex.", owner="ann", group="talk")
BARKS = Note("barks", "He barks at night.", owner="ann", group="talk", position=1)
FAR = Note("far", "It is late.", owner="ann", group="talk", position=5)
CAT = Note("cat", "The cat is called Tom.", owner="ann")
OF_BEN = Note("of ben", "A dog of Ben's.", owner="ben", group="talk", position=1)
NOBODYS = Note("\u00fc \U0001f600", "A dog of nobody's.")
NOTES = (DOG, BARKS, FAR, CAT, OF_BEN, NOBODYS)


@pytest.fixture
def now() -> Iterator[StoppedClock]:
    with stopped(NOW) as standing:
        yield standing


def log_of(store: EntryStore) -> ToyLog:
    return store.suspending.log(key())


async def put_all(store: EntryStore, now: StoppedClock, notes: Sequence[Note] = NOTES) -> None:
    for note in notes:
        now.advance(microseconds=1)
        await log_of(store).put(note)


@pytest.fixture
async def store(open_store: Open, now: StoppedClock) -> AsyncIterator[EntryStore]:
    async with open_store() as store:
        await put_all(store, now)
        yield store


async def searched(store: EntryStore, form: Mode, question: str, **options: Any) -> tuple[Hit, ...]:
    if form is Mode.BLOCKING:
        return service.search(store, KIND, question, **options)
    return await service.async_search(store, KIND, question, **options)


async def ids(store: EntryStore, question: str, top_k: int = 10, mode: Any = "text", **where: str) -> list[str]:
    return [hit.id for hit in await service.async_search(store, KIND, question, top_k, mode, where=where)]


QUESTIONS: list[tuple[str, str, str | None, list[Note]]] = [
    ("text", "what is the dog called?", "ann", [DOG, BARKS, CAT]),
    ("text", "DOGS", "ann", [DOG, BARKS]),
    ("text", "dog", "ben", [OF_BEN]),
    ("text", "dog", None, [NOBODYS]),
    ("text", "dog", "nobody we know", []),
    ("text", "elephant", "ann", []),
    ("best", "the cat", "ann", [CAT]),
    ("fuzzy", "is  CALLED", "ann", [CAT, DOG]),  # the newest first
    ("fuzzy", "og", None, [NOBODYS]),
    ("fuzzy", "dogs", "ann", []),
    ("fuzzy", "%", "ann", []),
]


@pytest.mark.parametrize("mode", Mode)
async def test_the_same_hits_come_in_the_same_order_from_every_store(
    store: EntryStore, now: StoppedClock, mode: Mode
) -> None:
    async with InMemoryStore() as reference:
        now.set(NOW)
        await put_all(reference, now)
        for how, question, owner, notes in QUESTIONS:
            where = {} if owner is None else {"owner": owner}
            hits = await searched(store, mode, question, mode=how, where=where, explain=True)
            assert [(hit.id, hit.text) for hit in hits] == [(note.note_id, note.body) for note in notes]
            assert hits == await searched(reference, mode, question, mode=how, where=where, explain=True)
            for top_k in (1, 2):
                assert await ids(store, question, top_k, how, **where) == [each.id for each in hits][:top_k]
            for hit in hits:
                row = await service.async_get(store, KIND, hit.id)
                assert row is not None
                assert (row["body"], row["owner"]) == (hit.text, owner)


async def test_a_note_lends_its_words_to_those_beside_it(store: EntryStore) -> None:
    dog, barks = await searched(store, Mode.SUSPENDING, "dog", mode="text", where={"owner": "ann"}, explain=True)
    assert dog.explanation is not None
    assert dog.explanation.text is not None
    (weight,) = dog.explanation.text.words.values()
    assert barks.explanation is not None
    assert barks.explanation.text is not None
    (lent,) = barks.explanation.text.lent
    assert (lent.word, lent.neighbour) == ("dog", "dog")
    assert lent.weight == pytest.approx(weight * BEFORE)


async def test_a_note_is_found_by_what_it_is_now(store: EntryStore, now: StoppedClock) -> None:
    await put_all(store, now, [DOG._replace(body="A bird.", group="elsewhere"), CAT._replace(owner="ben")])
    assert await ids(store, "dog", owner="ann") == []
    assert await ids(store, "bird", owner="ann") == ["dog"], "and no neighbour"
    assert await ids(store, "called", 9, "fuzzy", owner="ann") == []
    assert await ids(store, "cat", owner="ben") == ["cat"]
    await put_all(store, now, [DOG, CAT._replace(group="talk", position=2)])
    assert await ids(store, "dog", owner="ann") == ["dog", "barks", "cat"]
    await put_all(store, now, [CAT])
    assert await ids(store, "dog", owner="ann") == ["dog", "barks"], "it has left the group"
    assert await log_of(store).delete(["dog"], now.now()) == 1
    assert await ids(store, "dog", owner="ann") == []


@pytest.mark.parametrize("mode", ["text", "fuzzy"])
async def test_notes_that_have_expired_take_no_place_among_the_hits(
    store: EntryStore, now: StoppedClock, mode: str
) -> None:
    soon = now.now() + timedelta(minutes=1)
    some = [Note(f"old {number}", "A dog is a dog.", soon, "carl") for number in range(5)]
    await put_all(store, now, [*(Note(f"new {number}", "A dog.", None, "carl") for number in range(2)), *some])
    assert (await ids(store, "a dog", 9, mode, owner="carl"))[:5] == sorted(
        (note.note_id for note in some), reverse=mode == "fuzzy"
    )
    now.advance(minutes=2)
    live = ["new 1", "new 0"] if mode == "fuzzy" else ["new 0", "new 1"]
    assert await ids(store, "a dog", 9, mode, owner="carl") == live
    assert await ids(store, "a dog", 1, mode, owner="carl") == live[:1]
    assert await store.cleanup_expired() == 5
    assert await ids(store, "a dog", 9, mode, owner="carl") == live


@pytest.mark.parametrize("mode", ["text", "fuzzy", "semantic", "hybrid"])
async def test_many_expired_notes_hide_no_live_one(
    store: EntryStore, now: StoppedClock, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "NEAREST", 30)  # so that few notes are more than these
    embedder, log, soon = Letters(), log_of(store), now.now() + timedelta(minutes=1)
    old = [Note(f"old {number}", "dog dog", soon, "carl", "dogs", number) for number in range(120)]
    for note in (*old, Note("live", "A dog at last.", None, "carl", "dogs", 120)):
        (vector,) = embed_all(embedder, [note.body])
        await log.put(note, Vector(embedder.name, vector_bytes(vector), signature_bytes(vector)))
    search = Searcher(subject(1), log.index, embedder, LANGUAGE, beside_the_loop, KeptCounts(), set())

    async def found(most: int) -> list[str]:
        request = checked_request("dog", most, mode, explain=False)
        return [each.id for each in await search.found(request, [scope_of("carl")])]

    assert len(await found(121)) > 30
    now.advance(minutes=2)
    assert await found(10) == ["live"], "nothing has expired notes as neighbours"
    assert await log.index.people([scope_of("carl")], 10) == ["carl"]
    assert await log.delete(["live"], now.now()) == 1
    assert (await found(10), await log.index.people([scope_of("carl")], 10)) == ([], [])


async def test_without_an_embedder_a_hit_says_so(store: EntryStore) -> None:
    (hit,) = await searched(store, Mode.SUSPENDING, "dog", explain=True, embedder=None)
    assert (hit.explanation or Explanation()).notes == (NO_EMBEDDER,)


def test_the_command_line_finds_notes(searched_url: str, tmp_path: Path) -> None:
    package = write_package(tmp_path)

    def lines(*arguments: str) -> list[str]:
        command = ["firefly-memory", "search", KIND, *arguments, "--facet", NAME, "--url", searched_url]
        ended = run(command, environment(package), tmp_path)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout.splitlines()

    titles, *rows = lines("what is the dog called", "--owner", "ann")
    assert titles.split() == ["rank", "score", "id", "text", "owner"]
    assert [row.split()[2] for row in rows] == ["dog", "barks", "cat"]
    (line,) = lines("called", "--owner", "ann", "--mode", "fuzzy", "--json")
    assert [(hit["id"], hit["ranks"], hit["owner"]) for hit in json.loads(line)["hits"]] == [
        ("cat", {"fuzzy": 1}, "ann"),
        ("dog", {"fuzzy": 2}, "ann"),
    ]
    assert lines("elephant", "--owner", "ann") == []


@pytest.fixture(params=["sqlite", "postgresql", "mongodb"])
def searched_url(request: pytest.FixtureRequest, place: Place, toy: None) -> str:
    """Of a database with the notes."""
    if request.param == "mongodb":
        own = place.later.enter_context(lent_database(place.mongodb()))
        url = urlunsplit(urlsplit(place.mongodb())._replace(path=f"/{own}"))
    else:
        url = request.getfixturevalue(request.param)
    with connect(url) as store, stopped(NOW) as now:
        for note in NOTES:
            now.advance(microseconds=1)
            run_without_loop(store.blocking.log(key()).put(note))
    return url


# Vectors, which the toy makes none of: what has to be deleted with a note.


@pytest.fixture(scope="module")
def standalone() -> Iterator[EmbeddedMongoDB]:
    """A server without transactions."""
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    yield server
    server.remove()


async def with_vectors(store: EntryStore) -> set[str]:
    """The ids of all notes that have a vector."""
    index = log_of(store).index
    found = await index.signatures([scope_of(owner) for owner in (None, "ann", "ben")], VECTOR.embedder, 100)
    assert found is not None
    assert await index.vectors(VECTOR.embedder, ["gone", *(note.note_id for note in NOTES)]) == dict.fromkeys(
        found.ids, VECTOR.vector
    )
    return set(found.ids)


async def check_that_vectors_go_with_their_notes(store: EntryStore) -> None:
    log, all_ids = log_of(store), {note.note_id for note in NOTES}
    for note in NOTES:
        await log.put(note, VECTOR)
    await log.put(Note("gone", "It is over.", clock.now()), VECTOR)
    assert await with_vectors(store) == {*all_ids, "gone"}
    assert await store.cleanup_expired() == 1
    assert await with_vectors(store) == all_ids
    await log.put(CAT._replace(owner="ben", body="Another text."))
    assert await with_vectors(store) == all_ids - {"cat"}
    await log.put(CAT, VECTOR)
    assert await with_vectors(store) == all_ids
    assert await log.delete(["dog", "unknown", NOBODYS.note_id], clock.now()) == 2
    assert await with_vectors(store) == {"barks", "cat", "far", "of ben"}
    await erasure.async_erase(store, "ann")
    assert await with_vectors(store) == {"of ben"}
    for note in (DOG, OF_BEN._replace(owner="ann")):
        with pytest.raises(ErasedError):
            await log.put(note, VECTOR)
    assert await with_vectors(store) == {"of ben"}
    assert await ids(store, "dog", owner="ben") == ["of ben"]


async def test_vectors_go_with_their_notes(open_store: Open) -> None:
    async with open_store() as store:
        await check_that_vectors_go_with_their_notes(store)


@pytest.mark.usefixtures("toy")
async def test_vectors_go_with_their_notes_without_transactions(standalone: EmbeddedMongoDB) -> None:
    async with MongoDBStore(standalone.url, database="toys") as store:
        await check_that_vectors_go_with_their_notes(store)
        with pymongo.MongoClient[dict[str, Any]](standalone.url) as client:
            client["toys"]["toy_1_notes_signatures"].insert_one({"id": "left", "embedder": "letters", "owner": "carl"})
            await erasure.async_erase(store, "carl")
            assert client["toys"]["toy_1_notes_signatures"].count_documents({"id": "left"}) == 0

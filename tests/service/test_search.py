"""Rows are searched by a question: what is found, by which filters, and what is said about anything else."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine

import firefly_memory.knowledge
from firefly_memory import (
    ConfigurationError,
    EntryStore,
    FileStore,
    FireflyMemoryError,
    InMemoryStore,
    InvalidEntryError,
    NotSupportedError,
    PostgreSQLStore,
    SchemaMismatchError,
    SQLiteStore,
    adapt,
    service,
)
from firefly_memory.facets import all_facets, registered
from firefly_memory.knowledge import Chunk, Hit, KnowledgeStore
from firefly_memory.knowledge import searching as chunk_search
from firefly_memory.looking import resources_of
from firefly_memory.search.embedders import default
from firefly_memory.search.hits import MODES, Explanation
from firefly_memory.service.registered import search_of
from firefly_memory.service.searching import checked_filters
from firefly_memory.testing import Mode
from tests.service.conftest import store_of
from tests.support.backends import Place
from tests.support.empty_store import opened_empty
from tests.support.folder_backend import FolderStore
from tests.support.knowledge_stores import of_its_own
from tests.toy_facet.facet import key, toys
from tests.toy_facet.log import Note

WITH_MONGODB = Path(firefly_memory.knowledge.__file__).with_name("mongodb").joinpath("log.py").exists()
KINDS = ["memory", "sqlite", "asyncpg", "psycopg", *(["mongodb"] if WITH_MONGODB else [])]

DOG, BARK, CAT, SECRET, ELSEWHERE = (
    Chunk("The dog is called Rex.", who="Ann", group="talk"),
    Chunk("He barks at night.", who="Ben", group="talk"),
    Chunk("The cat is called Tom."),
    Chunk("The dog bit me."),
    Chunk("Another dog."),
)


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[EntryStore]:
    """With chunks of nobody and of one person, in two collections and two spaces."""
    async with opened_empty(store_of(request.param, place), "looking") as store:
        await service.async_delete(store, "chunks", where={})
        knowledge = KnowledgeStore(store)
        await knowledge.async_add("notes", [DOG, BARK, CAT], source={"file": "a.txt"})
        await knowledge.async_add("notes", SECRET, owner="ann")
        await knowledge.async_add("other", ELSEWHERE)
        await KnowledgeStore(store, space="acme").async_add("notes", ELSEWHERE)
        yield store
        await service.async_delete(store, "chunks", where={})


class Search:
    """``service.search()`` on one store, in one mode."""

    def __init__(self, store: EntryStore, mode: Mode) -> None:
        self.store = store
        self._mode = mode

    async def __call__(self, question: Any, *arguments: Any, kind: str = "chunks", **options: Any) -> tuple[Hit, ...]:
        if self._mode is Mode.BLOCKING:
            return service.search(self.store, kind, question, *arguments, **options)
        return await service.async_search(self.store, kind, question, *arguments, **options)

    async def texts(self, question: str, mode: str = "text", **where: str) -> list[str]:
        """The texts of the hits in a collection, by default in that of the notes."""
        hits = await self(question, mode=mode, where={"collection": "notes", **where})
        return [hit.text for hit in hits]


@pytest.fixture(params=Mode)
def search(request: pytest.FixtureRequest, store: EntryStore) -> Search:
    return Search(store, request.param)


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("mode", MODES)
async def test_chunks_are_found_as_their_own_store_finds_them(search: Search, mode: Any, explain: bool) -> None:
    for owner in (None, "ann"):
        where = {"collection": "notes"} if owner is None else {"collection": "notes", "owner": owner}
        hits = await search("the dog", 3, mode, where=where, explain=explain)
        own = KnowledgeStore(search.store).search("notes", "the dog", 3, mode, owner=owner, explain=explain)
        assert hits == tuple(own)
        assert DOG.text in [hit.text for hit in hits]
        assert all((hit.explanation is not None) == explain for hit in hits)


async def test_filters_say_what_is_searched(search: Search) -> None:
    assert await search.texts("dog") == [DOG.text, BARK.text], "its neighbour as well"
    assert set(await search.texts("dog", owner="ann")) == {DOG.text, BARK.text, SECRET.text}
    assert SECRET.text not in await search.texts("dog", owner="ben")
    assert await search.texts("dog", collection="other") == [ELSEWHERE.text]
    assert await search.texts("dog", space="acme") == [ELSEWHERE.text]
    assert await search.texts("dog", space="") == await search.texts("dog")
    assert await search.texts("dog", space="nowhere") == await search.texts("dog", collection="nothing") == []
    assert await search.texts("elephant") == []


async def test_a_hit_has_the_id_of_its_row(search: Search) -> None:
    hits = await search("what is the dog called", where={"collection": "notes", "owner": "ann"})
    assert len(hits) > 2
    for hit in hits:
        row = service.get(search.store, "chunks", hit.id)
        assert row is not None
        assert (row["id"], row["text"]) == (hit.id, hit.text)


async def test_so_many_hits_are_given_as_are_wanted(search: Search) -> None:
    all_hits = await search("dog cat", where={"collection": "notes"}, mode="text")
    assert len(all_hits) == 3
    for top_k in (1, 2, 1_000):
        assert await search("dog cat", top_k, "text", where={"collection": "notes"}) == all_hits[:top_k]


EVIL = "\x1b[2J\r\n\u202etxt\u2066\x00\ud800 % _ ' OR 1=1 -- \x10 \U0001f600"


async def test_any_text_may_be_a_question_or_a_filter(search: Search) -> None:
    knowledge = KnowledgeStore(search.store, space=EVIL)
    (chunk_id,) = await knowledge.async_add(EVIL, Chunk(f"dog {EVIL}", who=EVIL), source={EVIL: EVIL}, owner=EVIL)
    where = {"collection": EVIL, "space": EVIL, "owner": EVIL}
    for mode in MODES:
        (hit,) = await search(f"dog {EVIL}", mode=mode, where=where)
        assert (hit.id, hit.text) == (chunk_id, f"dog {EVIL}")
        for other in ({**where, "space": EVIL[:-1]}, {**where, "owner": EVIL[1:]}, {**where, "collection": "notes"}):
            assert await search(f"dog {EVIL}", mode=mode, where=other) == ()
    for question in ("", " ", EVIL, "dog OR cat", 'dog"', "NEAR(dog", "dog & !cat", "$where", "\ud800", "\0"):
        for mode in MODES:
            await search(question, mode=mode, where={"collection": "notes"})


NOTHING = InMemoryStore()
SEARCHED = ", ".join(each.kind for facet in all_facets() for each in resources_of(facet) if each.search is not None)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"kind": "people"}, ConfigurationError, "there is no kind 'people'; there are entries, "),
        ({"kind": None}, ConfigurationError, "there is no kind None"),
        ({"kind": "entries"}, ConfigurationError, f"entries cannot be searched; {SEARCHED} can"),
        ({"where": {}}, InvalidEntryError, "where: chunks are searched by their collection; name it: collection=…"),
        ({"where": None}, InvalidEntryError, "chunks are searched by their collection"),
        ({"where": {"owner": "ann"}}, InvalidEntryError, "chunks are searched by their collection"),
        ({"where": {"colour": "red"}}, InvalidEntryError, "by 'colour'; there are collection, space, owner"),
        ({"where": {"owner~": "ann"}}, InvalidEntryError, "chunks cannot be searched by 'owner~'"),
        ({"where": {5: "ann"}}, InvalidEntryError, "chunks cannot be searched by 5"),
        ({"where": {"collection": 5}}, InvalidEntryError, r"where\['collection'\]: must be text, not int"),
        ({"where": {"collection": "n", "owner": None}}, InvalidEntryError, "must be text, not NoneType"),
        ({"where": {"collection": ["n"]}}, InvalidEntryError, "must be text, not list"),
        ({"where": {"collection": ""}}, InvalidEntryError, "collection: must not be empty"),
        ({"where": {"collection": "n", "owner": ""}}, InvalidEntryError, "owner: must not be empty"),
        ({"where": {"collection": "n" * 513}}, InvalidEntryError, "is 513 characters long"),
        ({"where": ["collection"]}, InvalidEntryError, "must be a mapping of filters to values, not list"),
        ({"question": None}, InvalidEntryError, "question: must be text, not NoneType"),
        ({"question": b"dog"}, InvalidEntryError, "question: must be text, not bytes"),
        ({"top_k": 0}, ConfigurationError, "top_k must be a whole number from 1 up, not 0"),
        ({"top_k": True}, ConfigurationError, "top_k must be a whole number"),
        ({"top_k": 1_001}, InvalidEntryError, "top_k: is 1001; a search gives at most 1000 hits"),
        ({"top_k": 10**5_000}, InvalidEntryError, "top_k: is an int too long to show"),
        ({"mode": "exact"}, ConfigurationError, "mode must be 'best', 'hybrid', 'text', 'semantic' or 'fuzzy'"),
        ({"mode": ["text"]}, ConfigurationError, "mode must be"),
        ({"explain": 1}, ConfigurationError, "explain must be True or False, not 1"),
    ],
)
@pytest.mark.parametrize("mode", Mode)
async def test_what_cannot_be_asked_for_is_said(
    mode: Mode, arguments: dict[str, Any], error: type[FireflyMemoryError], said: str
) -> None:
    asked: dict[str, Any] = {"question": "dog", "where": {"collection": "notes"}, **arguments}
    with pytest.raises(error, match=said):
        await Search(NOTHING, mode)(asked.pop("question"), **asked)


def test_a_search_without_filters_says_so() -> None:
    resource, search = search_of("chunks")
    with pytest.raises(InvalidEntryError, match="chunks cannot be searched by 'owner'; there are no filters"):
        checked_filters(resource, replace(search, needs=(), takes=()), {"owner": "ann"})


@pytest.mark.parametrize("mode", Mode)
async def test_a_store_that_cannot_keep_chunks_says_so(tmp_path: Path, mode: Mode) -> None:
    for store in (FileStore(tmp_path / "files"), adapt(FolderStore(tmp_path / "five"))):
        with pytest.raises(NotSupportedError, match="knowledge cannot be kept in"):
            await Search(store, mode)("dog", where={"collection": "notes"})
    assert not (tmp_path / "files").exists()


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


@pytest.mark.parametrize("mode", Mode)
async def test_a_database_is_not_made(tmp_path: Path, place: Place, mode: Mode) -> None:
    stores = [
        SQLiteStore(tmp_path / "none.db"),
        PostgreSQLStore(place.postgresql(), schema_name="nothing_to_search"),
    ]
    for store in stores:
        with pytest.raises(SchemaMismatchError):
            await Search(store, mode)("dog", where={"collection": "notes"})
        await store.close()
    assert names_in(tmp_path) == []
    with psycopg.connect(place.postgresql()) as admin:
        assert not admin.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'nothing_to_search'").fetchall()


def test_chunks_of_a_transaction_are_found_in_it(place: Place, name: str) -> None:
    engine = create_engine(place.with_driver("psycopg"))
    with PostgreSQLStore(place.postgresql(), schema_name=name) as store, engine.connect() as connection:
        bound = store.bind(connection)
        KnowledgeStore(bound).add("notes", DOG)
        assert [hit.text for hit in service.search(bound, "chunks", "dog", where={"collection": "notes"})] == [DOG.text]
        assert service.search(store, "chunks", "dog", where={"collection": "notes"}) == ()
        connection.rollback()
    engine.dispose()


@pytest.mark.parametrize("mode", Mode)
async def test_words_are_stemmed_by_the_language_of_the_database(tmp_path: Path, mode: Mode) -> None:
    for store in (InMemoryStore(), SQLiteStore(tmp_path / "memory.db")):
        with store:
            KnowledgeStore(store, language="german").add("notes", ["Die Häuser sind alt.", "Die Straße ist neu."])
            assert await Search(store, mode).texts("Haus") == ["Die Häuser sind alt."]


@pytest.fixture
def without_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the packages of the default embedder were not installed."""
    monkeypatch.setattr(default, "_PACKAGES", ("no_package_has_this_name",))
    monkeypatch.setattr(chunk_search, "_SAID", set())


@pytest.mark.usefixtures("without_embedder")
@pytest.mark.parametrize("mode", Mode)
async def test_without_an_embedder_hits_say_what_the_search_did_without(
    mode: Mode, caplog: pytest.LogCaptureFixture
) -> None:
    with InMemoryStore() as store, caplog.at_level(logging.WARNING):
        KnowledgeStore(store).add("notes", [DOG, CAT])
        search = Search(store, mode)
        for _ in range(2):
            hits = await search("dog", where={"collection": "notes"}, explain=True)
            (note,) = (hits[0].explanation or Explanation()).notes
            assert "there is no embedder, so the search is for text only" in note
        assert caplog.messages == [f"chunks: {note}"], "the log says it once"
        with pytest.raises(ConfigurationError, match="mode='semantic' needs an embedder"):
            await search("dog", mode="semantic", where={"collection": "notes"})


def own_store(kind: str, place: Place, name: str) -> EntryStore:
    """In a place that no other test has."""
    match kind:
        case "memory":
            return InMemoryStore()
        case "sqlite":
            return SQLiteStore(place.directory / "memory.db")
        case driver:
            return PostgreSQLStore(place.with_driver(driver), schema_name=name, pool_min_size=0)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "asyncpg", "psycopg"])
@pytest.mark.parametrize("mode", Mode)
async def test_a_facet_of_another_package_is_searched(kind: str, place: Place, toy_revisions: Path, mode: Mode) -> None:
    with registered(toys(toy_revisions)), of_its_own(kind, place) as name:
        async with own_store(kind, place, name) as store:
            for note in (Note("n0", "a dog", owner="ann"), Note("n1", "a dog and a cat"), Note("n2", "a bird")):
                await store.suspending.log(key()).put(note)
            search = Search(store, mode)
            (hit,) = await search("dog cat", kind="toy-1-notes", explain=True)
            assert (hit.id, hit.text, hit.ranks) == ("n1", "a dog and a cat", {"text": 1})
            assert hit.explanation is not None
            assert hit.explanation.scores == {"text": hit.score}
            (hit,) = await search("dog cat", kind="toy-1-notes", where={"owner": "ann"})
            assert (hit.id, hit.text, hit.explanation) == ("n0", "a dog", None)
            assert [hit.id for hit in await search("a", 1, "fuzzy", kind="toy-1-notes")] == ["n2"]
            assert await search("dog", mode="semantic", kind="toy-1-notes") == (), "notes have no vectors"
            with pytest.raises(InvalidEntryError, match="cannot be searched by 'collection'; there are owner"):
                await search("dog", kind="toy-1-notes", where={"collection": "notes"})
            with pytest.raises(ConfigurationError, match=f"turns cannot be searched; {SEARCHED}, toy-1-notes can"):
                await search("dog", kind="turns")

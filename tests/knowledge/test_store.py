"""``KnowledgeStore`` on every store: its arguments, its embedder, its language, and where it works.

The rules of knowledge are in ``firefly_memory.testing.rules.knowledge``.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from uuid import uuid4

import psycopg
import pymongo
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from firefly_memory import (
    ConfigurationError,
    ConflictError,
    EntryStore,
    ErasedError,
    FileStore,
    FireflyMemoryError,
    InMemoryStore,
    InvalidEntryError,
    MongoDBStore,
    NotSupportedError,
    PostgreSQLStore,
    SQLiteStore,
    StoreClosedError,
    adapt,
)
from firefly_memory.erasure import async_erase
from firefly_memory.errors import EmbedderError
from firefly_memory.knowledge import Chunk, KnowledgeStore, embedding
from firefly_memory.knowledge.log import IndexLanguage
from firefly_memory.knowledge.rows import LARGEST_POSITION, LONGEST_TEXT, row_of
from firefly_memory.search import searching, words
from firefly_memory.search.embedders import default as default_embedder
from firefly_memory.search.embedders.adapters import CallableEmbedder
from firefly_memory.search.embedders.protocol import Embedder, Purpose, StaticEmbedder, Vector
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from firefly_memory.search.words import FORM, LONGEST_QUESTION, question_words
from firefly_memory.stores.sql import SQLStore
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.knowledge import Chunks
from tests.support.backends import Place
from tests.support.bound_stores import DRIVERS, KINDS, opened, opened_async
from tests.support.folder_backend import FolderStore
from tests.support.forked_child import in_child

Open = Callable[[Place, Path, str], EntryStore]

STORES: dict[str, Open] = {
    "memory": lambda _, __, ___: InMemoryStore(),
    "sqlite": lambda place, file, _: SQLiteStore(shutil.copy(file, place.directory / "memory.db")),
    "asyncpg": lambda place, _, name: PostgreSQLStore(place.with_driver("asyncpg"), schema_name=name),
    "psycopg": lambda place, _, name: PostgreSQLStore(place.with_driver("psycopg"), schema_name=name),
    "mongodb": lambda place, _, name: MongoDBStore(place.mongodb(), database=name),
}
"""A line for each kind of store, with the name of a schema or database."""

COMMON = "knowledge_of_tests"
"""The schema or database that the tests share. Each test has a space of its own in it."""

IN_EACH = pytest.mark.parametrize(("kind", "mode"), [(kind, mode) for kind in STORES for mode in Mode])
IN_ONE_SERVER = pytest.mark.parametrize(
    ("kind", "mode"), [(kind, mode) for kind in STORES if kind != "psycopg" for mode in Mode]
)

Make = Callable[..., Memory]


@pytest.fixture
async def make(kind: str, mode: Mode, place: Place, new_sqlite_file: Path) -> AsyncIterator[Make]:
    """Makes a ``KnowledgeStore`` of this test's own space, all of whose methods are to be awaited."""
    async with STORES[kind](place, new_sqlite_file, COMMON) as store:
        yield _made_in(store, mode, uuid4().hex)


def _made_in(store: EntryStore, mode: Mode, space: str = "") -> Make:
    return lambda **options: Memory(KnowledgeStore(store, **{"space": space, **options}), mode)


@pytest.fixture
async def new_store(kind: str, place: Place, new_sqlite_file: Path) -> AsyncIterator[EntryStore]:
    """A store in which nobody has decided a language."""
    name = f"own_{uuid4().hex[:12]}"
    try:
        async with STORES[kind](place, new_sqlite_file, name) as store:
            yield store
    finally:
        _dropped(kind, place, name)


def _dropped(kind: str, place: Place, name: str) -> None:
    if kind == "mongodb":
        with pymongo.MongoClient[dict[str, Any]](place.mongodb()) as client:
            client.drop_database(name)
    elif kind in ("asyncpg", "psycopg"):
        with psycopg.connect(place.postgresql(), autocommit=True) as server:
            server.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


async def found(knowledge: Memory, question: str, mode: str = "best", **options: Any) -> list[str]:
    return [hit.text for hit in await knowledge.search("notes", question, 100, mode, **options)]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name.startswith("firefly_memory")]


# Embedders


def letters(text: str) -> list[float]:
    """How often each letter is there."""
    return [float(text.lower().count(letter)) for letter in ascii_lowercase]


class Letters(StaticEmbedder):
    """A static embedder without a table."""

    name = "letters"
    dimensions = 26

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return [letters(text) for text in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.embed(texts)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        return letters("".join(text for text, _ in pieces))


class Broken:
    """A function that embeds until it is broken, and again when it is mended."""

    def __init__(self) -> None:
        self.calls = 0
        self.broken_after: float = 0
        self.error: BaseException = EmbedderError("letters", "it is broken")

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        if self.calls >= self.broken_after:
            raise self.error
        self.calls += 1
        return [letters(text) for text in texts]

    def mend(self) -> None:
        self.broken_after = float("inf")


def of_function(function: Any = None, *, dimensions: int = 26, queries: Any = None) -> CallableEmbedder:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [letters(text)[:dimensions] for text in texts]

    return CallableEmbedder(function or embed, queries=queries, name="letters", dimensions=dimensions)


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"static": Letters, "a function": of_function}


@IN_EACH
@pytest.mark.parametrize("embedder", EMBEDDERS)
async def test_what_means_the_same_is_found_without_a_word_of_the_question(make: Make, embedder: str) -> None:
    knowledge = make(embedder=EMBEDDERS[embedder]())
    near, other = await knowledge.add("notes", ["boot boot", "a wide field"])
    for mode in ("semantic", "hybrid", "best"):
        (first, *_) = await knowledge.search("notes", "boto", 5, mode, explain=True)
        assert (first.id, first.text, first.ranks) == (near, "boot boot", {"semantic": 1})
        assert first.explanation.semantic.cosine > 0.9
        assert first.explanation.notes == ()
    assert await found(knowledge, "boto", "text") == []
    (first, *_) = await knowledge.search("notes", "field", 5, "hybrid")
    assert (first.id, first.ranks) == (other, {"text": 1, "semantic": 1})
    await knowledge.delete("notes", [near])
    for mode in ("semantic", "hybrid"):
        assert await found(knowledge, "boto", mode) == ["a wide field"]
    await knowledge.delete("notes")
    assert await found(knowledge, "boto", "semantic") == []


@IN_ONE_SERVER
async def test_vectors_of_other_owners_collections_and_spaces_are_not_compared(make: Make) -> None:
    knowledge, of_another_space = make(embedder=Letters()), make(embedder=Letters(), space=uuid4().hex)
    ann, bob = uuid4().hex, uuid4().hex
    await knowledge.add("notes", "boot of nobody")
    for owner in (ann, bob):
        await knowledge.add("notes", f"boot of {owner}", owner=owner)
    await knowledge.add("others", "boot")
    await of_another_space.add("notes", "boot")
    for mode in ("semantic", "hybrid"):
        assert await found(knowledge, "boto", mode) == ["boot of nobody"]
        assert sorted(await found(knowledge, "boto", mode, owner=ann)) == sorted([f"boot of {ann}", "boot of nobody"])


@IN_ONE_SERVER
async def test_neighbours_in_a_group_lend_what_they_mean(make: Make) -> None:
    knowledge = make(embedder=of_function())
    said = ["wide wide", "boot boot", "fun", "field", "fell"]
    ids = await knowledge.add("notes", [Chunk(text, group="talk") for text in said])
    (first, second, *_) = await knowledge.search("notes", "boto", 10, "semantic", explain=True)
    assert (first.id, second.id) == (ids[1], ids[2])
    assert second.explanation.semantic.neighbour == ids[1]


@IN_EACH
async def test_texts_are_stored_if_the_embedder_fails_and_their_vectors_are_made_later(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken()
    knowledge = make(embedder=of_function(broken))
    with caplog.at_level(logging.WARNING):
        await knowledge.add("notes", ["boot boot", "a wide field"])
        assert len(warnings_in(caplog)) == 1
        await knowledge.add("notes", "one more")
    said = warnings_in(caplog)
    assert len(said) == 2, "one line for each call"
    assert "2 chunks are stored without vectors" in said[0]
    assert "embed_missing()" in said[0]
    assert "it is broken" in said[0]
    assert await found(knowledge, "boot", "text") == ["boot boot"]
    assert await found(knowledge, "boot", "fuzzy") == ["boot boot"]
    assert await found(knowledge, "boot", "hybrid") == ["boot boot"], "nothing has a vector, so nothing is embedded"
    with pytest.raises(EmbedderError, match="it is broken"):
        await knowledge.embed_missing()
    broken.mend()
    assert await knowledge.embed_missing() >= 3, "those of every space"
    assert await knowledge.embed_missing() == 0
    assert (await found(knowledge, "boto", "semantic"))[0] == "boot boot"


@IN_ONE_SERVER
async def test_a_text_that_is_added_again_gets_the_vector_that_it_lacks(make: Make) -> None:
    broken = Broken()
    knowledge = make(embedder=of_function(broken))
    ids = await knowledge.add("notes", ["boot boot", "a wide field"])
    broken.mend()
    assert await knowledge.add("notes", "boot boot") == ids[:1]
    assert await found(knowledge, "boto", "semantic") == ["boot boot"]
    assert await knowledge.count("notes") == 2


class KilledError(BaseException):
    """Ends a process."""


@pytest.mark.parametrize("end", [EmbedderError("letters", "it is broken"), KilledError()], ids=["failed", "killed"])
@IN_ONE_SERVER
async def test_making_vectors_goes_on_where_it_was_broken_off(
    make: Make, end: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_AT_ONCE", 2)
    name = uuid4().hex
    without, broken = make(embedder=None), Broken()
    knowledge = make(embedder=CallableEmbedder(broken, name=name, dimensions=26))
    broken.mend()
    before = await knowledge.embed_missing()  # of other tests
    await without.add("notes", [f"text {number}" for number in range(7)])
    broken.calls, broken.broken_after, broken.error = 0, 2, end
    with pytest.raises(type(end)):
        await knowledge.embed_missing()
    assert broken.calls == 2
    assert len(await found(knowledge, "text", "text")) == 7
    broken.mend()
    assert await knowledge.embed_missing() == 7 - 2 * 2, before
    assert broken.calls == 2 + 2
    assert len(await found(knowledge, "text", "semantic")) == 7


@IN_ONE_SERVER
async def test_a_search_without_its_embedder_is_for_text_and_says_so(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken()
    knowledge = make(embedder=of_function(queries=broken))
    await knowledge.add("notes", ["boot boot", "a wide field"])
    with caplog.at_level(logging.WARNING):
        for mode in ("hybrid", "best", "hybrid"):
            (hit,) = await knowledge.search("notes", "boot", 5, mode, explain=True)
            assert (hit.text, hit.ranks) == ("boot boot", {"text": 1})
            assert hit.explanation.notes == ("the embedder failed, so the search is for text only",)
    assert len(warnings_in(caplog)) == 1
    assert "the embedder failed" in warnings_in(caplog)[0]
    with pytest.raises(EmbedderError, match="it is broken"):
        await knowledge.search("notes", "boot", 5, "semantic")
    broken.mend()
    (hit, *_) = await knowledge.search("notes", "boot", 5, "hybrid", explain=True)
    assert (hit.ranks, hit.explanation.notes) == ({"text": 1, "semantic": 1}, ())


@IN_ONE_SERVER
async def test_without_an_embedder_the_search_is_for_text(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    knowledge = make(embedder=None)
    assert knowledge.embedder is None
    await knowledge.add("notes", ["boot boot", "a wide field"])
    with caplog.at_level(logging.WARNING):
        assert await found(knowledge, "boot", "text") == await found(knowledge, "boot", "fuzzy") == ["boot boot"]
        assert warnings_in(caplog) == []
        for mode in ("best", "hybrid", "best"):
            (hit,) = await knowledge.search("notes", "boot", 5, mode, explain=True)
            assert (hit.text, hit.ranks) == ("boot boot", {"text": 1})
            assert "there is no embedder" in hit.explanation.notes[0]
    assert len(warnings_in(caplog)) == 1
    assert "firefly-memory[embeddings]" in warnings_in(caplog)[0]
    for call in (knowledge.search("notes", "boot", 5, "semantic"), knowledge.embed_missing()):
        with pytest.raises(ConfigurationError, match=r"firefly-memory\[embeddings\]"):
            await call


def test_the_default_embedder_is_the_local_one_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(KnowledgeStore().embedder, WordLlamaEmbedder)
    monkeypatch.setattr(default_embedder, "find_spec", lambda _: None)
    assert KnowledgeStore().embedder is None


@pytest.mark.parametrize("mode", Mode)
async def test_the_default_embedder_finds_what_means_the_same(mode: Mode) -> None:
    knowledge = Memory(KnowledgeStore(), mode)
    await knowledge.add("notes", ["The invoice is overdue", "I adopted a puppy"])
    assert (await found(knowledge, "dog"))[0] == "I adopted a puppy"


@IN_ONE_SERVER
async def test_names_of_people_are_left_out_of_the_question_that_is_embedded(make: Make) -> None:
    asked: list[str] = []

    def queries(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [letters(text) for text in texts]

    knowledge = make(embedder=of_function(queries=queries))
    said = [Chunk("we went sailing", "Anna Lee"), Chunk("so did we", "Ben\x00Zoe")]
    await knowledge.add("notes", said)
    await knowledge.add("notes", Chunk("and they", "Carl"), owner=uuid4().hex)
    for question, embedded in (
        ("Where did Anna go, Ben?", "Where did go,"),
        ("Where did Zoe go?", "Where did go?"),
        ("Where did Carl go?", "Where did Carl go?"),
        ("Anna Lee?", "Anna Lee?"),
    ):
        asked.clear()
        await knowledge.search("notes", question, 5, "hybrid")
        assert asked == [embedded]


DIMENSIONS = pytest.mark.parametrize("dimensions", [8, 25, 32], ids=lambda number: f"{number} instead of 26")
"""25 and 32 dimensions have signatures of as many bytes as 26 have."""


@DIMENSIONS
@pytest.mark.parametrize("mode", Mode)
async def test_another_dimension_under_one_name_is_refused(mode: Mode, dimensions: int) -> None:
    make = _made_in(InMemoryStore(), mode)
    await make(embedder=of_function()).add("notes", ["boot boot", "a wide field"])
    other = make(embedder=_of_dimensions(dimensions))
    for search_mode in ("semantic", "hybrid", "best"):
        with pytest.raises(ConfigurationError, match="another number of dimensions"):
            await other.search("notes", "boot", 5, search_mode)
    assert len(await found(other, "boot", "text")) == 1


@DIMENSIONS
@pytest.mark.parametrize("mode", Mode)
async def test_vectors_of_two_dimensions_under_one_name_are_a_clear_error(mode: Mode, dimensions: int) -> None:
    """Of the embedder that adds the second ones, or of the search."""
    make = _made_in(InMemoryStore(), mode)
    first, other = make(embedder=of_function()), make(embedder=_of_dimensions(dimensions))
    await first.add("notes", [f"boot {number}" for number in range(4)])
    with pytest.raises(ConfigurationError, match="dimensions"):
        await other.add("notes", [f"field {number}" for number in range(4)])
        await first.search("notes", "boot", 5, "semantic")


def _of_dimensions(dimensions: int) -> CallableEmbedder:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [(letters(text) + [1.0] * 6)[:dimensions] for text in texts]

    return of_function(embed, dimensions=dimensions)


@IN_ONE_SERVER
async def test_a_scope_of_very_many_vectors_is_searched_for_text(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(searching, "LARGEST_SCOPE", 3)
    knowledge, ann = make(embedder=Letters()), uuid4().hex
    await knowledge.add("notes", ["boot boot", "a wide field", "a wide lake"])
    assert (await found(knowledge, "boto", "semantic"))[0] == "boot boot"
    await knowledge.add("notes", "boot of ann", owner=ann)
    assert (await found(knowledge, "boto", "semantic"))[0] == "boot boot", "the scope of nobody has three"
    with pytest.raises(NotSupportedError, match=r"search a smaller collection, or one owner's"):
        await knowledge.search("notes", "boto", 5, "semantic", owner=ann)
    with caplog.at_level(logging.WARNING):
        for mode in ("hybrid", "best"):
            hits = await knowledge.search("notes", "boot", 5, mode, owner=ann, explain=True)
            assert sorted(hit.text for hit in hits) == ["boot boot", "boot of ann"]
            assert ["documents have vectors here" in hit.explanation.notes[0] for hit in hits] == [True, True]
    assert len(warnings_in(caplog)) == 1


# The event loop


class Held:
    """An embedder whose thread waits for the test."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.begun.set()
        assert self.released.wait(60)
        return [letters(text) for text in texts]


class HeldLetters(Letters):
    def __init__(self, held: Held) -> None:
        self.held = held

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.held(texts)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        return self.held(["".join(text for text, _ in pieces)])[0]


@pytest.mark.parametrize("kind", ["static", "a function"])
@pytest.mark.parametrize("operation", ["add", "search", "embed_missing"])
async def test_an_event_loop_goes_on_while_a_text_is_embedded(kind: str, operation: str) -> None:
    held = Held()
    embedder = HeldLetters(held) if kind == "static" else of_function(held)
    store = InMemoryStore()
    if operation != "add":
        await KnowledgeStore(store, embedder=Letters() if operation == "search" else None).async_add("notes", "boot")
    knowledge = KnowledgeStore(store, embedder=embedder)
    calls = {
        "add": lambda: knowledge.async_add("notes", "boot"),
        "search": lambda: knowledge.async_search("notes", "boto", mode="semantic"),
        "embed_missing": knowledge.async_embed_missing,
    }
    task = asyncio.create_task(calls[operation]())
    while not held.begun.is_set():  # noqa: ASYNC110 - it is set in a thread
        await asyncio.sleep(0)
    for _ in range(100):  # turns of the loop
        await asyncio.sleep(0)
    assert not task.done()
    held.released.set()
    await task
    assert len(await knowledge.async_search("notes", "boto", mode="semantic")) == 1


async def test_an_event_loop_goes_on_while_a_text_is_cut_into_words(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, released = threading.Event(), threading.Event()

    def held(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert released.wait(60)
        return row_of(*arguments, **options)

    monkeypatch.setattr("firefly_memory.knowledge.flows.row_of", held)
    knowledge = KnowledgeStore(embedder=None)
    task = asyncio.create_task(knowledge.async_add("notes", "boot"))
    while not begun.is_set():  # noqa: ASYNC110 - it is set in a thread
        await asyncio.sleep(0)
    assert not task.done()
    released.set()
    await task
    assert len(knowledge.list("notes")) == 1


async def test_an_event_loop_goes_on_while_a_long_question_is_cut_into_words(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def noted(text: str, language: str) -> list[str]:
        threads.append(threading.current_thread())
        return question_words(text, language)

    monkeypatch.setattr(searching, "question_words", noted)
    knowledge = KnowledgeStore(embedder=None)
    await knowledge.async_add("notes", "boat")
    assert len(await knowledge.async_search("notes", "boat " * 200_000, mode="text")) == 1
    assert threads
    assert threading.current_thread() not in threads


def test_of_a_long_question_that_is_embedded_only_the_first_words_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def noted(text: str, language: str) -> list[str]:
        asked.append(text)
        return question_words(text, language)

    monkeypatch.setattr(words, "question_words", noted)
    pieces = words.question_pieces(" ".join(f"w{number}" for number in range(20_000)), "english")
    assert len(pieces) == LONGEST_QUESTION
    assert len(asked) <= 2 * LONGEST_QUESTION


# The language


@IN_ONE_SERVER
async def test_the_first_chunk_decides_the_language(new_store: EntryStore, mode: Mode) -> None:
    make = _made_in(new_store, mode)
    german, undecided, english = make(language="german"), make(), make(language="english")
    assert await found(english, "boat", "text") == []
    await german.add("notes", ["Die Häuser am See", "Der Garten"])
    for knowledge in (german, undecided, make(space="another")):
        assert await knowledge.search("notes", "Haus", 5, "text") == await german.search(
            "notes", "Haus", 5, "text"
        ) or (knowledge is not german)
    assert await found(german, "welches Haus?", "text") == ["Die Häuser am See"]
    assert await found(undecided, "Gärten der", "text") == ["Der Garten"]
    assert await found(german, "der", "text") == ["Der Garten"], "a stop word, and nothing else is asked for"
    for call in (
        english.add("notes", "houses"),
        english.search("notes", "houses"),
        make(language="none").add("n", "x"),
    ):
        with pytest.raises(ConfigurationError, match=r"are german, not .*: a database has one language"):
            await call
    await undecided.add("others", "Noch ein Haus")
    assert await german.count() == 3
    await german.delete("notes")
    await german.delete("others")
    with pytest.raises(ConfigurationError, match="german"):
        await english.add("notes", "houses")


@IN_ONE_SERVER
async def test_english_is_the_language_if_nobody_says_otherwise(new_store: EntryStore, mode: Mode) -> None:
    knowledge = _made_in(new_store, mode)()
    await knowledge.add("notes", ["the boats of May", "a piano"])
    assert await found(knowledge, "which boat is sailing?", "text") == ["the boats of May"]
    with pytest.raises(ConfigurationError, match="are english, not german"):
        await _made_in(new_store, mode)(language="german").add("notes", "Boote")


@IN_ONE_SERVER
async def test_of_first_writers_with_two_languages_one_is_refused(new_store: EntryStore, mode: Mode) -> None:
    """Neither has read a language before."""
    chunks = Chunks(new_store, mode)
    assert await chunks("language") is None
    assert await chunks("add", [_row("Haus", "german")], {}, IndexLanguage("german", FORM)) == 1
    for kept in (IndexLanguage("english", FORM), IndexLanguage("german", FORM + 1)):
        with pytest.raises(ConflictError):
            await chunks("add", [_row("house", "english")], {}, kept)
    assert await chunks("language") == IndexLanguage("german", FORM)
    assert [each.text for each in await chunks.every()] == ["Haus"]


def _row(text: str, language: str) -> Any:
    place: dict[str, Any] = {"space": "", "collection": "notes", "owner": None, "source": None, "position": 0}
    return row_of(Chunk(text), created_at=datetime.now(UTC), language=language, **place)


@IN_ONE_SERVER
async def test_words_by_the_rules_of_another_version_are_refused(new_store: EntryStore, mode: Mode) -> None:
    await Chunks(new_store, mode)("add", [_row("house", "english")], {}, IndexLanguage("english", FORM + 1))
    knowledge = _made_in(new_store, mode)()
    for call in (knowledge.add("notes", "boat"), knowledge.search("notes", "boat")):
        with pytest.raises(ConfigurationError, match=f"this version has the rules {FORM}"):
            await call


@IN_ONE_SERVER
async def test_a_first_chunk_that_is_refused_decides_no_language(new_store: EntryStore, mode: Mode) -> None:
    await async_erase(new_store, "ann")
    make = _made_in(new_store, mode)
    with pytest.raises(ErasedError):
        await make(language="german").add("notes", "Haus", owner="ann")
    await make(language="english").add("notes", "houses")
    assert await found(make(), "house", "text") == ["houses"]


# Arguments


ARGUMENTS: dict[str, tuple[type[Exception], str, Callable[[Memory], Any]]] = {
    "texts that are a number": (InvalidEntryError, "texts: must be a text, a Chunk, .* not int", lambda k: k.add("c", 5)),
    "no texts": (InvalidEntryError, "texts: must be .* not NoneType", lambda k: k.add("c", None)),
    "bytes": (InvalidEntryError, "text: must be text, not int", lambda k: k.add("c", b"bytes")),
    "a blank text": (InvalidEntryError, "text: must not be empty", lambda k: k.add("c", " \n")),
    "a very long text": (InvalidEntryError, "at most 4,000,000", lambda k: k.add("c", "x" * (LONGEST_TEXT + 1))),
    "a naive instant": (InvalidEntryError, "at: must have a time zone", lambda k: k.add("c", Chunk("x", at=datetime(2024, 5, 6)))),  # noqa: DTZ001
    "an instant as text": (InvalidEntryError, "at: must be a date", lambda k: k.add("c", Chunk("x", at="2024-05-06"))),  # type: ignore[arg-type]
    "a position below zero": (InvalidEntryError, "position: .* from 0 up, not -1", lambda k: k.add("c", Chunk("x", group="g", position=-1))),
    "a person who is a number": (InvalidEntryError, "who: must be text, not int", lambda k: k.add("c", Chunk("x", who=5))),  # type: ignore[arg-type]
    "an empty group": (InvalidEntryError, "group: must not be empty", lambda k: k.add("c", Chunk("x", group=""))),
    "a source that is no JSON": (InvalidEntryError, r"source\['in'\]\[0\]", lambda k: k.add("c", "x", source={"in": [object()]})),
    "an empty owner": (InvalidEntryError, "owner: must not be empty", lambda k: k.add("c", "x", owner="")),
    "an empty collection": (InvalidEntryError, "collection: must not be empty", lambda k: k.search("", "x")),
    "a collection with a long name": (InvalidEntryError, "at most 512", lambda k: k.delete("c" * 513)),
    "a question that is no text": (InvalidEntryError, "query: must be text, not list", lambda k: k.search("c", ["x"])),
    "no hits": (ConfigurationError, "top_k must be a whole number from 1 up, not 0", lambda k: k.search("c", "x", 0)),
    "an unknown mode": (ConfigurationError, "mode must be 'best', 'hybrid', .* not 'like'", lambda k: k.search("c", "x", 1, "like")),
    "explain that is a number": (ConfigurationError, "explain must be True or False", lambda k: k.search("c", "x", explain=1)),
    "a limit of zero": (InvalidEntryError, "limit: must be a whole number from 1 up", lambda k: k.list("c", 0)),
    "a cursor of another list": (InvalidEntryError, r"after: 'x' is not the next of a page of list\(\)", lambda k: k.list("c", 1, "x")),
    "a text for ids": (InvalidEntryError, "ids: must be several ids, in a list", lambda k: k.delete("c", "an id")),
    "an id that is a number": (InvalidEntryError, "id: must be text, not int", lambda k: k.delete("c", [5])),
    "a count of a number": (InvalidEntryError, "collection: must be text, not int", lambda k: k.count(5)),
    # Those below have other errors, of Python's or of the database's.
    "a group that is a list": (InvalidEntryError, "group: must be text, not list", lambda k: k.add("c", Chunk("x", group=["g"]))),  # type: ignore[arg-type]
    "a person who is 0": (InvalidEntryError, "who: must be text, not int", lambda k: k.add("c", Chunk("x", who=0))),  # type: ignore[arg-type]
    "a position that is text": (InvalidEntryError, "position: ", lambda k: k.add("c", Chunk("x", position="1"))),  # type: ignore[arg-type]
    "a position beyond the largest": (InvalidEntryError, "position: must be at most", lambda k: k.add("c", Chunk("x", group="g", position=LARGEST_POSITION + 1))),
    "an instant before the first": (InvalidEntryError, "at: ", lambda k: k.add("c", Chunk("x", at=_beyond(1, 5)))),
    "an instant after the last": (InvalidEntryError, "at: ", lambda k: k.add("c", Chunk("x", at=_beyond(9999, -5)))),
    "a name of a collection that is a number": (InvalidEntryError, "after: must be text, not int", lambda k: k.collections(9, 5)),
    "ids that are a number": (InvalidEntryError, "ids: must be several ids, in a list", lambda k: k.delete("c", 5)),
}  # fmt: skip


def _beyond(year: int, hours: int) -> datetime:
    """In UTC it is in no year that there is."""
    month, day = (1, 1) if year == 1 else (12, 31)
    return datetime(year, month, day, 0 if year == 1 else 23, tzinfo=timezone(timedelta(hours=hours)))


@pytest.mark.parametrize("given", ARGUMENTS)
@pytest.mark.parametrize("mode", Mode)
async def test_a_wrong_argument_is_refused_with_a_clear_error(given: str, mode: Mode) -> None:
    knowledge = Memory(KnowledgeStore(embedder=None), mode)
    error, says, call = ARGUMENTS[given]
    with pytest.raises(error, match=says):
        await call(knowledge)
    assert await knowledge.count() == 0


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"space": 5}, InvalidEntryError, "space: must be text, not int"),
        ({"space": "s" * 513}, InvalidEntryError, "space: is 513 characters long"),
        ({"language": "klingon"}, ConfigurationError, "language must be 'none' or one of arabic, .* not 'klingon'"),
        ({"language": ["german"]}, ConfigurationError, "language must be"),
        ({"embedder": len}, ConfigurationError, "has no name, dimensions, embed, async_embed; .*adapters"),
        ({"embedder": "openai"}, ConfigurationError, "embedder must be an Embedder, and str has no"),
        ({"store": 5}, ConfigurationError, "store|int"),
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_with_a_clear_error(
    options: Mapping[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        KnowledgeStore(**options)


def test_the_representation_names_the_store_and_the_embedder() -> None:
    assert repr(KnowledgeStore(embedder=of_function())) == "KnowledgeStore(InMemoryStore(), embedder='letters')"
    assert repr(KnowledgeStore(embedder=None)) == "KnowledgeStore(InMemoryStore(), embedder=None)"


@IN_EACH
async def test_any_number_is_a_limit(make: Make) -> None:
    knowledge = make(embedder=None)
    await knowledge.add("notes", ["boat", "lake"])
    for most in (2**31 - 1, 2**31, 2**63, 2**70):
        assert [each.text for each in await knowledge.list("notes", most)] == ["boat", "lake"], most
        assert await knowledge.collections(most) == ["notes"]
        for mode in ("text", "fuzzy"):
            assert len(await knowledge.search("notes", "boat", most, mode)) == 1, most


@IN_EACH
async def test_a_chunk_with_the_largest_position_is_found(make: Make) -> None:
    knowledge = make(embedder=None)
    await knowledge.add(
        "notes", [Chunk("boat", group="g", position=LARGEST_POSITION), Chunk("lake", group="g", position=0)]
    )
    assert await found(knowledge, "boat", "text") == ["boat"]
    assert [each.position for each in await knowledge.list("notes")] == [LARGEST_POSITION, 0]


@IN_ONE_SERVER
async def test_a_text_that_is_given_twice_has_its_first_place_in_the_list(make: Make) -> None:
    knowledge = make(embedder=None)
    ids = await knowledge.add("notes", ["boat", "lake", "boat"])
    assert ids[0] == ids[2]
    assert [each.text for each in await knowledge.list("notes")] == ["boat", "lake"]


@pytest.mark.parametrize(("kind", "mode"), [(kind, Mode.BLOCKING) for kind in STORES])
async def test_all_names_of_many_collections_are_listed(make: Make) -> None:
    names = [f"c{number:04}" for number in range(1_001)]
    knowledge = make(embedder=None)
    store, space = knowledge.inner.store, knowledge.inner._options.space
    rows = [_row("text", "english")._replace(id=f"{space}{name}", space=space, collection=name) for name in names]
    await Chunks(store)("add", rows, {}, IndexLanguage("english", FORM))
    assert await knowledge.collections(2_000) == names
    assert await knowledge.collections(1_000) == names[:1_000]
    assert await knowledge.collections(1_000, names[-2]) == names[-1:]


@pytest.mark.parametrize("mode", Mode)
async def test_a_closed_store_is_neither_searched_nor_written(mode: Mode, tmp_path: Path) -> None:
    for store in (InMemoryStore(), SQLiteStore(tmp_path / "memory.db")):
        knowledge = Memory(KnowledgeStore(store, embedder=None), mode)
        await knowledge.add("notes", "boat")
        await store.close()
        for call in (knowledge.add("notes", "lake"), knowledge.search("notes", "boat"), knowledge.list("notes")):
            with pytest.raises(StoreClosedError):
                await call


# Where it works


@KINDS
def test_a_row_and_a_chunk_commit_or_roll_back_together(kind: str, place: Place) -> None:
    with opened(kind, place) as (store, engine):
        space = uuid4().hex
        knowledge = KnowledgeStore(store, space=space, embedder=Letters())
        for commits in (False, True):
            with engine.connect() as connection:
                connection.execute(text("INSERT INTO orders VALUES (1)"))
                bound = KnowledgeStore(store.bind(connection), space=space, embedder=Letters())
                ids = bound.add("notes", ["boot boot", "a wide field"])
                assert [hit.text for hit in bound.search("notes", "boot", mode="text")] == ["boot boot"]
                assert len(bound.search("notes", "boto", mode="semantic")) == 2
                assert bound.delete("notes", ids[1:]) == 1
                assert knowledge.search("notes", "boot") == [], "nobody else sees it yet"
                if commits:
                    connection.commit()
            assert knowledge.count("notes") == int(commits)
            for mode in ("text", "semantic", "fuzzy"):
                hits = knowledge.search("notes", "boot", mode=mode)
                assert [hit.text for hit in hits] == ["boot boot"] * commits
        assert knowledge.embed_missing() == 0
        assert knowledge.delete("notes") == 1


@DRIVERS
async def test_a_chunk_belongs_to_the_callers_asynchronous_transaction(driver: str, place: Place) -> None:
    async with opened_async(driver, place) as (store, engine):
        space = uuid4().hex
        knowledge = KnowledgeStore(store, space=space, embedder=of_function())
        for commits in (False, True):
            async with engine.connect() as connection:
                bound = KnowledgeStore(store.bind(connection), space=space, embedder=of_function())
                await bound.async_add("notes", ["boot boot", "a wide field"])
                assert len(await bound.async_search("notes", "boto", mode="semantic")) == 2
                if commits:
                    await connection.commit()
            assert await knowledge.async_count("notes") == 2 * commits
            for mode in ("text", "semantic", "fuzzy"):
                hits = await knowledge.async_search("notes", "boot", 1, mode)
                assert [hit.text for hit in hits] == ["boot boot"] * commits
        assert await knowledge.async_delete("notes") == 2


def test_a_first_chunk_that_is_rolled_back_decides_no_language(place: Place) -> None:
    with opened("sqlite", place) as (store, engine):
        with engine.connect() as connection:
            bound = KnowledgeStore(store.bind(connection), embedder=None, language="german")
            bound.add("notes", "Die Häuser")
            connection.rollback()
        KnowledgeStore(store, embedder=None, language="english").add("notes", "houses")


def test_a_chunk_added_after_a_rollback_decides_the_language(place: Place) -> None:
    with opened("sqlite", place) as (store, engine):
        with engine.connect() as connection:
            bound = KnowledgeStore(store.bind(connection), embedder=None, language="german")
            bound.add("notes", "Die Häuser")
            connection.rollback()
            bound.add("notes", "Der Garten")
            connection.commit()
        with pytest.raises(ConfigurationError, match="german"):
            KnowledgeStore(store, embedder=None, language="english").add("notes", "houses")


def _url(kind: str, place: Place) -> str:
    return f"{kind}:///{place.directory}/own.db" if kind.startswith("sqlite") else place.with_driver(kind)


def _on_engine(engine: Any) -> SQLStore:
    if engine.dialect.name == "sqlite":
        return SQLiteStore(engine=engine)
    return PostgreSQLStore(engine=engine, schema_name=COMMON)


@pytest.mark.parametrize("kind", ["sqlite", "psycopg", "psycopg2"])
def test_an_engine_of_the_user_keeps_chunks_and_vectors(kind: str, place: Place) -> None:
    engine = create_engine(_url(kind, place))
    with _on_engine(engine) as store:
        knowledge = KnowledgeStore(store, space=uuid4().hex, embedder=Letters())
        ids = knowledge.add("notes", [Chunk("boot boot", group="g"), Chunk("a wide field", group="g"), "wool"])
        assert knowledge.search("notes", "boto")[0].text == "boot boot"
        assert knowledge.search("notes", "field", mode="text")[0].text == "a wide field"
        assert knowledge.delete("notes", ids[:2]) == 2
        assert [hit.text for hit in knowledge.search("notes", "boto", mode="semantic")] == ["wool"]
        assert knowledge.delete("notes") == 1
    engine.dispose()


@asynccontextmanager
async def _async_engine(kind: str, place: Place) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(_url(kind, place))
    yield engine
    await engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite+aiosqlite", "asyncpg", "psycopg"])
async def test_an_asynchronous_engine_of_the_user_keeps_chunks_and_vectors(kind: str, place: Place) -> None:
    async with _async_engine(kind, place) as engine, _on_engine(engine) as store:
        knowledge = KnowledgeStore(store, space=uuid4().hex, embedder=of_function())
        ids = await knowledge.async_add("notes", [Chunk("boot boot", group="g"), Chunk("field", group="g"), "wool"])
        assert (await knowledge.async_search("notes", "boto"))[0].text == "boot boot"
        assert (await knowledge.async_search("notes", "field", mode="text"))[0].text == "field"
        assert await knowledge.async_delete("notes", ids[:2]) == 2
        assert [hit.text for hit in await knowledge.async_search("notes", "boto", mode="semantic")] == ["wool"]
        assert await knowledge.async_delete("notes") == 1


WITHOUT: dict[str, Callable[[Path], EntryStore]] = {
    "file": lambda path: FileStore(path / "files"),
    "five methods": lambda path: adapt(FolderStore(path / "five")),
}


@pytest.mark.parametrize("kind", WITHOUT)
@pytest.mark.parametrize("mode", Mode)
async def test_a_store_without_knowledge_names_those_that_have_it(kind: str, mode: Mode, tmp_path: Path) -> None:
    knowledge = Memory(KnowledgeStore(WITHOUT[kind](tmp_path)), mode)
    stores = "SQLiteStore and PostgreSQLStore, MongoDBStore, InMemoryStore can"
    for call in (
        knowledge.add("notes", "boat"),
        knowledge.search("notes", "boat"),
        knowledge.list("notes"),
        knowledge.collections(),
        knowledge.count(),
        knowledge.delete("notes"),
        knowledge.embed_missing(),
    ):
        with pytest.raises(NotSupportedError, match=f"knowledge cannot be kept in .*; {stores}"):
            await call
    await knowledge.inner.store.close()


@pytest.fixture
def forking(kind: str, place: Place, new_sqlite_file: Path) -> Iterator[EntryStore]:
    store = STORES[kind](place, new_sqlite_file, COMMON)
    yield store
    store.close_sync()


@pytest.mark.parametrize("kind", STORES)
def test_a_forked_child_searches_and_adds(kind: str, forking: EntryStore) -> None:
    space = uuid4().hex
    knowledge = KnowledgeStore(forking, space=space)
    knowledge.add("notes", ["I adopted a puppy", "The invoice is overdue"])
    assert knowledge.search("notes", "dog")[0].text == "I adopted a puppy"

    async def suspending() -> None:
        await knowledge.async_add("notes", "asynchronous: a kitten")
        assert len(await knowledge.async_search("notes", "kitten")) == 4

    def child() -> None:
        assert knowledge.search("notes", "dog")[0].text == "I adopted a puppy"
        knowledge.add("notes", "blocking: a kitten")
        asyncio.run(suspending())

    assert in_child(child) == 0
    assert knowledge.search("notes", "puppy")[0].text == "I adopted a puppy"
    expected = 2 if kind == "memory" else 4
    assert knowledge.count("notes") == len(knowledge.search("notes", "kitten")) == expected
    knowledge.delete("notes")


async def test_a_provider_that_fails_is_asked_again_and_then_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("firefly_memory.search.embedders.batches.ATTEMPTS", 1)
    broken = Broken()
    broken.error = ConnectionError("no route")
    knowledge = KnowledgeStore(embedder=of_function(broken))
    with caplog.at_level(logging.WARNING):
        for each in ("boot", "lake"):
            knowledge.add("notes", each)
        await knowledge.async_add("notes", "wool")
    assert ["ConnectionError: no route" in line for line in warnings_in(caplog)] == [True] * 3
    assert knowledge.count("notes") == 3
    assert issubclass(EmbedderError, FireflyMemoryError)

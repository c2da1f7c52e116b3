"""``KnowledgeStore`` on stores of every kind, and in somebody's transaction.

The rules of knowledge are in ``firefly_memory.testing.rules``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from firefly_memory import (
    ConfigurationError,
    EntryStore,
    FileStore,
    FireflyMemoryError,
    NotSupportedError,
    PostgreSQLStore,
    SQLiteStore,
    adapt,
)
from firefly_memory.errors import EmbedderError
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.stores.sql import SQLStore
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.backends import Place
from tests.support.bound_stores import DRIVERS, KINDS, opened, opened_async
from tests.support.folder_backend import FolderStore
from tests.support.forked_child import in_child
from tests.support.knowledge_stores import COMMON, STORES, Broken, Letters, of_function, warnings_in


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
    stores = "SQLiteStore, PostgreSQLStore, MongoDBStore and InMemoryStore can"
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

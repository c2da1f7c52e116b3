"""Indexes are compared with their rows, made again, and given vectors, on every store that has some."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConfigurationError, EntryStore, FileStore, InvalidEntryError, service
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.knowledge.rows import row_of
from firefly_memory.knowledge.types import Chunk
from firefly_memory.search import index_keeper
from firefly_memory.search.embedders.adapters import CallableEmbedder
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.keeping import IndexState
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode
from tests.knowledge import START, Chunks
from tests.support.backends import Place
from tests.support.knowledge_stores import IN_ONE_SERVER, STORES, Letters, of_its_own

TEXTS = ["Das Haus steht in Bonn", "Die Häuser sind alt", "Ein Boot"]


@pytest.fixture
async def store(kind: str, place: Place, new_sqlite_file: Path) -> AsyncIterator[EntryStore]:
    """A store of its own, with three texts in German that were taken for English."""
    with of_its_own(kind, place) as name:
        async with STORES[kind](place, new_sqlite_file, name) as store:
            await KnowledgeStore(store, embedder=None).async_add("notes", TEXTS)
            yield store


@pytest.fixture
def ask(store: EntryStore, mode: Mode) -> Callable[..., Any]:
    """Calls a function of the service in one mode."""

    async def call(name: str, *arguments: Any, **options: Any) -> Any:
        if mode is Mode.BLOCKING:
            return getattr(service, name)(store, *arguments, **options)
        return await getattr(service, f"async_{name}")(store, *arguments, **options)

    return call


async def chunks_in(ask: Callable[..., Any], embedder: Any) -> IndexState:
    """The state of their index."""
    states: dict[str, IndexState] = {each.kind: each for each in await ask("index_states", embedder=embedder)}
    return states["chunks"]


async def found(store: EntryStore, question: str) -> set[str]:
    hits = await KnowledgeStore(store, embedder=None).async_search("notes", question, mode="text")
    return {hit.text for hit in hits}


@IN_ONE_SERVER
async def test_a_language_is_changed_row_by_row(store: EntryStore, ask: Callable[..., Any]) -> None:
    state = await chunks_in(ask, embedder=None)
    assert (state.kind, state.rows, state.language, state.outdated) == ("chunks", 3, "english", 0)
    assert (state.without_vector, state.problems, state.is_right) == (None, (), True)
    earlier = KnowledgeStore(store, embedder=None)
    assert await found(store, "haus") == {TEXTS[0]}
    seen: list[tuple[str, int]] = []
    made = await ask("rebuild_indexes", "german", progress=lambda kind, rows: seen.append((kind, rows)))
    assert made["chunks"] == 3
    assert ("chunks", 3) in seen
    assert await found(store, "haus") == {TEXTS[0], TEXTS[1]}
    state = await chunks_in(ask, embedder=None)
    assert (state.language, state.outdated, state.is_right) == ("german", 0, True)
    await earlier.async_add("notes", "Alte Häuser")
    assert await found(store, "haus") == {TEXTS[0], TEXTS[1], "Alte Häuser"}
    with pytest.raises(ConfigurationError, match="language must be"):
        await ask("rebuild_indexes", "klingon")


@IN_ONE_SERVER
async def test_a_writer_who_knew_the_old_language_makes_its_words_again(
    store: EntryStore, ask: Callable[..., Any]
) -> None:
    earlier = KnowledgeStore(store, embedder=None)
    assert len(await earlier.async_search("notes", "boot")) == 1  # the language is known for a minute now
    await ask("rebuild_indexes", "german")
    await earlier.async_add("notes", "Alte Häuser")
    assert "Alte Häuser" in await found(store, "haus")


@IN_ONE_SERVER
async def test_words_of_other_rules_are_found_and_made_again(store: EntryStore, ask: Callable[..., Any]) -> None:
    row = row_of(
        Chunk("Ein Schiff"), space="", collection="notes", owner=None, source=None, position=0, created_at=START,
        language="english",
    )  # fmt: skip
    await Chunks(store)("add", [row._replace(words=(row.scope, "other"))], {}, None)
    await Chunks(store)("set_language", IndexLanguage("english", FORM + 1))
    state = await chunks_in(ask, embedder=None)
    assert (state.outdated, state.is_right) == (1, False)
    assert f"the words were made by the rules {FORM + 1}" in state.problems[0]
    with pytest.raises(ConfigurationError, match="index rebuild"):
        await found(store, "schiff")
    assert (await ask("rebuild_indexes"))["chunks"] == 4
    state = await chunks_in(ask, embedder=None)
    assert state.is_right
    assert await found(store, "schiff") == {"Ein Schiff"}
    assert await found(store, "other") == set()


@IN_ONE_SERVER
async def test_vectors_that_are_missing_are_made_once(store: EntryStore, ask: Callable[..., Any]) -> None:
    letters = Letters()
    state = await chunks_in(ask, embedder=letters)
    assert (state.without_vector, state.is_right) == (3, True)
    assert (await ask("embed_missing", embedder=letters))["chunks"] == 3
    assert (await ask("embed_missing", embedder=letters))["chunks"] == 0
    state = await chunks_in(ask, embedder=letters)
    assert state.without_vector == 0
    with pytest.raises(ConfigurationError, match="there is no embedder"):
        await ask("embed_missing", embedder=None)


@IN_ONE_SERVER
async def test_vectors_of_a_former_embedder_are_deleted(
    store: EntryStore, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_keeper, "_PAGE", 2)
    former, used = CallableEmbedder(_two_numbers, name="former", dimensions=2), Letters()
    for embedder in (former, used):
        await ask("embed_missing", embedder=embedder)
    state = await chunks_in(ask, embedder=None)
    assert (state.vectors, state.is_right) == ({"former": 3, used.name: 3}, True)
    seen: list[int] = []
    assert (await ask("delete_vectors", "former", progress=lambda _, rows: seen.append(rows)))["chunks"] == 3
    assert seen == [2, 3]
    assert (await ask("delete_vectors", "unknown"))["chunks"] == 0
    state = await chunks_in(ask, embedder=former)
    assert (state.vectors, state.without_vector, state.is_right) == ({used.name: 3}, 3, True)
    state = await chunks_in(ask, embedder=used)
    assert state.without_vector == 0
    hits = await ask("search", "chunks", "Boot", mode="semantic", where={"collection": "notes"}, embedder=used)
    assert len(hits) == 3
    assert (await ask("embed_missing", embedder=former))["chunks"] == 3, "and they can be made again"
    with pytest.raises(InvalidEntryError, match="embedder"):
        await ask("delete_vectors", None)


def _two_numbers(texts: list[str]) -> list[list[float]]:
    return [[1.0, float(len(text))] for text in texts]


def test_a_store_without_an_index_has_none_to_look_at(tmp_path: Path) -> None:
    with FileStore(tmp_path) as store:
        assert service.index_states(store) == ()
        assert service.rebuild_indexes(store) == {}

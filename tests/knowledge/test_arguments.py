"""The arguments of a ``KnowledgeStore``, each checked with a clear error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    InMemoryStore,
    InvalidEntryError,
    SQLiteStore,
    StoreClosedError,
)
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.knowledge.rows import LARGEST_POSITION, LONGEST_TEXT
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.knowledge import Chunks
from tests.support.knowledge_stores import IN_EACH, IN_ONE_SERVER, STORES, Make, found, of_function, row

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
    rows = [row("text", "english")._replace(id=f"{space}{name}", space=space, collection=name) for name in names]
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

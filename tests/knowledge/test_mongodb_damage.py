"""Damaged documents of chunks in MongoDB, and their index: compared with them, and made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bson import Int64
from bson.datetime_ms import DatetimeMS

from firefly_memory import CorruptDataError
from firefly_memory.databases.mongodb.indexes import differences
from firefly_memory.knowledge.keeping import chunk_index_keeper
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb import mending
from firefly_memory.search.searching import at_once, beside_the_loop
from firefly_memory.search.words import FORM
from tests.knowledge import ENGLISH, row
from tests.support.mongodb_chunks import CHUNKS, SIGNATURES, VECTORS, Chunks, by_id, vector

_MISSING = object()
_TOO_LATE = DatetimeMS(2**60)
_DAMAGE: dict[str, list[Any]] = {
    "space": [7, _MISSING],
    "collection": [7],
    "owner": [7],
    "source": [7, {}, _MISSING],
    "text": [7, None, _MISSING],
    "said_at": [7],
    "newest": ["2024", _TOO_LATE, None, _MISSING],
    "newest_us": [-1, Int64(2**62), "1"],
    "created_at": ["2024", _TOO_LATE],
    "created_at_us": [1.5],
    "scope": [7],
    "who": [7],
    "group_id": [7],
    "position": ["7", None, _MISSING],
    "searchable": [7],
    "words": [7, None, ["a", 7], [["a"]], _MISSING],
}
_OF_CANDIDATES: dict[str, list[Any]] = {
    "who": [7, _MISSING],
    "place": [7, "nowhere", "_a/g/x"],
    "position": ["7", None, _MISSING],
    "words": [7, None, ["a", 7], _MISSING],
}


async def test_damaged_chunks_are_named_by_whoever_reads_them(chunks: Chunks) -> None:
    mine = row("text", owner="Ann", group="g", position=1, source="s")
    await chunks("add", [mine], {}, ENGLISH)
    documents = chunks.somewhere.database[CHUNKS]
    whole = documents.find_one({"_id": mine.id}) or {}
    reads: list[tuple[Callable[[], Any], dict[str, list[Any]]]] = [
        (lambda: chunks("read", [mine.id]), _DAMAGE),
        (lambda: chunks("page", 9, ""), _DAMAGE),
        (lambda: chunks("without_vector", "e", 9, ""), _DAMAGE),
        (lambda: chunks.ask("around", [mine.scope], [mine.id]), _OF_CANDIDATES),
    ]
    for read, damage in reads:
        for field, values in damage.items():
            for value in values:
                changed = {name: each for name, each in {**whole, field: value}.items() if each is not _MISSING}
                documents.replace_one({"_id": mine.id}, changed)
                with pytest.raises(CorruptDataError, match=mine.id if value is not _TOO_LATE else "document"):
                    await read()
                    pytest.fail(f"{field} was {value!r}")
        documents.replace_one({"_id": mine.id}, whole)
    assert await chunks("read", [mine.id]) == [mine]


async def test_a_damaged_chunk_gets_no_vector(chunks: Chunks) -> None:
    mine = row("text", owner="Ann")
    await chunks("add", [mine], {}, ENGLISH)
    for damage in ({"$set": {"owner": 7}}, {"$unset": {"scope": ""}}):
        chunks.somewhere.database[CHUNKS].update_one({}, damage)
        with pytest.raises(CorruptDataError, match=mine.id):
            await chunks("add_vectors", {mine.id: vector(1)})
        assert set(chunks.contents()) == {CHUNKS}


async def test_a_searchable_form_that_is_no_text_is_passed_over(chunks: Chunks) -> None:
    one, other = by_id("one boat", "two boats")
    await chunks("add", [one, other], {}, ENGLISH)
    for damage in (7, None, ["boat"]):
        chunks.somewhere.database[CHUNKS].update_one({"_id": one.id}, {"$set": {"searchable": damage}})
        assert await chunks.ask("containing", [one.scope], "boat", 9) == [other.id]


async def test_a_store_that_opens_makes_every_index(chunks: Chunks) -> None:
    await chunks("count", None, None)
    connection = await chunks.done(chunks.log._access.connected("check"))  # type: ignore[attr-defined]
    assert await chunks.done(differences(connection)) == []
    assert {CHUNKS, VECTORS, SIGNATURES} <= set(chunks.somewhere.database.list_collection_names())


# The index, compared with its chunks


@pytest.fixture
def _small_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mending, "_WALKED", 3)


@pytest.mark.usefixtures("_small_walks")
async def test_vectors_without_a_chunk_are_counted_and_deleted(chunks: Chunks) -> None:
    rows = by_id(*"abcdefgh")
    await chunks("add", rows, {each.id: vector(1) for each in rows}, ENGLISH)
    await chunks("add_vectors", {each.id: vector(2, "f") for each in rows})
    whole = chunks.contents()
    assert await chunks("damage") == []
    await chunks("mend")
    assert chunks.contents() == whole
    gone = [rows[each].id for each in (0, 3, 4, 7)]
    chunks.somewhere.database[CHUNKS].delete_many({"_id": {"$in": gone}})
    chunks.somewhere.database[VECTORS].delete_many({"id": gone[0]})
    assert await chunks("damage") == ["6 vectors have no chunks", "8 signatures have no chunks"]
    await chunks("mend")
    assert await chunks("damage") == []
    assert chunks.contents() == {
        name: [each for each in whole[name] if each.get("id", each["_id"]) not in gone]
        for name in (CHUNKS, VECTORS, SIGNATURES)
    }


async def test_chunks_are_found_by_the_words_that_they_are_given_anew(chunks: Chunks) -> None:
    german = IndexLanguage("german", FORM)
    rows = by_id("many houses", "a house", owner="Ann", group="g")
    await chunks("add", rows, {rows[0].id: vector(1)}, ENGLISH)
    new = [each._replace(words=(each.scope, "new"), searchable="new form", text="ignored") for each in rows]
    await chunks("delete", [rows[1].id])
    assert await chunks("rewrite", new) == 2
    assert await chunks("rewrite", []) == 0
    assert await chunks("page", 9, "") == [new[0]._replace(text=rows[0].text)]
    scopes = [rows[0].scope]
    assert await chunks.ask("counts", scopes, ["new", "hous"], None) == {"new": 1, "hous": 0}
    assert await chunks.ask("containing", scopes, "new form", 9) == [rows[0].id]
    assert await chunks.ask("vectors", "e", [rows[0].id]) == {rows[0].id: vector(1).vector}
    for language in (german, ENGLISH):
        await chunks("set_language", language)
        assert await chunks("language") == language


async def test_the_language_can_be_set_before_the_first_chunk(chunks: Chunks) -> None:
    await chunks("set_language", IndexLanguage("german", FORM))
    assert await chunks("language") == IndexLanguage("german", FORM)


async def test_an_index_is_made_again_in_another_language(chunks: Chunks) -> None:
    rows = by_id("Häuser am See", "ein Haus")
    await chunks("add", rows, {}, ENGLISH)
    chunks.somewhere.database[VECTORS].insert_one({"id": "stray", "embedder": "e", "vector": b""})
    view = chunks.store.blocking if chunks.mode == "blocking" else chunks.store.suspending
    keeper = chunk_index_keeper(view, at_once if chunks.mode == "blocking" else beside_the_loop)

    async def rebuild() -> list[int]:
        return [each async for each in keeper.rebuild("german")]

    assert not (await chunks.done(keeper.state(None))).is_right
    assert sum(await chunks.done(rebuild())) == 2
    state = await chunks.done(keeper.state(None))
    assert (state.is_right, state.rows, state.language) == (True, 2, "german")
    assert await chunks.ask("counts", [rows[0].scope], ["haus"], None) == {"haus": 2}

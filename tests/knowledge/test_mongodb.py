"""Chunks in MongoDB, on a replica set and on a standalone server, in both modes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from firefly_memory import (
    ConflictError,
    CorruptDataError,
    InMemoryStore,
    InvalidEntryError,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.cursors import Moment
from firefly_memory.databases.mongodb.clients import VERSION
from firefly_memory.knowledge.log import KNOWLEDGE_LOG, ChunkRow
from firefly_memory.search.index import SearchIndex, Signatures
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb import kept_rows
from firefly_memory.search.words import FORM
from tests.knowledge import ENGLISH, START, row
from tests.support.backends import Place
from tests.support.mongodb_chunks import CHUNKS, SIGNATURES, VECTORS, Chunks, Commands, by_id, vector
from tests.support.mongodb_tombstones import Somewhere


@pytest.fixture
def replica_set(place: Place) -> Iterator[Somewhere]:
    with ExitStack() as later:
        yield Somewhere(place.mongodb(), later)


# What is stored


async def test_every_field_of_a_row_comes_back(chunks: Chunks) -> None:
    rows = [
        row("plain"),
        row("a date", at=date.min, who="Anna \x00", group="g/\x10é", position=2**40, source={"a": ["\x00"]}),
        row("an instant", at=datetime(2024, 2, 29, 1, 2, 3, 4_005, UTC), owner="Ann", space="s", collection="c/d"),
        row("漢字 and \ud800", owner="Ann", space="s", collection="c/d", group="g", position=-3),
    ]
    for each in rows:
        assert await chunks("add", [each], {}, ENGLISH) == 1
    found = {each.id: each for each in await chunks("read", [each.id for each in rows])}
    assert found == {each.id: each for each in rows}
    assert await chunks("page", 10, "") == sorted(rows, key=lambda each: each.id)
    (document,) = chunks.somewhere.database[CHUNKS].find({"_id": rows[0].id})
    assert isinstance(document["created_at"], datetime)
    assert isinstance(document["newest"], datetime)
    assert document.keys().isdisjoint({"owner", "place", "embedders"}), "a chunk of nobody, in no group"


async def test_a_chunk_that_is_there_is_left_as_it_is(chunks: Chunks) -> None:
    first, again = row("one text", who="Anna"), row("one text", who="Anna", day=1)
    assert await chunks("add", [first, first], {}, ENGLISH) == 1
    before = chunks.contents()
    assert await chunks("add", [again], {}, ENGLISH) == 0
    assert chunks.contents() == before
    assert await chunks("add", [again, row("another")], {}, ENGLISH) == 1
    assert await chunks("read", [first.id, "unknown", first.id]) == [first]
    assert await chunks("add", [], {}, ENGLISH) == 0


async def test_a_vector_is_stored_once_for_each_embedder(chunks: Chunks) -> None:
    one, other, third = by_id("a", "b", "c")
    given = {one.id: vector(1), "unknown": vector(2), third.id: vector(3)}
    assert await chunks("add", [one, other], given, ENGLISH) == 2
    assert await chunks("without_vector", "e", 10, "") == [other]
    assert await chunks("add", [one, other], {one.id: vector(4), other.id: vector(5)}, ENGLISH) == 0
    ids = [one.id, other.id, third.id]
    assert await chunks.ask("vectors", "e", ids) == {one.id: vector(1).vector, other.id: vector(5).vector}
    assert await chunks("add_vectors", {one.id: vector(6), other.id: vector(7, "f"), "unknown": vector(8)}) == 1
    assert await chunks("add_vectors", {}) == 0
    assert await chunks.ask("vectors", "f", ids) == {other.id: vector(7).vector}
    assert await chunks.ask("signatures", [one.scope], "f", 1) == Signatures([other.id], [vector(7).signature])
    assert await chunks.ask("signatures", [one.scope], "e", 1) is None
    await chunks("delete", [other.id])
    assert await chunks.ask("vectors", "f", [other.id]) == {}
    assert await chunks.ask("signatures", [one.scope], "e", 9) == Signatures([one.id], [vector(1).signature])
    assert await chunks("add", [other], {}, None) == 1
    assert await chunks("without_vector", "e", 10, "") == [other], "a vector went with its chunk"


async def test_chunks_without_a_vector_come_in_pages(chunks: Chunks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "_WALKED", 3)
    rows = by_id(*(f"text {number}" for number in range(9)))
    await chunks("add", rows, {rows[2].id: vector(1)}, ENGLISH)
    assert await chunks("without_vector", "e", 2, "") == rows[:2]
    assert await chunks("without_vector", "e", 2, rows[1].id) == rows[3:5]
    assert await chunks("without_vector", "e", 1, rows[3].id) == rows[4:5]
    assert await chunks("without_vector", "e", 99, "") == [*rows[:2], *rows[3:]]
    assert await chunks("without_vector", "f", 99, "") == rows
    assert await chunks("without_vector", "e", 99, rows[-1].id) == []
    assert await chunks("without_vector", "e", 0, "") == []


async def test_the_language_of_the_first_writer_counts(chunks: Chunks) -> None:
    german = IndexLanguage("german", FORM)
    assert await chunks("language") is None
    await chunks("add", [], {}, german)
    assert await chunks("language") is None
    await chunks("add", [row("Häuser", language="german")], {}, german)
    before = chunks.contents()
    for other in (ENGLISH, IndexLanguage("german", FORM + 1)):
        with pytest.raises(ConflictError, match="german"):
            await chunks("add", [row("house")], {row("house").id: vector(1)}, other)
    assert await chunks("language") == german
    assert chunks.contents() == before
    assert await chunks("add", [row("Haus", language="german")], {}, None) == 1


async def test_a_damaged_note_of_the_language_is_named(chunks: Chunks) -> None:
    await chunks("add", [row("text")], {}, ENGLISH)
    for damage in ({"form": "1"}, {"language": 7}):
        chunks.somewhere.database[VERSION].update_one({"_id": "$chunks"}, {"$set": damage})
        with pytest.raises(CorruptDataError, match="memory_version"):
            await chunks("language")
        with pytest.raises(CorruptDataError, match="memory_version"):
            await chunks("add", [row("another")], {}, ENGLISH)


async def test_a_chunk_that_is_too_large_is_refused_before_anything_is_written(chunks: Chunks) -> None:
    large = row("漢" * 400_000)
    for rows in ([row("small"), large], [large, row("small")]):
        with pytest.raises(InvalidEntryError, match="16 MB"):
            await chunks("add", rows, {rows[0].id: vector(1)}, ENGLISH)
    assert chunks.contents() == {}
    assert await chunks("language") is None


async def test_thousands_of_chunks_are_one_call_of_few_commands(replica_set: Somewhere) -> None:
    commands, rows = Commands(), [row(f"text {number}", owner="Ann") for number in range(3_000)]
    with replica_set.listened(commands) as store:
        log = store.blocking.log(KNOWLEDGE_LOG)
        assert run_without_loop(log.add(rows[:1], {}, ENGLISH)) == 1
        commands.sent.clear()
        given = {each.id: vector(1) for each in rows}
        assert run_without_loop(log.add(rows, given, None)) == 2_999
        # The first chunk is there: so the inserts end there, and updates do what is left.
        sent = ["update", "insert", "abortTransaction", "update", "update", "update", "commitTransaction"]
        assert [name for name, _ in commands.sent] == sent
        commands.sent.clear()
        more = [row(f"new text {number}") for number in range(3_000)]
        assert run_without_loop(log.add(more, {each.id: vector(1) for each in more}, ENGLISH)) == 3_000
        assert [name for name, _ in commands.sent] == ["find", "insert", "insert", "insert", "commitTransaction"]
        assert run_without_loop(log.delete([each.id for each in more])) == 3_000
        assert run_without_loop(log.count(None, None)) == 3_000
        assert run_without_loop(log.delete_some("", "notes", None, 2_000)) == 2_000
        assert [replica_set.database[name].count_documents({}) for name in (VECTORS, SIGNATURES)] == [1_000, 1_000]


# Lists


async def test_lists_go_page_by_page(chunks: Chunks) -> None:
    rows = [
        row(f"text {number}", collection="ab"[number % 2], owner="Ann" if number % 3 else None)._replace(
            created_at=START + timedelta(microseconds=number // 4)
        )
        for number in range(20)
    ]
    for owner in (None, "Ann"):
        await chunks("add", [each for each in rows if each.owner == owner], {}, ENGLISH)
    await chunks("add", [row("of another space", space="s", collection="a")], {}, None)
    in_order = sorted((each for each in rows if each.collection == "a"), key=lambda each: (each.created_at, each.id))
    found: list[ChunkRow] = []
    after = None
    while page := await chunks("oldest", "", "a", 3, after):
        found += page
        after = Moment(page[-1].created_at, page[-1].id)
    assert found == in_order
    ids: list[str] = []
    while names := await chunks("of_owner", "Ann", 3, ids[-1] if ids else ""):
        ids += names
    assert ids == sorted(each.id for each in rows if each.owner == "Ann")
    every: list[ChunkRow] = []
    while page := await chunks("page", 6, every[-1].id if every else ""):
        every += page
    assert len(every) == 21
    assert await chunks("page", 0, "") == await chunks("oldest", "", "a", 0, None) == []
    assert [await chunks("count", *where) for where in ((None, None), ("", None), ("", "a"), ("s", "b"))] == [
        *(21, 20, 10, 0)
    ]


async def test_collections_are_listed_in_the_order_of_code_points(chunks: Chunks) -> None:
    names = ["b", "a", "A", "é", "\U0001f600", "\uffff"]
    for name in names:
        await chunks("add", [row("text", collection=name), row("more", collection=name)], {}, ENGLISH)
    await chunks("add", [row("text", collection="other", space="s")], {}, None)
    assert await chunks("collections", "", 99, "") == sorted(names)
    assert await chunks("collections", "", 2, "a") == ["b", "é"]
    assert await chunks("collections", "s", 2, "") == ["other"]
    assert await chunks("collections", "nowhere", 2, "") == []


async def test_a_deletion_takes_what_it_names_and_nothing_else(chunks: Chunks) -> None:
    rows = by_id("a", "b", "c", "d")
    other = row("a", collection="other")
    await chunks("add", [*rows, other], {each.id: vector(1) for each in (*rows, other)}, ENGLISH)
    assert await chunks("delete", [rows[0].id, "unknown", rows[0].id]) == 1
    assert await chunks("delete", []) == 0
    assert await chunks("delete_some", "", "notes", None, 2) == 2
    assert await chunks("delete_some", "", "notes", None, 2) == 1
    assert await chunks("delete_some", "", "notes", None, 2) == 0
    assert await chunks("page", 9, "") == [other]
    left = chunks.contents()
    assert [each["id"] for name in (VECTORS, SIGNATURES) for each in left[name]] == [other.id, other.id]


# The index


async def test_the_index_finds_what_the_index_in_memory_finds(chunks: Chunks) -> None:
    dice = random.Random(7)
    words = ["boat", "lake", "may", "piano", "river", "stone"]
    rows: dict[str, ChunkRow] = {}
    for number in range(120):
        made = row(
            " ".join(dice.choices(words, k=dice.randint(1, 8))),
            collection=dice.choice("ab"),
            owner=dice.choice([None, "Ann"]),
            source=number,
            who=dice.choice([None, "Anna", "\x00"]),
            at=dice.choice([None, date(2023, 5, dice.randint(1, 3))]),
            group=dice.choice([None, "g", "h/1"]),
            position=dice.randint(-5, 20),
        )
        rows[made.id] = made
    vectors = {name: vector(number, dice.choice("ef")) for number, name in enumerate(rows) if number % 3}
    with InMemoryStore() as memory:
        oracle = memory.blocking.log(KNOWLEDGE_LOG)
        for owner in (None, "Ann"):
            mine = [each for each in rows.values() if each.owner == owner]
            assert run_without_loop(oracle.add(mine, vectors, ENGLISH)) == await chunks("add", mine, vectors, ENGLISH)
        gone = dice.sample(sorted(rows), 20)
        assert run_without_loop(oracle.delete(gone)) == await chunks("delete", gone)
        every = sorted({each.scope for each in rows.values()})
        for scopes in (every[:1], every[1:3], every, ["_none"], []):
            await _compare(chunks, oracle.index, scopes, sorted(rows), words)


async def _compare(chunks: Chunks, oracle: SearchIndex, scopes: list[str], ids: list[str], words: list[str]) -> None:
    questions: list[tuple[str, tuple[Any, ...]]] = [
        ("counts", (scopes, [*scopes, *words, "nowhere"], None)),
        ("counts", (scopes, [], None)),
        *(("best", (scopes, weights, limit)) for weights in _WEIGHTS for limit in (0, 1, 7, 200)),
        *(("containing", (scopes, text, limit)) for text in ("", "boat", "lake may", "a") for limit in (0, 3, 200)),
        *(("people", (scopes, limit)) for limit in (0, 1, 10)),
        *(("signatures", (scopes, embedder, most)) for embedder in "efg" for most in (0, 20, 200)),
        ("vectors", ("e", ids)),
    ]
    for question, arguments in questions:
        expected = run_without_loop(getattr(oracle, question)(*arguments))
        found = await chunks.ask(question, *arguments)
        assert in_order(found) == in_order(expected), (question, arguments)
    for some in (ids[:3], ids[5:40], ["unknown"], []):
        found = await chunks.ask("around", scopes, some)
        expected = {each.id: each for each in run_without_loop(oracle.around(scopes, some))}
        assert sorted(each.id for each in found) == sorted(expected)
        for each in found:
            there = expected[each.id]
            assert (list(each.words), each.who, each.position) == (list(there.words), there.who, there.position)
            assert (each.group is None) == (there.group is None)
        groups = {(each.group, expected[each.id].group) for each in found}
        assert len({one for one, _ in groups}) == len({other for _, other in groups}) == len(groups)


def in_order(answer: Any) -> Any:
    """Signatures come in any order."""
    return sorted(zip(*answer, strict=True)) if isinstance(answer, Signatures) else answer


_WEIGHTS: list[Mapping[str, int]] = [{}, {"boat": 3}, {"boat": 3, "lake": 2, "piano": 2}, {"nowhere": 1, "may": 1}]


async def test_a_text_is_found_letter_by_letter_however_long_it_is(chunks: Chunks) -> None:
    long = "long " * 20_000
    rows = [row(text, source=number) for number, text in enumerate(["a.c", "abc", "a%c $where [x] \\d", long])]
    await chunks("add", rows, {}, ENGLISH)
    scopes = [rows[0].scope]
    for wanted, found in (("a.c", [0]), ("%", [2]), ("\\d", [2]), ("[x]", [2]), ("$where", [2]), (long[:-1], [3])):
        assert await chunks.ask("containing", scopes, wanted, 9) == [rows[each].id for each in found]


async def test_a_question_of_very_many_words_is_answered(chunks: Chunks) -> None:
    rows = [row(f"word{number} here", source=number) for number in range(300)]
    await chunks("add", rows, {}, ENGLISH)
    words = [f"word{number}" for number in range(280)]
    scopes = [rows[0].scope, "_other"]
    assert await chunks.ask("counts", scopes, [*scopes, *words], 10) == {
        rows[0].scope: 300,
        "_other": 0,
        **dict.fromkeys(words, 1),
    }
    expected = sorted(each.id for each in rows[:280])
    assert await chunks.ask("best", scopes, dict.fromkeys(words, 1), 1_000) == expected

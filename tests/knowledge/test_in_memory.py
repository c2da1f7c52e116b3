"""Chunks in the in-memory store, in both modes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory import ConflictError, ErasedError, InMemoryStore, StoreClosedError
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.cursors import Moment
from firefly_memory.erasure import erase, find_text, readmit
from firefly_memory.facets import registered
from firefly_memory.knowledge.facet import FACET
from firefly_memory.knowledge.in_memory import MemoryKnowledgeLog
from firefly_memory.knowledge.log import KNOWLEDGE_LOG, ChunkRow
from firefly_memory.search.index import Signatures, Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.scopes import scope_word
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode
from firefly_memory.tombstones.in_memory import MemoryTombstones
from tests.knowledge import ENGLISH, Chunks, row


@pytest.fixture(autouse=True)
def _knowledge() -> Iterator[None]:
    with registered([FACET]):
        yield


@pytest.fixture
def store() -> Iterator[InMemoryStore]:
    with InMemoryStore() as store:
        yield store


@pytest.fixture(params=Mode)
def chunks(request: pytest.FixtureRequest, store: InMemoryStore) -> Chunks:
    return Chunks(store, request.param)


def vector(number: int, embedder: str = "e") -> Vector:
    return Vector(embedder, bytes([number] * 8), bytes([number]))


async def test_a_chunk_that_is_there_is_left_as_it_is(chunks: Chunks) -> None:
    first, again = row("one text", who="Anna"), row("one text", who="Anna", day=1)
    assert await chunks("add", [first, first], {}, ENGLISH) == 1
    assert await chunks("add", [again, row("another")], {}, ENGLISH) == 1
    assert first.id == again.id
    assert await chunks("read", [first.id, "unknown", first.id]) == [first]
    assert await chunks("count", None, None) == 2


async def test_a_vector_is_stored_once_for_each_embedder(chunks: Chunks, store: InMemoryStore) -> None:
    one, other, third = sorted((row(text) for text in ("a", "b", "c")), key=lambda each: each.id)
    index = store.suspending.log(KNOWLEDGE_LOG).index
    given = {one.id: vector(1), "unknown": vector(2), third.id: vector(3)}
    assert await chunks("add", [one, other], given, ENGLISH) == 2
    assert await chunks("without_vector", "e", 10, "") == [other]
    assert await chunks("add", [one, other], {one.id: vector(4), other.id: vector(5)}, ENGLISH) == 0
    assert await index.vectors("e", [one.id, other.id, third.id]) == {
        one.id: vector(1).vector,
        other.id: vector(5).vector,
    }
    assert await chunks("add_vectors", {one.id: vector(6), other.id: vector(7, "f"), "unknown": vector(8)}) == 1
    assert await index.vectors("f", [one.id, other.id]) == {other.id: vector(7).vector}
    assert await index.signatures([one.scope], "f", 1) == Signatures([other.id], [vector(7).signature])
    await chunks("delete", [other.id])
    assert await index.vectors("f", [other.id]) == {}
    assert await index.signatures([one.scope], "e", 9) == Signatures([one.id], [vector(1).signature])
    await chunks.add(other)
    assert await chunks("without_vector", "e", 10, "") == [other], "a vector went with its chunk"


async def test_chunks_without_a_vector_come_in_pages(chunks: Chunks) -> None:
    rows = sorted((row(f"text {number}") for number in range(7)), key=lambda each: each.id)
    await chunks.add(*rows)
    await chunks("add_vectors", {rows[2].id: vector(1)})
    assert await chunks("without_vector", "e", 2, "") == rows[:2]
    assert await chunks("without_vector", "e", 2, rows[1].id) == rows[3:5]
    assert await chunks("without_vector", "e", 0, "") == []


async def test_the_language_of_the_first_writer_counts(chunks: Chunks) -> None:
    german = IndexLanguage("german", FORM)
    assert await chunks("language") is None
    assert await chunks("add", [], {}, german) == 0
    assert await chunks("language") is None
    await chunks("add", [row("Häuser", language="german")], {}, german)
    assert await chunks("language") == german
    assert await chunks("add", [row("Haus", language="german")], {}, None) == 1
    for other in (ENGLISH, IndexLanguage("german", FORM + 1)):
        with pytest.raises(ConflictError, match="german"):
            await chunks("add", [row("house")], {}, other)
    assert await chunks("count", None, None) == 2
    await chunks("delete_some", "", "notes", None, 2)
    assert await chunks("language") == german


async def test_chunks_of_an_erased_person_are_refused_with_their_vectors(chunks: Chunks, store: InMemoryStore) -> None:
    mine = row("mine", owner="ann")
    await chunks.add(row("public"), mine)
    assert erase(store, "ann").rows == {"chunks": 1}
    for refused in (mine, row("new", owner="ann")):
        with pytest.raises(ErasedError):
            await chunks("add", [refused], {refused.id: vector(1)}, ENGLISH)
    assert [each.text for each in await chunks.every()] == ["public"]
    assert await chunks.add(row("mine")) == 1, "the same text of nobody"
    assert readmit(store, "ann")
    assert await chunks.add(mine) == 1


async def test_a_first_chunk_that_is_refused_sets_no_language(chunks: Chunks, store: InMemoryStore) -> None:
    erase(store, "ann")
    with pytest.raises(ErasedError):
        await chunks("add", [row("mine", owner="ann")], {}, IndexLanguage("german", FORM))
    assert await chunks.add(row("public")) == 1


async def test_nothing_is_left_of_deleted_chunks(chunks: Chunks, store: InMemoryStore) -> None:
    rows = [row(f"secret {number}", who="Anna", group="g", position=number, owner="ann") for number in range(3)]
    await chunks("add", rows, {each.id: vector(1) for each in rows}, ENGLISH)
    assert find_text(store, "secret") != {}
    assert await chunks("delete", [rows[0].id, rows[0].id, "unknown"]) == 1
    assert await chunks("delete_some", "", "notes", None, 1) == 1
    assert await chunks("delete_some", "", "notes", None, 9) == 1
    assert await chunks("delete_some", "", "notes", None, 9) == 0
    for text in ("secret", "Anna", "ann", rows[0].id):
        assert find_text(store, text) == {}
    log: Any = store.suspending.log(KNOWLEDGE_LOG)
    for each in (log, log.index):
        assert [name for name, kept in vars(each).items() if isinstance(kept, (dict, list)) and kept] == []


async def test_the_words_of_a_stored_chunk_are_nobody_elses_to_change(chunks: Chunks, store: InMemoryStore) -> None:
    given = row("boat")
    words = list(given.words)
    await chunks.add(given._replace(words=words))
    words.append("piano")
    assert await chunks.every() == [given]
    await chunks("delete", [given.id])
    assert await store.suspending.log(KNOWLEDGE_LOG).index.counts([given.scope], ["boat", "piano"], None) == {
        "boat": 0,
        "piano": 0,
    }


async def test_a_closed_store_is_neither_read_nor_written(chunks: Chunks, store: InMemoryStore) -> None:
    await chunks.add(row("text"))
    index = store.suspending.log(KNOWLEDGE_LOG).index
    await store.close()
    calls: dict[str, list[Any]] = {"language": [], "page": [1, ""], "add": [[row("b")], {}, ENGLISH], "delete": [["a"]]}
    for operation, arguments in calls.items():
        with pytest.raises(StoreClosedError):
            await chunks(operation, *arguments)
    with pytest.raises(StoreClosedError, match="search"):
        await index.people([scope_word("")], 1)


async def test_a_store_that_was_closed_before_its_first_chunk_takes_none(chunks: Chunks, store: InMemoryStore) -> None:
    await store.close()
    with pytest.raises(StoreClosedError):
        await chunks.add(row("text"))


def test_threads_that_add_and_delete_at_once_lose_nothing(store: InMemoryStore) -> None:
    log = store.blocking.log(KNOWLEDGE_LOG)
    failed: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(100):
                mine = row(f"text {number} of {thread}", group="g", position=number)
                run_without_loop(log.add([mine, row(f"text {number} of all")], {}, ENGLISH))
                run_without_loop(log.index.best([mine.scope], {"text": 1, str(number): 2}, 9))
                if number % 2:
                    run_without_loop(log.delete([mine.id]))
        except BaseException as exc:  # noqa: BLE001 - shown below
            failed.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []
    assert run_without_loop(log.count("", "notes")) == 4 * 50 + 100
    scope = row("x").scope
    assert run_without_loop(log.index.counts([scope], [scope, "text"], None)) == {scope: 300, "text": 300}


class Kept:
    """What a log needs of a store."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self.tombstones = MemoryTombstones()


chunk_rows = st.builds(
    row,
    st.sampled_from(["one", "two", "three", "\0", "\ud800"]),
    day=st.integers(0, 2),
    space=st.sampled_from(["", "s", "S\x10"]),
    collection=st.sampled_from(["a", "b", "\U0001f600"]),
    owner=st.sampled_from([None, "ann", "bob"]),
    source=st.sampled_from([None, 1, {"b": 1, "a": 2}]),
)


@given(st.lists(chunk_rows, max_size=20), st.data())
def test_pages_are_those_of_a_sorted_list(rows: list[ChunkRow], data: st.DataObject) -> None:
    log = MemoryKnowledgeLog(Kept())
    there: dict[str, ChunkRow] = {}
    for each in rows:
        assert run_without_loop(log.add([each], {}, ENGLISH)) == (each.id not in there)
        there.setdefault(each.id, each)
    gone = data.draw(st.lists(st.sampled_from(sorted(there)), max_size=5)) if there else []
    assert run_without_loop(log.delete(gone)) == len(set(gone))
    left = sorted(each for name, each in there.items() if name not in gone)
    limit, after = data.draw(st.integers(0, 5)), data.draw(st.sampled_from(["", "8", *there]))
    assert run_without_loop(log.page(limit, after)) == [each for each in left if each.id > after][:limit]
    for owner in ("ann", "bob", "eve"):
        ids = [each.id for each in left if each.owner == owner and each.id > after]
        assert run_without_loop(log.of_owner(owner, limit, after)) == ids[:limit]
    _check_collections(log, left, limit)


def _check_collections(log: MemoryKnowledgeLog, left: list[ChunkRow], limit: int) -> None:
    assert run_without_loop(log.count(None, None)) == len(left)
    for space in ("", "s", "other"):
        in_space = [each for each in left if each.space == space]
        assert run_without_loop(log.count(space, None)) == len(in_space)
        names = sorted({each.collection for each in in_space})
        assert run_without_loop(log.collections(space, limit, "")) == names[:limit]
        assert run_without_loop(log.collections(space, 9, "a")) == [each for each in names if each > "a"]
        for name in (*names, "other"):
            found = sorted(Moment(each.created_at, each.id) for each in in_space if each.collection == name)
            assert run_without_loop(log.count(space, name)) == len(found)
            for after in (None, *found):
                wanted = [each.name for each in found if after is None or each > after]
                page = run_without_loop(log.oldest(space, name, limit, after))
                assert [each.id for each in page] == wanted[:limit]

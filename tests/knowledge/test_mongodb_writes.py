"""Writes of chunks in MongoDB: refused, broken off, and at the same time as others."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import pymongo
import pytest

from firefly_memory import ConflictError, DatabaseStoreError, ErasedError, MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.erasure import erase, readmit
from firefly_memory.knowledge.log import CHUNKS as SUBJECT
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.mongodb import vectors as stored_vectors
from firefly_memory.search.words import FORM
from firefly_memory.tombstones.log import TOMBSTONES, owner_identity
from firefly_memory.tombstones.mongodb.gates import Gate
from tests.knowledge import ENGLISH, START, row
from tests.support.backends import Place
from tests.support.mongodb_chunks import CHUNKS, SIGNATURES, VECTORS, Chunks, by_id, contents, vector
from tests.support.mongodb_commands import AtCommand
from tests.support.mongodb_tombstones import Somewhere

pytestmark = pytest.mark.thorough

# Erased people


async def test_chunks_of_an_erased_person_are_refused_with_their_vectors(chunks: Chunks) -> None:
    mine, new, theirs = row("mine", owner="Ann"), row("new", owner="Ann"), row("mine")
    await chunks("add", [mine], {mine.id: vector(1)}, ENGLISH)
    await chunks("add", [theirs], {theirs.id: vector(2)}, None)
    assert erase(chunks.store, "Ann").rows == {"chunks": 1}
    before = chunks.contents()
    assert {each["_id"] for each in before[CHUNKS]} == {theirs.id}
    for refused in (mine, new):
        with pytest.raises(ErasedError) as caught:
            await chunks("add", [refused], {refused.id: vector(1)}, ENGLISH)
        assert "Ann" not in str(caught.value)
    assert chunks.contents() == before
    for seen in (await chunks("page", 9, ""), await chunks("read", [mine.id, theirs.id])):
        assert seen == [theirs], "nobody sees a tombstone"
    assert await chunks("count", None, None) == 1
    assert readmit(chunks.store, "Ann")
    assert await chunks("add", [mine], {}, None) == 1


async def test_a_first_chunk_that_is_refused_sets_no_language(chunks: Chunks) -> None:
    erase(chunks.store, "Ann")
    with pytest.raises(ErasedError):
        await chunks("add", [row("new", owner="Ann")], {}, ENGLISH)
    assert await chunks("language") is None


class InBetween:
    """Adds a tombstone between the first look of a write and all that follows it."""

    def __init__(self, patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
        real, self.acted = Gate._send, 0

        async def send(gate: Gate, writes: Sequence[Any], session: Any = None) -> Any:
            looks = len(gate.tombstones)
            if not looks or len(writes) == looks or self.acted:
                return await real(gate, writes, session)
            await real(gate, writes[:looks], session)
            self.acted += 1
            act()
            return await real(gate, writes[looks:], session)

        patch.setattr(Gate, "_send", send)


def test_what_was_written_between_two_looks_is_taken_back(
    somewhere: Somewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    with somewhere.store() as store, somewhere.store() as other:
        log = store.blocking.log(KNOWLEDGE_LOG)
        theirs = row("of Bob", owner="Bob")
        run_without_loop(log.add([theirs], {theirs.id: vector(1)}, ENGLISH))
        before = contents(somewhere)
        refuse = other.blocking.log(TOMBSTONES).add
        thread = threading.Thread(target=lambda: run_without_loop(refuse([owner_identity("Ann")], "Ann", START)))
        run_without_loop(other.blocking.log(TOMBSTONES).are_there([owner_identity("Ann")]))

        def add() -> None:
            thread.start()
            thread.join()

        between, rows = InBetween(monkeypatch, add), by_id("one", "two", owner="Ann")
        with pytest.raises(ErasedError):
            run_without_loop(log.add(rows, {each.id: vector(2) for each in rows}, None))
        assert between.acted == 1
        assert contents(somewhere) == before


# Writes that break off


class BrokenOffError(Exception):
    """The process ended here."""


def breaking_off(patch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool = False) -> None:
    """From now on, a call of this function ends the process: before it, or after it."""
    real = getattr(owner, name)

    async def broken(*arguments: Any, **options: Any) -> Any:
        if after:
            await real(*arguments, **options)
        raise BrokenOffError

    patch.setattr(owner, name, broken)


async def test_of_an_addition_that_broke_off_nothing_is_found(chunks: Chunks, server: str) -> None:
    mine = row("text", owner="Ann", group="g")
    await chunks("add", [row("of nobody")], {}, ENGLISH)
    with pytest.MonkeyPatch.context() as patch:
        if server == "standalone":
            breaking_off(patch, Gate, "write")
        else:
            breaking_off(patch, stored_vectors, "insert_vectors", after=True)
        with pytest.raises(BrokenOffError):
            await chunks("add", [mine], {mine.id: vector(1)}, None)
    assert len(chunks.contents()[CHUNKS]) == 1
    assert (VECTORS in chunks.contents()) == (server == "standalone")
    assert await chunks("read", [mine.id]) == await chunks("of_owner", "Ann", 9, "") == []
    assert await chunks.ask("around", [mine.scope], [mine.id]) == []
    assert await chunks.ask("counts", [mine.scope], [mine.scope], None) == {mine.scope: 0}
    assert await chunks("add", [mine], {mine.id: vector(1)}, None) == 1
    assert await chunks.ask("vectors", "e", [mine.id]) == {mine.id: vector(1).vector}
    assert len(chunks.contents()[VECTORS]) == len(chunks.contents()[SIGNATURES]) == 1


async def test_a_deletion_that_broke_off_leaves_all_or_what_nobody_finds(chunks: Chunks, server: str) -> None:
    mine = row("text", owner="Ann", group="g")
    await chunks("add", [mine], {mine.id: vector(1)}, ENGLISH)
    whole = chunks.contents()
    with pytest.MonkeyPatch.context() as patch:
        breaking_off(patch, stored_vectors, "delete_vectors")
        with pytest.raises(BrokenOffError):
            await chunks("delete", [mine.id])
    if server == "replica set":
        assert chunks.contents() == whole
        return
    assert set(chunks.contents()) == {VECTORS, SIGNATURES}
    assert await chunks.ask("around", [mine.scope], [mine.id]) == []
    assert await chunks("without_vector", "e", 9, "") == []
    assert await chunks("add", [mine], {}, None) == 1
    assert await chunks("without_vector", "e", 9, "") == [], "it has the vector that it had"


@pytest.mark.parametrize("texts", [["one"], ["one", "two", "three"]])
async def test_new_chunks_take_up_the_vectors_that_were_left_behind(chunks: Chunks, texts: list[str]) -> None:
    """Of a time when the server was a standalone one, for example."""
    rows = by_id(*texts, owner="Ann")
    await chunks("add", [row("of Bob", owner="Bob")], {}, ENGLISH)
    await chunks("add", rows, {rows[-1].id: vector(1)}, None)
    chunks.somewhere.database[CHUNKS].delete_many({"owner": "Ann"})
    assert await chunks("add", rows, {each.id: vector(2) for each in rows}, None) == len(rows)
    expected = {each.id: vector(2).vector for each in rows} | {rows[-1].id: vector(1).vector}
    assert await chunks.ask("vectors", "e", [each.id for each in rows]) == expected
    assert len(chunks.contents()[SIGNATURES]) == len(rows)
    assert all(each.get("embedders", ["e"]) == ["e"] for each in chunks.contents()[CHUNKS])


@pytest.mark.parametrize("broken", ["addition", "deletion"])
async def test_an_erasure_deletes_vectors_that_were_left_behind(chunks: Chunks, broken: str) -> None:
    mine, theirs = by_id("one", "two", owner="Ann"), row("theirs", owner="Bob")
    await chunks("add", [theirs], {theirs.id: vector(3)}, ENGLISH)
    before = chunks.contents()
    given = {mine[0].id: vector(1), mine[1].id: vector(2, "f")}
    with pytest.MonkeyPatch.context() as patch:
        if broken == "addition":
            breaking_off(patch, Gate, "write")
        else:
            await chunks("add", mine, given, None)
            breaking_off(patch, stored_vectors, "delete_vectors")
        with suppress(BrokenOffError):
            await (chunks("add", mine, given, None) if broken == "addition" else chunks("delete", [mine[0].id]))
    erase(chunks.store, "Ann")
    assert chunks.contents() == before


async def test_a_page_of_vectors_that_were_left_behind_goes_on(chunks: Chunks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_vectors, "_LEFT_AT_ONCE", 2)
    mine = by_id(*"abcdefg", owner="Ann")
    await chunks("add", mine, {each.id: vector(1) for each in mine}, ENGLISH)
    gone = [mine[each].id for each in (0, 3, 6)]
    chunks.somewhere.database[CHUNKS].delete_many({"_id": {"$in": gone}})
    connection = await chunks.done(chunks.log._access.connected("erase"))  # type: ignore[attr-defined]
    await chunks.done(stored_vectors.delete_left_behind(connection, SUBJECT, "Ann"))
    left = [each["id"] for each in chunks.somewhere.database[VECTORS].find().sort("id")]
    assert left == [each.id for each in mine if each.id not in gone]


@pytest.mark.parametrize("command", range(1, 6))
async def test_an_addition_that_is_cancelled_is_whole_or_not_there(somewhere: Somewhere, command: int) -> None:
    mine, cancelling = row("text", owner="Ann"), AtCommand()
    client: Any = pymongo.AsyncMongoClient(somewhere.url, event_listeners=[cancelling])
    async with MongoDBStore(client=client, database=somewhere.name) as store:
        log = store.suspending.log(KNOWLEDGE_LOG)
        await log.add([row("of Bob", owner="Bob")], {}, ENGLISH)
        task = asyncio.create_task(log.add([mine], {mine.id: vector(1)}, ENGLISH))
        cancelling.arm(command, task.cancel)
        with suppress(asyncio.CancelledError):
            await task
        there = {name: len(documents) for name, documents in contents(somewhere).items()}
        assert there in ({CHUNKS: 1}, {CHUNKS: 2, VECTORS: 1, SIGNATURES: 1})
    await client.close()


# Writes at the same time


_MEANWHILE = [("replica set", 2), *(("standalone", command) for command in (2, 3, 4, 5))]
"""Before which command the chunk is deleted. Later in a transaction, the deletion would wait for its end."""


@pytest.mark.parametrize(("server", "command"), _MEANWHILE)
def test_no_vector_is_added_to_a_chunk_that_is_deleted_meanwhile(somewhere: Somewhere, command: int) -> None:
    one, other = by_id("one", "two")
    between = AtCommand()
    with somewhere.listened(between) as store, somewhere.store() as elsewhere:
        log, others = store.blocking.log(KNOWLEDGE_LOG), elsewhere.blocking.log(KNOWLEDGE_LOG)
        run_without_loop(others.add([one, other], {}, ENGLISH))
        run_without_loop(log.count(None, None))
        between.arm(command, lambda: run_without_loop(others.delete([one.id])))
        assert run_without_loop(log.add_vectors({one.id: vector(1), other.id: vector(2)})) == 1
        there = contents(somewhere)
        assert [each["_id"] for each in there[CHUNKS]] == [other.id]
        assert [each["id"] for name in (VECTORS, SIGNATURES) for each in there[name]] == [other.id, other.id]


def test_a_chunk_that_is_deleted_while_it_gets_a_vector_is_stored_again_with_the_vector(place: Place) -> None:
    one, between = row("one"), AtCommand()
    with ExitStack() as later:
        somewhere = Somewhere(place.mongodb(), later)
        store, elsewhere = later.enter_context(somewhere.listened(between)), later.enter_context(somewhere.store())
        log, others = store.blocking.log(KNOWLEDGE_LOG), elsewhere.blocking.log(KNOWLEDGE_LOG)
        run_without_loop(others.add([one], {}, ENGLISH))
        run_without_loop(log.count(None, None))
        # The first command looks at the language, and has the snapshot.
        between.arm(2, lambda: run_without_loop(others.delete([one.id])))
        assert run_without_loop(log.add([one], {one.id: vector(1)}, ENGLISH)) == 1
        there = contents(somewhere)
        assert [each["_id"] for each in there[CHUNKS]] == [one.id]
        assert [each["id"] for each in there[VECTORS]] == [one.id]


def test_what_others_delete_meanwhile_ends_no_list_and_no_deletion(somewhere: Somewhere) -> None:
    rows, between = by_id("a", "b", "c", "d"), AtCommand()
    with somewhere.listened(between) as store, somewhere.store() as elsewhere:
        log, others = store.blocking.log(KNOWLEDGE_LOG), elsewhere.blocking.log(KNOWLEDGE_LOG)
        run_without_loop(others.add(rows, {}, ENGLISH))
        run_without_loop(log.count(None, None))
        # The ids of a page are found, then those without a vector, then the chunks.
        between.arm(3, lambda: run_without_loop(others.delete([rows[0].id])))
        assert run_without_loop(log.without_vector("e", 1, "")) == [rows[1]]
        between.arm(2, lambda: run_without_loop(others.delete([rows[1].id])))
        assert run_without_loop(log.delete_some("", "notes", None, 1)) == 1
        assert [each["_id"] for each in contents(somewhere)[CHUNKS]] == [rows[3].id]


def test_writers_at_once_store_each_chunk_once(somewhere: Somewhere) -> None:
    rows = [row(f"text {number}", owner="Ann") for number in range(40)]
    given = {each.id: vector(1) for each in rows}
    stored: list[int] = []
    with somewhere.store() as store:
        log = store.blocking.log(KNOWLEDGE_LOG)

        def write(start: int) -> None:
            turned = [*rows[start:], *rows[:start]]
            stored.append(sum(run_without_loop(log.add(turned[n : n + 8], given, ENGLISH)) for n in range(0, 40, 8)))

        threads = [threading.Thread(target=write, args=(start,)) for start in (0, 10, 20, 30)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(stored) == 4
        assert sum(stored) == 40
        assert {name: len(each) for name, each in contents(somewhere).items()} == dict.fromkeys(
            (CHUNKS, VECTORS, SIGNATURES), 40
        )


def test_of_first_writers_at_once_one_decides_the_language(somewhere: Somewhere) -> None:
    german, stored, start = IndexLanguage("german", FORM), [], threading.Barrier(6)
    with somewhere.store() as store:
        log = store.blocking.log(KNOWLEDGE_LOG)
        run_without_loop(log.count(None, None))

        def write(number: int) -> None:
            language = (ENGLISH, german)[number % 2]
            start.wait()
            with suppress(ConflictError):
                run_without_loop(log.add([row(f"text {number}", language=language.language)], {}, language))
                stored.append(language)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert stored == [run_without_loop(log.language())] * 3
        assert run_without_loop(log.count(None, None)) == 3


async def test_a_refused_write_does_not_quote_the_chunk(chunks: Chunks) -> None:
    await chunks("add", [row("first")], {}, ENGLISH)
    content = "a sec" + "ret"  # in two parts: a traceback shows lines of this file
    chunks.somewhere.database.command("collMod", CHUNKS, validator={"position": {"$gt": 7}})
    try:
        with pytest.raises(DatabaseStoreError, match="failed validation") as caught:
            await chunks("add", [row(content)], {}, None)
    finally:
        chunks.somewhere.database.command("collMod", CHUNKS, validator={})
    assert content not in "".join(traceback.format_exception(caught.value))

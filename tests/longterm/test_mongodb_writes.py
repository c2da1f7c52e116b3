"""Writes of long-term memory in MongoDB: refused, broken off, and made in spite of others."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from firefly_memory import DatabaseStoreError, ErasedError
from firefly_memory.concurrency.sync_bridge import run_without_loop as run
from firefly_memory.erasure import erase, readmit
from firefly_memory.longterm.rows import FactRow
from firefly_memory.search.mongodb import vectors as stored_vectors
from firefly_memory.tombstones.log import TOMBSTONES, owner_identity
from firefly_memory.tombstones.mongodb.gates import Gate
from tests.support.long_term_logs import ENGLISH, START, at, fact, person
from tests.support.mongodb_chunks import vector
from tests.support.mongodb_long_term import (
    FACTS,
    SIGNATURES,
    VECTORS,
    VERSIONS,
    Stored,
    contents,
    of,
    versions_are_whole,
)
from tests.support.mongodb_tombstones import Somewhere

ANN, BOB = "chat:Ann", "chat:Bob"


# Erased people


async def test_facts_of_an_erased_person_are_refused_with_all_that_belongs_to_them(stored: Stored) -> None:
    await stored.meet("Ann", "Bob")
    theirs = of(BOB)
    for row in (of(ANN), of(ANN, value="new", second=1), theirs, fact("told", owner=ANN)):
        await stored.set(row, vector(1))
    erase(stored.store, ANN)
    before = stored.contents()
    assert [each["_id"] for each in before[FACTS]] == [theirs.id]
    late = (
        stored.set(of(ANN), vector(1)),
        stored.set(fact("told", owner=ANN), vector(1)),
        stored.set(fact("k", owner=ANN), overwrite=False),
        stored.facts("restore", of(ANN), [], ENGLISH),
        stored.people("meet", person("Ann")),
        stored.people("restore", person("Ann")),
    )
    for refused in late:
        with pytest.raises(ErasedError) as caught:
            await refused
        assert "Ann" not in str(caught.value)
    assert stored.contents() == before
    assert await stored.facts("count") == len(await stored.facts("page", 9, "")) == 1, "nobody sees a tombstone"
    assert [row.canonical_id for row in await stored.people("page", 9, "")] == [BOB]
    assert await stored.people("count") == len(await stored.people("list", "default", 9, None)) == 1
    assert readmit(stored.store, ANN)
    assert (await stored.set(of(ANN))).outcome == "created"


async def test_a_first_fact_that_is_refused_sets_no_language(stored: Stored) -> None:
    erase(stored.store, ANN)
    with pytest.raises(ErasedError):
        await stored.set(of(ANN))
    assert await stored.facts("language") is None


class InBetween:
    """Does something between the first look of a write and all that follows it."""

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


@pytest.mark.parametrize("number", [None, 2], ids=["without vector", "with vector"])
@pytest.mark.parametrize("there", [None, "of all", "by Ann"], ids=["new", "another value", "the same value"])
def test_what_was_written_between_two_looks_is_taken_back(
    somewhere: Somewhere, monkeypatch: pytest.MonkeyPatch, there: str | None, number: int | None
) -> None:
    with somewhere.store() as store, somewhere.store() as other:
        mine, refuse = Stored(somewhere, store), other.blocking.log(TOMBSTONES).add
        run(mine.set(of(BOB), vector(1)))
        if there is not None:
            run(mine.set(fact("told", there)))
        before = contents(somewhere)
        run(other.blocking.log(TOMBSTONES).are_there([owner_identity(ANN)]))

        def add() -> None:
            thread = threading.Thread(target=lambda: run(refuse([owner_identity(ANN)], ANN, START)))
            thread.start()
            thread.join()

        between = InBetween(monkeypatch, add)
        with pytest.raises(ErasedError):
            run(mine.set(fact("told", "by Ann", owner=ANN, second=1), None if number is None else vector(number)))
        assert between.acted == 1
        monkeypatch.undo()
        if store.database.has_transactions:
            assert contents(somewhere) == before
        else:  # it was the erased person's for a moment, and the erasure would have deleted it
            assert [each["scope_id"] for each in contents(somewhere)[FACTS]] == [BOB]
        assert versions_are_whole(somewhere)


# Writes that break off


class BrokenOffError(Exception):
    """The process ended here."""


@pytest.mark.parametrize("value", ["the old one", "another one"])
async def test_a_write_that_broke_off_anywhere_can_be_made_again(stored: Stored, value: str) -> None:
    """And it has left nothing that anybody sees, or it was done."""
    number, sent = 0, 1
    while sent > number - 1:
        number += 1
        old, new = of(ANN, value="the old one"), of(ANN, value=value, second=1)
        await stored.set(old, vector(1))
        (before,) = await stored.facts("page", 9, "")
        with pytest.MonkeyPatch.context() as patch, suppress(BrokenOffError):
            count = _breaking_off(patch, number)
            await stored.set(new, vector(2))
        sent = count()
        await _check_what_is_there(stored, before, new)
        done = await stored.set(new, vector(2))
        assert (done.outcome, done.row.times_confirmed) == ("updated", 2)
        said = [(each.number, each.value, each.superseded_at) for each in await stored.facts("versions", old.id, 9, 0)]
        assert said == ([(1, old.value, new.newest)] if new.value != old.value else [])
        assert await stored.facts("damage") == []
        assert versions_are_whole(stored.somewhere)
        await stored.facts("delete", [old.id])
    assert number > 3


async def _check_what_is_there(stored: Stored, before: FactRow, new: FactRow) -> None:
    """All of the write, or nothing that anybody sees; and no vector of a value that is gone."""
    (there,) = await stored.facts("page", 9, "")
    assert there in (before, before._replace(**{name: getattr(there, name) for name in _CHANGED}))
    assert there.value in (before.value, new.value)
    if there.value != before.value:
        assert await stored.facts_index("vectors", "e", [there.id]) in ({}, {there.id: vector(2).vector})


_CHANGED = ("value", "times_confirmed", "versions", "written_by", "valid_from", "newest", "searchable", "words")


def _breaking_off(patch: pytest.MonkeyPatch, number: int) -> Callable[[], int]:
    """From now on, the process ends before the write with this number; how many were sent."""
    from pymongo.asynchronous.collection import AsyncCollection
    from pymongo.synchronous.collection import Collection

    sent = 0
    names = ("bulk_write", "insert_many", "insert_one", "replace_one", "delete_many", "find_one_and_update")

    def broken(real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal sent
            sent += 1
            if sent == number:
                raise BrokenOffError
            return real(*arguments, **options)

        return call

    for each in (AsyncCollection, Collection):
        for name in names:
            patch.setattr(each, name, broken(getattr(each, name)))
    return lambda: sent


async def test_an_erasure_deletes_what_interrupted_writes_have_left_behind(stored: Stored) -> None:
    mine, theirs = of(ANN), of(BOB)
    for row in (mine, theirs):
        await stored.set(row, vector(1))
        await stored.set(row._replace(value='"new"', written_by="w"), vector(2))
    database = stored.somewhere.database
    database[FACTS].delete_one({"_id": mine.id})
    erase(stored.store, ANN)
    assert {each["fact_id"] for each in database[VERSIONS].find()} == {theirs.id}
    assert {each["id"] for name in (VECTORS, SIGNATURES) for each in database[name].find()} == {theirs.id}


async def test_an_interrupted_deletion_leaves_all_or_what_nobody_sees(stored: Stored, server: str) -> None:
    mine = of(ANN)
    for row in (mine, of(ANN, value="new", second=1)):
        await stored.set(row, vector(1))
    before = stored.contents()
    (there,) = await stored.facts("page", 9, "")
    with pytest.MonkeyPatch.context() as patch:

        async def broken(*_: Any, **__: Any) -> None:
            raise BrokenOffError

        patch.setattr(stored_vectors, "delete_vectors", broken)
        with pytest.raises(BrokenOffError):
            await stored.facts("delete", [mine.id])
    if server == "replica set":
        assert stored.contents() == before
        return
    assert FACTS not in stored.contents()
    assert await stored.facts("restore", there, await stored.facts("versions", mine.id, 9, 0), ENGLISH)
    assert await stored.facts("without_vector", "e", 9, "") == [there], "a restored fact takes none of these up"


async def test_facts_are_deleted_as_long_as_nobody_has_written_to_them(stored: Stored) -> None:
    rows = [of(ANN, key) for key in "abc"]
    for row in rows:
        await stored.set(row, vector(1))
        await stored.set(row._replace(value='"new"', written_by=f"by {row.key}"), vector(2))
    ids = [row.id for row in rows]
    assert await stored.facts("delete", [*ids, "nobody"], ["by a", rows[1].written_by, "by c"]) == 2
    assert [each["_id"] for each in stored.contents()[FACTS]] == [rows[1].id]
    assert versions_are_whole(stored.somewhere)
    assert await stored.facts("vectors_by_embedder") == {"e": 1}


async def test_a_refused_write_does_not_quote_the_fact(stored: Stored) -> None:
    await stored.set(of(ANN, "first"))
    content = "a sec" + "ret"  # in two parts: a traceback shows lines of this file
    stored.somewhere.database.command("collMod", FACTS, validator={"position": {"$gt": 7}})
    try:
        with pytest.raises(DatabaseStoreError, match="failed validation") as caught:
            await stored.set(of(ANN, "second", content))
        assert content not in "".join(traceback.format_exception(caught.value))
    finally:
        stored.somewhere.database.command("collMod", FACTS, validator={})


async def test_a_rewrite_gives_way_to_a_write_and_to_a_merging(stored: Stored) -> None:
    rows = [(await stored.set(of(ANN, key))).row for key in "abc"]
    new = [row._replace(searchable="new\nform", words=(row.scope, "new")) for row in rows]
    await stored.facts("confirm", "default", rows[0].id, "w", at(1))
    stored.somewhere.database[FACTS].update_one({"_id": rows[1].id}, {"$set": {"scope": "_elsewhere"}})
    assert await stored.facts("rewrite", new) == 3
    found = {each.key: each.words for each in await stored.facts("page", 9, "")}
    assert found == {"a": rows[0].words, "b": rows[1].words, "c": new[2].words}
    assert await stored.facts("rewrite", []) == 0

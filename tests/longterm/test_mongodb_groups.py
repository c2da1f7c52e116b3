"""Which commands a write of long-term memory in MongoDB takes, and what becomes of writes that go together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import BulkWriteError

from firefly_memory import ErasedError, MongoDBStore
from firefly_memory.erasure import erase
from firefly_memory.errors import OutcomeUnknownError
from firefly_memory.longterm.rows import FactRow, PersonMovedError
from firefly_memory.search.index_language import IndexLanguage, LanguageError
from firefly_memory.testing import Mode
from firefly_memory.tombstones.mongodb import gates
from firefly_memory.tombstones.mongodb.gates import Gate
from tests.support.long_term_logs import ENGLISH, at, fact, written
from tests.support.mongodb_chunks import Commands, vector
from tests.support.mongodb_long_term import FACTS, Stored, of, versions_are_whole
from tests.support.mongodb_tombstones import Somewhere

ANN, BOB = "chat:Ann", "chat:Bob"

LOOK = ["aggregate"]
"""The facts, the markers and the language."""
COMMIT = ["commitTransaction"]
NEW_VALUE = [*LOOK, "update", "insert", *COMMIT]
DELETION, VECTOR = ["delete", "delete"], ["insert", "insert"]


async def test_a_write_takes_as_few_commands_as_it_can(replica_set: Somewhere) -> None:
    commands = Commands()
    with replica_set.listened(commands) as store:
        stored = Stored(replica_set, store)
        await stored.set(fact("first"))
        cases: list[tuple[FactRow, Any, list[str]]] = [
            (fact("k"), None, [*LOOK, "update"]),
            (fact("k", second=1), None, [*LOOK, "update"]),
            (fact("k", "new", second=2), None, NEW_VALUE),
            (of(ANN), None, [*LOOK, "update", *COMMIT]),
            (of(ANN, second=1), None, [*LOOK, "update"]),
            (of(ANN, value="new", second=2), None, NEW_VALUE),
            (of(ANN, "other"), vector(1), [*LOOK, "update", *VECTOR, *COMMIT]),
            (of(ANN, "other", "new", second=1), vector(2), [*NEW_VALUE[:-1], *DELETION, *VECTOR, *COMMIT]),
            (of(ANN, "other", "newer", second=2), None, [*NEW_VALUE[:-1], *DELETION, *COMMIT]),
            (of(ANN, "other", "newest", second=3), None, NEW_VALUE),
        ]
        for number, (row, with_vector, expected) in enumerate(cases):
            commands.sent.clear()
            await stored.set(row, with_vector)
            assert [name for name, _ in commands.sent] == expected, number
        commands.sent.clear()
        assert (await stored.set(of(ANN, second=9), overwrite=False)).outcome == "skipped"
        assert [name for name, _ in commands.sent] == [*LOOK, "update"], "the second one looks for tombstones"


def _grouped(somewhere: Somewhere, commands: Commands) -> tuple[AsyncMongoClient[Any], MongoDBStore]:
    client: AsyncMongoClient[Any] = AsyncMongoClient(somewhere.url, event_listeners=[commands])
    return client, MongoDBStore(client=client, database=somewhere.name)


async def test_writes_of_one_event_loop_go_together(replica_set: Somewhere) -> None:
    commands = Commands()
    client, store = _grouped(replica_set, commands)
    async with client, store:
        stored = Stored(replica_set, store, Mode.SUSPENDING)
        there = [of(f"chat:{number}", f"key {number}", "old") for number in range(10)]
        await stored.facts("set", [written(row, vector(1)) for row in there], ENGLISH)
        rows = [of(row.scope_id, row.key, "new", second=1) for row in there]
        rows += [fact(f"new {number}") for number in range(10)]
        commands.sent.clear()
        done = await asyncio.gather(*[stored.set(row) for row in rows])
        sent = [name for name, _ in commands.sent]
        assert [each.outcome for each in done] == ["updated"] * 10 + ["created"] * 10
        assert [(each.row.key, each.row.value) for each in done] == [(row.key, row.value) for row in rows]
        assert sorted(sent) == sorted([*NEW_VALUE[:-1], *DELETION, *COMMIT] * 2), "the first one, and all others"
        assert versions_are_whole(replica_set)
        assert await stored.facts("vectors_by_embedder") == {}


async def test_writes_to_one_fact_are_made_one_after_the_other(replica_set: Somewhere) -> None:
    async with replica_set.store() as store:
        stored = Stored(replica_set, store, Mode.SUSPENDING)
        rows = [of(ANN, value=number, second=number) for number in range(12)]
        done = await asyncio.gather(*[stored.set(row) for row in rows])
        assert [each.row.times_confirmed for each in done] == list(range(1, 13))
        said = await stored.facts("versions", rows[0].id, 99, 0)
        assert [each.value for each in said] == [row.value for row in rows[:-1]]


async def test_a_write_that_is_refused_fails_none_that_goes_together_with_it(replica_set: Somewhere) -> None:
    async with replica_set.store() as store:
        stored = Stored(replica_set, store, Mode.SUSPENDING)
        _, bob, cleo = await stored.meet("Ann", "Bob", "Cleo")
        await stored.people("merge", bob.word, cleo.word, "w", at(1))
        await stored.set(fact("warm"))
        erase(store, ANN)
        german = IndexLanguage("german", ENGLISH.form)
        good = [of("chat:Cleo", f"k{number}") for number in range(6)]
        calls = [
            *[stored.set(row) for row in good[:3]],
            stored.set(of(ANN)),
            stored.set(of(BOB)),
            stored.facts("set", [written(fact("deutsch"))], german),
            *[stored.set(row) for row in good[3:]],
        ]
        done: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in done[3:6]] == [ErasedError, PersonMovedError, LanguageError]
        assert [each.row.id for each in (*done[:3], *done[6:])] == [row.id for row in good]
        found = {each["_id"] for each in stored.contents()[FACTS]}
        assert {row.id for row in good} < found
        assert len(found) == len(good) + 1


async def test_a_caller_who_is_cancelled_fails_none_of_the_others(replica_set: Somewhere) -> None:
    async with replica_set.store() as store:
        stored = Stored(replica_set, store, Mode.SUSPENDING)
        await stored.set(fact("warm"))
        for turns in range(12):
            rows = [of(ANN, f"{turns} {number}") for number in range(6)]
            tasks = [asyncio.ensure_future(stored.set(row)) for row in rows]
            for _ in range(turns):
                await asyncio.sleep(0)
            tasks[turns % 6].cancel()
            done: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
            there = {row.key for row in await stored.facts("page", 999, "")}
            for row, result in zip(rows, done, strict=True):
                if not isinstance(result, asyncio.CancelledError):
                    assert (result.row.id, result.outcome) == (row.id, "created")
                    assert row.key in there
            assert [isinstance(each, BaseException) for each in done].count(True) <= 1


async def test_what_may_have_been_done_is_not_done_twice(replica_set: Somewhere) -> None:
    """A write is made again in this way if the answer to a group is lost."""
    async with replica_set.store() as store:
        stored = Stored(replica_set, store, Mode.SUSPENDING)
        mine, theirs = of(ANN, value="mine", second=1), of(ANN, value="theirs", second=2)
        for _ in range(2):
            (done,) = await stored.facts("_set_unless_set", [written(mine)], ENGLISH)
            assert (done.row.value, done.row.times_confirmed) == ('"mine"', 1)
        await stored.set(theirs)
        with pytest.raises(OutcomeUnknownError, match="somebody else has written to the fact since"):
            await stored.facts("_set_unless_set", [written(mine)], ENGLISH)
        (row,) = await stored.facts("page", 9, "")
        assert (row.value, row.times_confirmed) == ('"theirs"', 2)


async def test_a_fence_that_others_make_at_the_same_moment_is_in_nobodys_way(
    replica_set: Somewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = Gate._send, 0

    async def send(gate: Gate, writes: Sequence[Any], session: Any = None) -> Any:
        nonlocal refused
        try:
            return await real(gate, writes, session)
        except BulkWriteError:
            refused += 1
            database[FACTS].delete_one({"_id": b"fence 5"})
            raise

    async with replica_set.store() as store:
        stored, database = Stored(replica_set, store), replica_set.database
        await stored.set(fact("warm"))
        monkeypatch.setattr(gates, "randbelow", lambda _: 5)
        monkeypatch.setattr(Gate, "_send", send)
        for number, with_vector in enumerate((None, vector(1)), start=1):
            database[FACTS].replace_one({"_id": b"fence 5"}, {"scope": b"elsewhere", "key": number}, upsert=True)
            done = await stored.set(of(ANN, str(number)), with_vector)
            assert (refused, done.outcome, len(stored.contents()[FACTS])) == (number, "created", number + 1)

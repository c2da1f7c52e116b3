"""Long-term memory in MongoDB, on a replica set and on a standalone server, in both modes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest

from firefly_memory import CorruptDataError, InvalidEntryError, NotSupportedError
from firefly_memory.databases.mongodb.estimates import estimated_documents
from firefly_memory.databases.mongodb.indexes import differences
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import Filters, PersonMovedError, UserRow, VersionRow
from firefly_memory.tombstones.log import TOMBSTONES
from tests.support.backends import Place
from tests.support.long_term_logs import ENGLISH, at, fact, person, written
from tests.support.mongodb_chunks import Commands, vector
from tests.support.mongodb_long_term import FACTS, USERS, VERSIONS, Stored, of
from tests.support.mongodb_tombstones import Somewhere

ANN, BOB, CLEO = "chat:Ann", "chat:Bob", "chat:Cleo"


def merged(row: UserRow, into: UserRow) -> UserRow:
    return row._replace(merged_into_id=into.id, stands_for=into.word)


# What is stored


async def test_every_field_of_every_row_comes_back_to_the_microsecond(stored: Stored) -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
    rows = [
        fact("k", {"a": ["\x00"]}),
        of(ANN, "é\x10\U0001f600", None, source="e", confidence=1 / 3)._replace(
            last_accessed=last, created_at=first, valid_from=last, access_count=2**40, times_confirmed=2**60, versions=2
        ),
    ]
    said = [
        VersionRow(rows[1].id, number, "1", 0.1 * number, "e" if number > 1 else None, ANN, first, last)
        for number in (1, 2)
    ]
    for row in rows:
        assert await stored.facts("restore", row, said if row is rows[1] else [], ENGLISH)
        assert not await stored.facts("restore", row, [], ENGLISH)
    assert list(await stored.facts("page", 9, "")) == sorted(rows, key=lambda row: row.id)
    assert list(await stored.facts("versions", rows[1].id, 9, 0)) == said
    one, other = person("Ann", name="A"), person("1", "telegram")
    everybody = [one._replace(last_conversation_at=last, first_seen=first, total_conversations=2**40), other]
    for each in everybody:
        assert await stored.people("restore", each)
    assert list(await stored.people("page", 9, "")) == sorted(everybody, key=lambda row: row.id)
    (document,) = stored.somewhere.database[FACTS].find({"_id": rows[0].id})
    assert all(isinstance(document[name], datetime) for name in ("created_at", "newest", "valid_from"))
    assert document.keys().isdisjoint({"owner", "place", "embedders"})


async def test_a_store_that_opens_makes_every_index(stored: Stored) -> None:
    await stored.facts("count")
    connection = stored.store.database.blocking()  # type: ignore[attr-defined]
    found = await asyncio.to_thread(asyncio.run, differences(connection))
    assert found == []


async def test_no_two_people_have_one_contact(stored: Stored) -> None:
    rows = [person("1", channel) for channel in ("telegram", "email")]
    for row in rows:
        assert (await stored.people("meet", row)).is_new
        assert not (await stored.people("meet", row)).is_new
        assert not await stored.people("restore", person("2")._replace(telegram_id=row.telegram_id, email=row.email))
    elsewhere = person("1", "telegram", space="other")
    assert (await stored.people("meet", elsewhere)).row == elsewhere, "each space has people of its own"
    assert await stored.people("restore", person("2")._replace(telegram_id="2"))
    late = person("2", "telegram")
    assert (await stored.people("meet", late)).row == late._replace(telegram_id=None), "another person has it"
    assert await stored.people("find", late.word) == late._replace(telegram_id=None)


async def test_a_fact_that_is_too_large_is_refused_before_anything_is_written(stored: Stored) -> None:
    large = fact("large", "漢" * 400_000)
    for writes in ([written(fact("small")), written(large, vector(1))], [written(large), written(fact("small"))]):
        with pytest.raises(InvalidEntryError, match="fact: is larger than the 16 MB"):
            await stored.facts("set", writes, ENGLISH)
    with pytest.raises(InvalidEntryError, match="16 MB"):
        await stored.facts("restore", large, [], ENGLISH)
    assert stored.contents() == {}
    assert await stored.facts("language") is None


async def test_facts_of_a_call_that_changes_nothing_are_written_once(stored: Stored) -> None:
    old, new, other = of(ANN, value=1), of(ANN, value=2, second=1), of(ANN, "other")
    await stored.facts("set", [written(old, vector(1))], ENGLISH)
    once = await stored.facts("set", [written(new, vector(2)), written(other, vector(3))], ENGLISH)
    before = stored.contents()
    assert await stored.facts("set", [written(new, vector(2)), written(other, vector(3))], ENGLISH) == once
    assert stored.contents() == before
    assert [each.outcome for each in once] == ["updated", "created"]
    assert await stored.facts_index("vectors", "e", [old.id]) == {old.id: vector(2).vector}


# Merged people


def test_a_lookup_is_one_command_and_for_a_merged_person_two(replica_set: Somewhere) -> None:
    commands = Commands()
    with replica_set.listened(commands) as store:
        service = MemoryService(store, embedder=None)
        for name in ("Ann", "Bob"):
            service.get_or_create_user("chat", name)
            service.set_fact("k", f"of {name}", scope="user", user_id=f"chat:{name}")
        service.merge_users(ANN, BOB)
        cases: list[tuple[dict[str, Any], Any, int]] = [
            ({"user_id": BOB, "agent_id": "a", "session_id": "s"}, "of Bob", 1),
            ({"user_id": ANN, "agent_id": "a"}, "of Bob", 2),
            ({"user_id": "chat:nobody"}, None, 1),
            ({}, None, 1),
        ]
        for ids, value, count in cases:
            commands.sent.clear()
            assert service.get_fact("k", **ids) == value
            assert [name for name, _ in commands.sent] == ["findAndModify"] * count, ids
            commands.sent.clear()
            service.get_fact("k", as_of=datetime.now(UTC), **ids)
            assert [name for name, _ in commands.sent] == ["find"] * count, ids
        (fact,) = service.list_facts(user_id=BOB)
        assert fact.access_count == 2, "and no marker has counted anything"


async def test_nobody_sees_a_marker(replica_set: Somewhere, place: Place) -> None:
    async with replica_set.store() as store:
        stored = Stored(replica_set, store)
        rows = await stored.meet("Ann", "Bob", "Cleo")
        mine = of(ANN, "color", "blue")
        await stored.set(mine, vector(1))
        await stored.people("merge", rows[0].word, rows[1].word, "w1", at(1))
        await stored.people("merge", rows[1].word, rows[2].word, "w2", at(2))
        assert [each["stands_for"] for each in stored.markers()] == [rows[2].word] * 2
        assert [row.id for row in await stored.facts("page", 9, "")] == [mine.id]
        assert await stored.facts("count") == 1
        places = [row.word for row in rows]
        for word in places:
            ids = [mine.id] if word == rows[2].word else []
            for filters in (Filters(), Filters(pattern=("blue",)), Filters(min_confidence=0.0)):
                assert [row.id for row in await stored.facts("list", [word], filters, 9, None)] == ids
            assert await stored.facts_index("containing", [word], "", 9) == ids
            assert await stored.facts_index("counts", [word], [word], None) == {word: len(ids)}
            assert await stored.facts_index("best", [word], {word: 1}, 9) == ids
            assert await stored.facts_index("people", [word], 9) == []
        assert await stored.facts("of_owner", CLEO, 9, "") == [mine.id]
        assert await stored.facts("without_vector", "other", 9, "") == await stored.facts("read", [mine.id])
        assert await stored.facts("damage") == []
        found = await store.suspending.log(TOMBSTONES).find_text("moved")
        assert [count for name, count in found if name == FACTS] == [2], "they are in the database"
    found_by_name = estimated_documents(replica_set.url, {"database": replica_set.name})
    assert found_by_name[FACTS] == 1


async def test_a_person_who_is_deleted_takes_the_markers_of_all_who_stood_for_them(replica_set: Somewhere) -> None:
    async with replica_set.store() as store:
        stored = Stored(replica_set, store)
        rows = await stored.meet("Ann", "Bob", "Cleo")
        await stored.people("merge", rows[0].word, rows[1].word, "w1", at(1))
        await stored.people("merge", rows[2].word, rows[1].word, "w2", at(1))
        assert await stored.people("delete", [rows[0].id]) == 1
        assert len(stored.markers()) == 1
        assert (await stored.set(of(ANN))).outcome == "created", "the place is anybody's again"
        assert await stored.people("delete", [rows[1].id]) == 1
        assert stored.markers() == []
        assert [each["scope_id"] for each in stored.contents()[FACTS]] == [ANN]


async def test_a_merged_person_of_an_archive_stands_for_the_other_one(stored: Stored) -> None:
    ann, bob = person("Ann"), person("Bob")
    assert await stored.people("restore", bob)
    assert await stored.people("restore", merged(ann, bob))
    assert not await stored.people("restore", merged(ann._replace(id="other"), bob))
    for act in (stored.set(of(ANN)), stored.facts("restore", of(ANN), [], ENGLISH)):
        with pytest.raises(PersonMovedError) as caught:
            await act
        assert (caught.value.word, caught.value.row) == (ann.word, bob)
    assert set(stored.contents()) == {USERS}
    theirs = of(BOB)
    await stored.set(theirs)
    found = await stored.facts("get", Lookup(None, ann.word, None, None), "k", at(1))
    assert (found.id, found.access_count) == (theirs.id, 1)


async def test_who_is_there_and_not_merged_gets_no_marker(stored: Stored) -> None:
    ann, bob = await stored.meet("Ann", "Bob")
    taken = person("Dan")._replace(telegram_id="1")
    await stored.people("restore", taken)
    for row in (
        ann,
        ann._replace(id="other"),
        person("Cleo")._replace(id=ann.id),
        person("Eve")._replace(telegram_id="1"),
    ):
        assert not await stored.people("restore", merged(row, bob))
    assert stored.markers() == []


async def test_people_who_stand_for_nobody_or_in_a_circle_are_damaged(stored: Stored) -> None:
    ann, bob, gone = person("Ann"), person("Bob"), person("Gone")
    for row, into in ((ann, gone), (bob, bob)):
        await stored.people("restore", merged(row, into))
    database = stored.somewhere.database
    database[FACTS].update_one({"stands_for": gone.word}, {"$set": {"refuses": "writes"}})
    with pytest.raises(CorruptDataError, match=ann.word):
        await stored.set(of(ANN))
    assert await stored.people("root", ann.word) is None
    await stored.people("restore", merged(gone, ann))
    for operation in ("get", "as_of"):
        with pytest.raises(CorruptDataError, match="was merged as well"):
            await stored.facts(operation, Lookup(None, ann.word, None, None), "k", at(1))
    database[FACTS].update_many({"key": b"moved"}, {"$set": {"stands_for": 7}})
    with pytest.raises(CorruptDataError, match="marker"):
        await stored.facts("find", Lookup(None, ann.word, None, None), "k")


async def test_a_standalone_server_refuses_to_merge_people(stored: Stored, server: str) -> None:
    ann, bob = await stored.meet("Ann", "Bob")
    await stored.set(of(ANN))
    if server == "replica set":
        assert (await stored.people("merge", ann.word, bob.word, "w", at(1))).refusal is None
        return
    before = stored.contents()
    with pytest.raises(NotSupportedError, match="replica set"):
        await stored.people("merge", ann.word, bob.word, "w", at(1))
    assert (stored.contents(), stored.markers()) == (before, [])


# Lists


async def test_a_pattern_is_found_letter_by_letter_in_one_line_and_in_little_time(stored: Stored) -> None:
    long = "ab " * 300_000
    texts = ["a.c", "abc", "a%c $where [x] \\d", "x^y (?s) .*", "é\U0001f600 end", f"{long}end"]
    rows = [fact(f"key {number}", text) for number, text in enumerate(texts)]
    await stored.facts("set", [written(row) for row in rows], ENGLISH)
    started = monotonic()
    for words, found in (
        (("a.c",), [0]), (("%",), [2]), (("\\d",), [2]), (("$where", "]"), [2]), (("]", "$where"), []),
        (("(?s)", ".*"), [3]), (("é", "end"), [4]), (("\U0001f600",), [4]), (("key", "abc"), []), (("key", "1"), [1]),
        (("ab", "b", "a", "end"), [5]), (("a", "b", "a", "b", "nowhere"), []), (("ab", "ab", "key"), []),
        ((" ".join(long.split()),), [5]), (("end", "end"), []), ((), [5, 4, 3, 2, 1, 0]),
    ):  # fmt: skip
        rows_found = await stored.facts("list", [rows[0].scope], Filters(pattern=words), 99, None)
        assert {row.id for row in rows_found} == {rows[each].id for each in found}, words
    assert monotonic() - started < 20, "a regular expression takes minutes"
    stored.somewhere.database[FACTS].update_one({"_id": rows[1].id}, {"$set": {"searchable": ["abc"]}})
    assert await stored.facts("list", [rows[0].scope], Filters(pattern=("abc",)), 9, None) == []


async def test_instants_are_compared_to_the_microsecond(stored: Stored) -> None:
    micro = timedelta(microseconds=1)
    values = [fact("k", number)._replace(newest=at(0) + number * micro) for number in range(5)]
    for row in values:
        await stored.set(row._replace(valid_from=row.newest, created_at=row.newest))
    lookup = Lookup(None, None, None, values[0].scope)
    for number in range(-1, 6):
        found = await stored.facts("as_of", lookup, "k", at(0) + number * micro)
        assert (None if found is None else found.value) == (None if number < 0 else str(min(number, 4)))
    others = [fact(f"k{number}")._replace(newest=at(0) + number // 2 * micro) for number in range(9)]
    for row in others:
        await stored.set(row)
    listed = await stored.facts("list", [values[0].scope], Filters(), 99, None)
    for limit in (1, 4):
        paged: list[Any] = []
        while page := await stored.facts(
            "list", [values[0].scope], Filters(), limit, paged[-1].listed_at if paged else None
        ):
            paged += page
        assert paged == listed == sorted(listed, key=lambda row: (-row.newest.timestamp(), row.id))


async def test_nothing_is_listed_of_no_place_below_a_position_or_with_no_limit(stored: Stored) -> None:
    row = fact("k", confidence=0.25)
    await stored.set(row)
    assert await stored.facts("list", [], Filters(), 9, None) == []
    assert await stored.facts("list", [row.scope], Filters(), 0, None) == []
    assert await stored.facts("list", [row.scope], Filters(min_confidence=0.5), 9, row.listed_at) == []
    assert await stored.facts("versions", row.id, 0, 0) == await stored.people("list", "default", 0, None) == []
    assert await stored.facts("set", [], ENGLISH) == []
    assert await stored.facts("delete_versions", []) == await stored.facts("add_vectors", {}) == 0


# Damage

_MISSING = object()
_OF_FACTS: dict[str, Sequence[Any]] = {
    **dict.fromkeys(
        ("space", "fact_scope", "scope_id", "value", "fact_type", "written_by", "searchable"), (7, _MISSING)
    ),
    **dict.fromkeys(("times_confirmed", "times_contradicted", "versions", "access_count"), ("7", -1, 1.5, _MISSING)),
    **dict.fromkeys(("valid_from", "newest", "created_at"), ("2024", None, _MISSING)),
    "confidence": ["1", 2.0, -0.5, float("nan"), None, True],
    "owner": [7],
    "last_accessed": [7, _MISSING],
    "newest_us": [-1, "1"],
    "position": ["7", None],
    "words": [7, None, ["a", 7], "text"],
}
_OF_VERSIONS: dict[str, Sequence[Any]] = {
    "value": [7, _MISSING],
    "number": [1.5],
    "confidence": ["1", 2.0, True, None],
    "source_episode_id": [7],
    "owner": [7],
    "valid_from": ["2024", None],
    "superseded_at": [7, _MISSING],
}
_OF_USERS: dict[str, Sequence[Any]] = {
    **dict.fromkeys(("space", "canonical_id", "stands_for", "written_by"), (7, _MISSING)),
    **dict.fromkeys(("telegram_id", "email", "display_name", "merged_into_id"), (7,)),
    "total_conversations": ["7", -1, _MISSING],
    "last_conversation_at": [7, _MISSING],
    "first_seen": ["2024"],
}


async def test_damaged_documents_are_named_by_whoever_reads_them(stored: Stored) -> None:
    mine, (ann,) = of(ANN), await stored.meet("Ann")
    await stored.set(mine)
    await stored.set(of(ANN, value="new", second=1))
    reads: list[tuple[str, Callable[[], Any], dict[str, Sequence[Any]], str]] = [
        (FACTS, lambda: stored.facts("page", 9, ""), _OF_FACTS, mine.id),
        (FACTS, lambda: stored.facts("find", Lookup(None, mine.scope, None, None), "k"), {"value": [7]}, mine.id),
        (VERSIONS, lambda: stored.facts("versions", mine.id, 9, 0), _OF_VERSIONS, mine.id),
        (USERS, lambda: stored.people("page", 9, ""), _OF_USERS, ann.id),
    ]
    for collection, read, damage, name in reads:
        documents = stored.somewhere.database[collection]
        whole = documents.find_one({"refuses": {"$exists": False}}) or {}
        for field, values in damage.items():
            for value in values:
                changed = {key: each for key, each in {**whole, field: value}.items() if each is not _MISSING}
                documents.replace_one({"_id": whole["_id"]}, changed)
                with pytest.raises(CorruptDataError, match=name):
                    await read()
                    pytest.fail(f"{field} was {value!r}")
        documents.replace_one({"_id": whole["_id"]}, whole)
        assert len(await read()) > 0


async def test_what_cannot_be_counted_is_damaged_and_stays_as_it_is(stored: Stored) -> None:
    mine = fact("k")
    await stored.set(mine)
    facts = stored.somewhere.database[FACTS]
    for damage in ({"access_count": "1"}, {"confidence": "1", "access_count": 1}):
        facts.update_one({"_id": mine.id}, {"$set": damage})
        before = stored.contents()
        act = ("confirm", ("default", mine.id, "w", at(1))) if "confidence" in damage else (
            "get", (Lookup(None, None, None, mine.scope), "k", at(1))
        )  # fmt: skip
        with pytest.raises(CorruptDataError):
            await stored.facts(act[0], *act[1])
        assert stored.contents() == before

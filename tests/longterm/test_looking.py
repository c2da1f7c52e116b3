"""Facts, their histories and people as people look at them, on every kind of store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import EntryStore, InvalidEntryError, service
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.looking import FactReader
from firefly_memory.looking import Query
from firefly_memory.testing.clock import stopped
from tests.support.backends import Place
from tests.support.stored_facts import KINDS, START, kept, log_of, opened

ANN, BOB = "web:ann \x00☃", "web:bob"


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path) -> AsyncIterator[EntryStore]:
    """Ann, into whom somebody was merged, and Bob, with two facts each in two spaces, and a global fact with a
    history."""
    async with opened(request.param, place, new_sqlite_file, "facts_to_look_at") as store:
        with stopped(START):
            for space in ("one", "two"):
                memory = MemoryService(store, space=space, embedder=None)
                for person in (ANN, BOB, "mail:ann"):
                    channel, _, name = person.partition(":")
                    await memory.async_get_or_create_user(channel, name, person)
                    await memory.async_set_fact("colour", {"of": person}, scope="user", user_id=person)
                    await memory.async_set_fact("told", person, scope="agent", agent_id=f"a {person}", user_id=person)
                await memory.async_merge_users("mail:ann", ANN)
            for value in range(4):
                await memory.async_set_fact("history", value, fact_type="correction", confidence=0.5)
        yield store


async def rows(store: EntryStore, kind: str, limit: int = 100, **where: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = await service.async_list(store, kind, where=where, after=after, limit=limit)
        found += page.rows
        if page.next is None:
            return found
        after = page.next


@pytest.mark.parametrize("limit", [3, *(pytest.param(other, marks=pytest.mark.thorough) for other in (1, 100))])
async def test_rows_are_listed_page_by_page_and_each_is_shown(store: EntryStore, limit: int) -> None:
    facts, versions, people = await kept(store)
    (history,) = [row.id for row in facts if row.versions > 1]
    listed = {
        "facts": (await rows(store, "facts", limit), [row.id for row in facts]),
        "fact-versions": (
            await rows(store, "fact-versions", limit, fact_id=history),
            [f"{history}/{number}" for number in (1, 2, 3)],
        ),
        "users": (await rows(store, "users", limit), [row.id for row in people]),
    }
    for kind, (found, ids) in listed.items():
        assert [row["id"] for row in found] == ids
        for row in found:
            shown = await service.async_get(store, kind, row["id"])
            assert shown is not None
            assert json.loads(json.dumps(shown)) == shown
            assert {name: shown[name] for name in row} == row
    assert len(facts) == 11
    assert len(people) == 6
    assert len(versions) == 5


async def test_a_fact_is_shown_with_all_its_fields(store: EntryStore) -> None:
    (row,) = await rows(store, "facts", key="history")
    assert await service.async_get(store, "facts", row["id"]) == {
        "id": row["id"],
        "key": "history",
        "value": 3,
        "fact_type": "correction",
        "scope": "global",
        "scope_id": "",
        "owner": None,
        "space": "two",
        "confidence": 0.5,
        "times_confirmed": 4,
        "times_contradicted": 0,
        "versions": 3,
        "source_episode_id": None,
        "access_count": 0,
        "last_accessed": None,
        **dict.fromkeys(("valid_from", "created_at", "updated_at"), START.isoformat()),
    }
    assert await service.async_get(store, "fact-versions", f"{row['id']}/2") == {
        "id": f"{row['id']}/2",
        "fact_id": row["id"],
        "number": 2,
        "value": 1,
        "confidence": 0.5,
        "source_episode_id": None,
        "owner": None,
        "valid_from": START.isoformat(),
        "superseded_at": START.isoformat(),
    }


async def test_rows_are_selected_by_their_fields(store: EntryStore) -> None:
    assert {(row["key"], row["space"]) for row in await rows(store, "facts", owner=ANN)} == {
        (key, space) for key in ("colour", "told") for space in ("one", "two")
    }
    assert len(await rows(store, "facts", 1, owner=ANN, space="one", scope="user")) == 1
    assert [row["key"] for row in await rows(store, "facts", fact_type="correction")] == ["history"]
    assert len(await rows(store, "users", 1, canonical_id="mail:ann")) == 2
    (user,) = await rows(store, "users", canonical_id=ANN, space="two")
    assert (await rows(store, "users", merged_into_id=user["id"]))[0]["canonical_id"] == "mail:ann"
    with pytest.raises(InvalidEntryError, match="fact-versions are listed by their fact_id"):
        await rows(store, "fact-versions")


async def test_facts_that_are_deleted_meanwhile_make_no_page_the_last_one(
    store: EntryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = FactReader(store.suspending, None)
    owned = await rows(store, "facts", owner=ANN)
    original = log_of(store).facts.read

    async def read(ids: Any) -> Any:
        return [row for row in await original(ids) if row.id != owned[0]["id"]]

    monkeypatch.setattr(reader, "_log", _Reading(reader._log, read))
    page = await reader.page(Query({"owner": ANN}, "id", None, 2))
    assert [placed.row["id"] for placed in page] == [row["id"] for row in owned[1:3]]


class _Reading:
    def __init__(self, inner: Any, read: Any) -> None:
        self._inner, self.read = inner, read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize(
    ("kind", "row_id"),
    [
        ("facts", "unknown"),
        ("users", "unknown"),
        ("fact-versions", "unknown/1"),
        ("fact-versions", "unknown/0"),
        ("fact-versions", "unknown/-1"),
        ("fact-versions", "unknown/one"),
        ("fact-versions", "unknown/99999999999999999999"),
        ("fact-versions", f"unknown/{2**62 + 1}"),
    ],
)
async def test_there_is_no_row_with_an_unknown_id(store: EntryStore, kind: str, row_id: str) -> None:
    assert await service.async_get(store, kind, row_id) is None
    assert await service.async_delete(store, kind, [row_id]) == 0


async def test_rows_are_counted(store: EntryStore) -> None:
    (row,) = await rows(store, "facts", key="history")
    for kind, number in (("facts", 11), ("fact-versions", 5), ("users", 6)):
        assert (await service.async_count(store, kind)).rows == number
    assert (await service.async_count(store, "fact-versions", where={"fact_id": row["id"]})).rows == 3
    assert (await service.async_count(store, "fact-versions", where={"fact_id": "unknown"})).rows == 0
    assert (await service.async_count(store, "facts", where={"owner": BOB})).rows == 4


async def test_a_fact_is_deleted_with_its_history_and_a_version_by_itself(store: EntryStore) -> None:
    (row,) = await rows(store, "facts", key="history")
    assert await service.async_delete(store, "fact-versions", [f"{row['id']}/2"]) == 1
    memory = MemoryService(store, space="two", embedder=None)
    assert [each.number for each in await memory.async_history(row["id"])] == [1, 3]
    assert await service.async_delete(store, "facts", [row["id"], "unknown"]) == 1
    assert await rows(store, "fact-versions", fact_id=row["id"]) == []


async def test_a_person_is_deleted_with_their_own_facts_and_all_who_stand_for_them(store: EntryStore) -> None:
    (user,) = await rows(store, "users", canonical_id=ANN, space="one")
    before = await rows(store, "facts")
    assert await service.async_delete(store, "users", [user["id"]]) == 1
    left = [row for row in before if (row["space"], row["scope"], row["owner"]) != ("one", "user", ANN)]
    assert await rows(store, "facts") == left
    assert len(left) == len(before) - 1, "what the person has told an agent stays"
    assert [row["canonical_id"] for row in await rows(store, "users", space="one")] == [BOB]
    assert len(await rows(store, "users")) == 4
    memory = MemoryService(store, space="one", embedder=None)
    assert (await memory.async_get_or_create_user("web", "bob")).canonical_id == BOB
    assert (await memory.async_get_or_create_user("mail", "ann")).merged_into_id is None


async def test_a_merged_person_is_deleted_alone(store: EntryStore) -> None:
    (user,) = await rows(store, "users", canonical_id="mail:ann", space="one")
    assert await service.async_delete(store, "users", [user["id"]]) == 1
    assert len(await rows(store, "users")) == 5
    assert len(await rows(store, "facts", owner=ANN)) == 6, "those of both"


async def test_what_is_read_counts_no_access(store: EntryStore) -> None:
    before = await kept(store)
    with stopped(START + timedelta(days=1)):
        for row in await rows(store, "facts"):
            await service.async_get(store, "facts", row["id"])
    assert await kept(store) == before

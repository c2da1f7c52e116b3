"""Facts, versions and people that are out of bounds, pruned from every kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import EntryStore
from firefly_memory.identifiers import original_name
from firefly_memory.longterm import MemoryService, retention
from firefly_memory.longterm.retention import LongTermPruner
from firefly_memory.people import Doomed
from firefly_memory.retention import async_prune, prune
from firefly_memory.testing.clock import stopped
from tests.support.backends import Place
from tests.support.stored_facts import KINDS, START, kept, opened

ANN, BOB = "web:ann \x00", "web:bob"

EVERYTHING: Mapping[str, Sequence[Any]] = {
    "facts": ["agent", "ann 0", "ann 2", "ann 4", "changed", "everybody", "session 1", "session 3", "told 1"],
    "fact-versions": [1, 2, 3, 4, 4],
    "users": ["mail:ann", ANN, BOB, "web:new"],
}
"""Facts by key, which often has the day when it was written last; versions by the day when they were superseded."""


@pytest.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EntryStore]:
    monkeypatch.setattr(retention, "PAGE", 2)
    async with opened(request.param, place, new_sqlite_file, "facts_to_prune") as store:
        for day in range(6):
            with stopped(START + timedelta(days=day)):
                await write(MemoryService(store, embedder=None), day)
        assert await left(store) == EVERYTHING
        yield store


async def write(memory: MemoryService, day: int) -> None:
    ann: dict[str, Any] = {"scope": "user", "user_id": ANN}
    if day < 5:
        await memory.async_set_fact("changed", day)
    match day:
        case 0:
            for person in (ANN, "mail:ann", BOB):
                await memory.async_get_or_create_user(*person.split(":"))
            await memory.async_merge_users("mail:ann", ANN)
            await memory.async_set_fact("ann 0", 0, **ann)
            await memory.async_set_fact("everybody", 0)
            await memory.async_set_fact("agent", 0, scope="agent", agent_id="a")
        case 1:
            await memory.async_set_fact("session 1", 1, scope="session", session_id="s")
            await memory.async_set_fact("told 1", 1, scope="global", user_id=ANN)
        case 2:
            await memory.async_set_fact("ann 2", 2, **ann)
            await memory.async_set_fact("ann 4", 2, **ann)
        case 3:
            await memory.async_set_fact("session 3", 3, scope="session", session_id="s", user_id=BOB)
        case 4:
            await memory.async_set_fact("ann 4", 4, **ann)
        case 5:
            await memory.async_get_or_create_user("web", "new")


async def left(store: EntryStore) -> Mapping[str, Sequence[Any]]:
    facts, versions, people = await kept(store)
    return {
        "facts": sorted(row.key for row in facts),
        "fact-versions": sorted((row.superseded_at - START).days for row in versions),
        "users": sorted(original_name(row.canonical_id) for row in people),
    }


STEPS: list[tuple[Mapping[str, Any], Mapping[str, Sequence[Any]]]] = [
    ({"keep_last": 1}, {}),
    ({"max_tokens": 1}, {}),
    ({"older_than": "1d", "owner": "web:eve"}, {}),
    ({"older_than": "180h", "owner": BOB}, {"users": [BOB]}),
    ({"older_than": "180h"}, {"facts": ["ann 0", "session 1", "told 1"], "fact-versions": [1]}),
    ({"older_than": "156h", "owner": ANN}, {"facts": ["ann 2"]}),
    (
        {"older_than": "108h", "keep_last": 1},
        {"facts": ["ann 4", "session 3"], "fact-versions": [2, 3, 4, 4], "users": ["mail:ann", ANN]},
    ),
    ({"older_than": "1d"}, {"users": ["web:new"]}),
]
"""Bounds on the ninth day, and what goes by each of them after those before."""


async def test_what_is_too_old_goes(store: EntryStore) -> None:
    there = await left(store)
    with stopped(START + timedelta(days=9)):
        for bounds, gone in STEPS:
            counted = prune(store, dry_run=True, **bounds)
            assert await left(store) == there, bounds
            pruned = await async_prune(store, **bounds)
            there = {kind: _without(rows, gone.get(kind, ())) for kind, rows in there.items()}
            assert await left(store) == there, bounds
            assert counted.rows == pruned.rows == {kind: len(rows) for kind, rows in gone.items()}, bounds
    assert there == {"facts": ["agent", "changed", "everybody"], "fact-versions": [], "users": []}


def _without(rows: Sequence[Any], gone: Sequence[Any]) -> list[Any]:
    left = [*rows]
    for each in gone:
        left.remove(each)
    return left


async def test_only_versions_of_a_person_go_if_a_person_is_named(store: EntryStore) -> None:
    memory = MemoryService(store, embedder=None)
    for day, owner in enumerate((ANN, BOB, BOB, None)):
        with stopped(START + timedelta(days=day)):
            await memory.async_set_fact("office", day, scope="global", user_id=owner)
    with stopped(START + timedelta(days=9)):
        assert (await async_prune(store, older_than="156h", owner=BOB)).rows == {"fact-versions": 1, "users": 1}
        fact = await memory.async_find_fact("office", "global")
        assert fact is not None
        assert [each.value for each in await memory.async_history(fact.id)] == [0, 2]


async def test_what_is_written_meanwhile_stays(store: EntryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, delete = MemoryService(store, embedder=None), LongTermPruner.delete
    facts, _, _ = await kept(store)
    ids = {row.key: row.id for row in facts}

    async def write_and_delete(pruner: LongTermPruner, doomed: Sequence[Doomed]) -> Any:
        names = {each.name for each in doomed}
        if ids["session 1"] in names:
            await memory.async_confirm_fact(ids["session 1"])
        if ids["ann 4"] in names:
            await memory.async_set_fact("ann 4", "new", scope="user", user_id=ANN)
        if "users" in doomed[0].counts:
            await memory.async_set_fact("bob", "new", scope="user", user_id=BOB)
            await memory.async_count_conversation("web:new")
        return await delete(pruner, doomed)

    monkeypatch.setattr(LongTermPruner, "delete", write_and_delete)
    with stopped(START + timedelta(days=9)):
        pruned = await async_prune(store, older_than="1d")
    assert await left(store) == {
        "facts": ["agent", "ann 4", "bob", "changed", "everybody", "session 1"],
        "fact-versions": [9],
        "users": ["mail:ann", ANN, BOB, "web:new"],
    }
    assert pruned.rows == {"facts": 4, "fact-versions": 5}


async def test_being_read_keeps_no_fact(store: EntryStore) -> None:
    memory = MemoryService(store, embedder=None)
    with stopped(START + timedelta(days=9)):
        assert await memory.async_get_fact("ann 0", user_id=ANN) == 0
        await async_prune(store, older_than="204h")
    assert "ann 0" not in (await left(store))["facts"]

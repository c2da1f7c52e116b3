"""Everything that long-term memory does in a database has the same outcome as in the memory of the process."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from firefly_memory import InMemoryStore
from firefly_memory.cursors import Moment
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import Filters, PersonMovedError
from firefly_memory.testing import Mode
from tests.support.knowledge_stores import new_store
from tests.support.long_term_logs import ENGLISH, LongTerm, at, fact, person, word_of, written
from tests.support.mongodb_chunks import vector

__all__ = ["new_store"]

STEPS = 60
NAMES = ["Ann", "Bob", "Cleo", "Dan", "Eve"]
KEYS = ["color", "time zone", "a_b", "50%"]
VALUES = ["blue", "red 50%", "a\\b", "back _ slash", 7, None, {"a": [1, "two"]}, "dark blue sea", "x\ny"]


class Both:
    """The same in the memory of the process and in another store, with the same outcome."""

    def __init__(self, stores: Sequence[LongTerm], seed: int) -> None:
        self.stores = stores
        self.random = random.Random(seed)
        self.second = 0
        self._ids = 0
        self.facts: list[str] = []
        self.people: list[str] = []

    async def __call__(self, of: str, operation: str, *arguments: Any) -> Any:
        expected, found = [await _outcome(store, of, operation, *arguments) for store in self.stores]
        assert found == expected, f"{of}.{operation}{arguments}"
        return found

    def now(self) -> Any:
        self.second += self.random.choice((0, 1, 1, -2))
        return at(self.second)

    def new_id(self) -> str:
        self._ids += 1
        return f"write {self._ids}"

    def one(self, of: Sequence[Any]) -> Any:
        return self.random.choice(of)

    def fact_of_somebody(self) -> Any:
        scope = self.one(["user", "user", "user", "global", "agent", "session"])
        name = self.one(NAMES)
        scope_id = {"global": "", "user": f"chat:{name}"}.get(scope, name)
        second, self.second = self.second, self.second + self.one((0, 1))
        return fact(
            self.one(KEYS), self.one(VALUES), scope=scope, scope_id=scope_id, confidence=self.one((0.25, 0.5, 1.0)),
            fact_type=self.one(("correction", "world_knowledge")), second=second,
            owner=self.one((None, "chat:Ann", "chat:Bob")), source=self.one((None, "episode 1", "episode 2")),
        )  # fmt: skip

    def lookup(self) -> Lookup:
        name = self.one(NAMES)
        words = [
            fact("k", scope="session", scope_id=name).scope,
            word_of(f"chat:{name}"),
            fact("k", scope="agent", scope_id=self.one(NAMES)).scope,
            fact("k").scope,
        ]
        return Lookup(*[self.one((word, word, None)) for word in words])


async def _outcome(store: LongTerm, of: str, operation: str, *arguments: Any) -> Any:
    try:
        result = await store(of, operation, *arguments)
    except PersonMovedError:
        return ("moved",)  # of several people, any may be named
    if operation in ("read", "same_people", "delete_vectors"):
        return sorted(result)
    return list(result) if isinstance(result, list) else result


async def _set(both: Both) -> None:
    rows = {(row.scope, row.key): row for row in (both.fact_of_somebody() for _ in range(both.one((1, 1, 3))))}
    flags = {name: both.one((True, False)) for name in ("overwrite", "sets_type", "sets_confidence")}
    vectors = both.one((True, False))
    writes = [written(row, vector(number) if vectors else None, **flags) for number, row in enumerate(rows.values(), 1)]
    outcome = await both("facts", "set", writes, ENGLISH)
    if outcome[0] != "moved":
        both.facts += [each.row.id for each in outcome if each.outcome == "created"]
        if both.one((True, False)):  # after a lost reply, which the memory of a process has not
            assert await both.stores[1]("facts", "set", writes, ENGLISH) == outcome


async def _meet(both: Both) -> None:
    channel = both.one(("chat", "chat", "telegram", "email"))
    row = person(both.one(NAMES), channel, name=both.one(("", "Somebody")), second=both.second)
    both.people.append((await both("people", "meet", row)).row.id)


async def _merge(both: Both) -> None:
    names = [f"{both.one(('chat', 'chat', 'telegram', 'email'))}:{both.one(NAMES)}" for _ in range(2)]
    await both("people", "merge", *map(word_of, names), both.new_id(), both.now())


async def _restore(both: Both) -> None:
    if not both.facts:
        return
    name = both.one(both.facts)
    (row,) = await both("facts", "read", [name]) or [None]
    if row is not None:
        versions = await both("facts", "versions", name, 99, 0)
        if both.one((True, False)):
            await both("facts", "delete", [name, "nobody"])
        await both("facts", "restore", row, versions, ENGLISH)


async def _restore_person(both: Both) -> None:
    there = await both("people", "read", [both.one(both.people or ["nobody"])])
    for row in there:
        if both.one((True, False, False)):
            await both("people", "delete", [row.id])
        await both("people", "restore", row)


async def _change(both: Both) -> None:
    name = both.one(both.facts or ["nobody"])
    space = both.one(("default", "default", "other"))
    await both("facts", both.one(("confirm", "contradict")), space, name, both.new_id(), both.now())


async def _look(both: Both) -> None:
    lookup, key = both.lookup(), both.one(KEYS)
    await both("facts", "get", lookup, key, both.now())
    await both("facts", "find", lookup, key)
    await both("facts", "as_of", lookup, key, at(both.second - both.one((0, 1, 3, 8, 20))))
    pattern = both.one(
        ((), (), ("blue",), ("d", "sea"), ("50%",), ("a\\b",), ("color", "blue"), ("b", "_"), ("x", "y"))
    )
    types = both.one((None, ("correction",), ("none", "world_knowledge")))
    filters = Filters(pattern, types, both.one((None, 0.5)))
    person = both.one((None, lookup.user))
    found = await both("facts", "list", lookup.words, filters, 99, None, person)
    paged, after = [], None
    while page := await both("facts", "list", lookup.words, filters, 2, after, person):
        paged += page
        after = page[-1].listed_at
    assert paged == found
    await both("people", "count_conversation", lookup.user or "", both.new_id(), both.now())


async def _compare_all(both: Both) -> None:
    facts = await both("facts", "page", 999, "")
    assert len(facts) == await both("facts", "count")
    versions = await both("facts", "page_of_versions", 999, ("", 0))
    middle = (versions[len(versions) // 2].fact_id, 1) if versions else ("", 0)
    await both("facts", "page_of_versions", 3, middle)
    await both("facts", "count_versions")
    people = await both("people", "page", 999, "")
    assert len(people) == await both("people", "count")
    for name in NAMES:
        owner = f"chat:{name}"
        await both("facts", "of_owner", owner, 99, both.one(both.facts or [""]))
        await both("facts", "versions_of_owner", owner, 99, ("", 0))
        await both("facts", "versions_of_owner", owner, 3, middle)
        await both("people", "find", word_of(owner))
        await both("people", "root", word_of(owner))
        await both("people", "same_people", [owner, "telegram:Bob"])
    listed = await both("people", "list", "default", 99, None)
    if listed:
        one = both.one(listed)
        await both("people", "list", "default", 3, Moment(one.first_seen, one.id))
    await both("facts", "vectors_by_embedder")
    assert await both("facts", "damage") == []
    await both("facts", "without_vector", "e", 99, both.one(both.facts or [""]))
    words = sorted({row.scope for row in facts})
    for store in both.stores:
        for row in facts:  # the words of the index lead to each fact in its place, and signatures as well
            assert row.words[0] == row.scope
            assert row.id in await store.facts_index("best", [row.scope], dict.fromkeys(row.words, 1), 999)
        signatures = [await store.facts_index("signatures", [word], "e", 999) for word in words]
        lacking = {row.id for row in await store("facts", "without_vector", "e", 999, "")}
        with_vector = {row.id: row.scope for row in facts if row.id not in lacking}
        found = {name: word for word, each in zip(words, signatures, strict=True) for name in each.ids}
        assert found == with_vector


async def _delete(both: Both) -> None:
    await both("facts", "delete", [both.one(both.facts or ["nobody"]), "nobody"])
    versions = await both("facts", "page_of_versions", 5, ("", 0))
    if versions:
        one = both.one(versions)
        await both("facts", "delete_versions", [(one.fact_id, one.number), ("nobody", 1), (one.fact_id, 77)])


async def _keep(both: Both) -> None:
    rows = await both("facts", "page", 5, "")
    if rows:
        row, other = both.one(rows), both.one(rows)
        await both("facts", "add_vectors", {each.id: vector(7) for each in {row, other}})
        changed = [each._replace(words=(*each.words, "more"), searchable="other\nline") for each in {row, other}]
        stale = changed[0]._replace(written_by="somebody else", words=("stale",))
        await both("facts", "rewrite", [*changed[1:], stale])
        await both("facts", "page", 9, "")
        await both("facts", "rewrite", sorted({row, other}))  # the same value always has the same words


CHANGES: Sequence[Callable[[Both], Awaitable[None]]] = (
    *(_set,) * 6, _meet, _meet, _merge, _restore, _restore_person, _change, _look, _look, _delete, _keep,
)  # fmt: skip


KINDS = [
    ("sqlite", Mode.BLOCKING),
    ("psycopg", Mode.BLOCKING),
    ("asyncpg", Mode.SUSPENDING),
    ("mongodb", Mode.SUSPENDING),
]


@pytest.mark.parametrize(
    ("kind", "mode", "seed"),
    [(*kind, 1) for kind in KINDS]
    + [pytest.param(*KINDS[seed % len(KINDS)], seed, marks=pytest.mark.thorough) for seed in range(2, 32)],
)
async def test_a_database_does_what_the_memory_of_the_process_does(new_store: Any, mode: Mode, seed: int) -> None:
    steps = STEPS if seed == 1 else 3 * STEPS
    async with InMemoryStore() as reference:
        both = Both([LongTerm(reference), LongTerm(new_store, mode)], seed)
        for step in range(1, steps + 1):
            await both.one(CHANGES)(both)
            if step % 30 == 0:
                await _compare_all(both)
        for name in both.people[:3]:
            await both("people", "delete", [name])
        await _compare_all(both)

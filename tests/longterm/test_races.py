"""Facts and people in SQL, written by several writers at once: nothing is lost, and nobody fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest

from firefly_memory import EntryStore, adapt
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import InvalidEntryError
from firefly_memory.longterm import MemoryService
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.backends import BY_NAME, Place
from tests.support.knowledge_stores import STORES
from tests.support.store_worker import start
from tests.support.store_worker import together as processes_together

WRITERS = 6
KINDS = pytest.mark.parametrize("kind", ["sqlite", "psycopg", "asyncpg"])

Call = Callable[[Memory], Any]


class Crew:
    """Calls on a service of this test's own space, one by one or many at once: in threads, or on asyncpg in tasks."""

    def __init__(self, store: EntryStore, runner: asyncio.Runner | None) -> None:
        mode = Mode.BLOCKING if runner is None else Mode.SUSPENDING
        self._service = Memory(MemoryService(store, space=uuid4().hex, embedder=None), mode)
        self._runner = runner

    def __call__(self, method: str, *arguments: Any, **options: Any) -> Any:
        """The result of one call."""
        return self._run(getattr(self._service, method)(*arguments, **options))

    def together(self, calls: Sequence[Call]) -> list[Any]:
        """The results of calls that begin at one moment."""
        if self._runner is not None:
            return self._runner.run(_gathered([call(self._service) for call in calls]))
        barrier = Barrier(len(calls))

        def begin(call: Call) -> Any:
            barrier.wait()
            return run_without_loop(call(self._service))

        with ThreadPoolExecutor(len(calls)) as threads:
            return [each.result() for each in [threads.submit(begin, call) for call in calls]]

    def _run(self, call: Any) -> Any:
        return run_without_loop(call) if self._runner is None else self._runner.run(call)


async def _gathered(calls: Sequence[Any]) -> list[Any]:
    return await asyncio.gather(*calls)


@pytest.fixture
def crew(kind: str, place: Place, new_sqlite_file: Any) -> Iterator[Crew]:
    store = STORES[kind](place, new_sqlite_file, "long_term_of_tests")
    if kind == "asyncpg":
        with asyncio.Runner() as runner:
            yield Crew(store, runner)
            runner.run(store.close())
    else:
        with store:
            yield Crew(store, None)


async def _set(mine: Memory, value: int) -> Any:
    return await mine.set_fact("k", value)


@KINDS
def test_writers_of_one_new_fact_make_one_and_lose_no_count_and_no_version(crew: Crew) -> None:
    values = [number // 2 for number in range(WRITERS)]
    facts = crew.together([partial(_set, value=each) for each in values])
    assert len({fact.id for fact in facts}) == 1
    assert sorted(fact.times_confirmed for fact in facts) == list(range(1, WRITERS + 1))
    (fact,) = crew("list_facts")
    assert fact.times_confirmed == WRITERS
    in_order = [fact.value for fact in sorted(facts, key=lambda each: each.times_confirmed)]
    said = [value for value, after in zip(in_order, [*in_order[1:], None], strict=True) if value != after]
    history = crew("history", fact.id)
    assert [*[each.value for each in history], fact.value] == said
    assert [each.number for each in history] == list(range(1, len(said)))


@KINDS
def test_confirmations_contradictions_and_reads_are_all_counted(crew: Crew) -> None:
    fact = crew("set_fact", "k", 1)

    async def several(mine: Memory) -> None:
        for _ in range(3):
            await mine.confirm_fact(fact.id)
            assert await mine.get_fact("k") == 1
            await mine.contradict_fact(fact.id)
            await mine.set_fact("k", 1)

    crew.together([several] * WRITERS)
    found = crew("find_fact", "k", "global")
    times = 3 * WRITERS
    assert (found.times_confirmed, found.times_contradicted) == (1 + 2 * times, times)
    assert found.access_count == times
    assert len(crew("history", fact.id)) == 0


@KINDS
def test_people_who_are_met_at_once_are_one(crew: Crew) -> None:
    people = crew.together([lambda mine: mine.get_or_create_user("email", "a@b.c", "Ann")] * WRITERS)
    assert len({person.id for person in people}) == 1
    crew.together([lambda mine: mine.count_conversation("email:a@b.c")] * WRITERS)
    assert crew("get_user", "email:a@b.c").total_conversations == WRITERS


@KINDS
def test_facts_that_are_written_during_a_merge_are_the_targets(crew: Crew) -> None:
    """Each writer sets keys of its own and one that all have, some for the source and some for the target."""
    users = ["chat:source", "chat:target"]
    for user in users:
        crew("get_or_create_user", "chat", user[5:])
        for number in range(3):
            crew("set_fact", f"old {number}", user, scope="user", user_id=user)

    def writer(name: int) -> Call:
        async def write(mine: Memory) -> None:
            for number in range(6):
                user = users[(name + number) % 2]
                await mine.set_fact(f"{name} {number}", name, scope="user", user_id=user)
                await mine.update_preferences(user, {"shared": name, f"preference {name} {number}": name})
                assert await mine.get_fact("old 1", user_id=user) is not None, "whoever has it at this moment"
                await mine.get_or_create_user("chat", user[5:])
                await mine.count_conversation(user)

        return write

    async def merge(mine: Memory) -> None:
        await mine.get_fact("old 1", user_id=users[0])
        await mine.merge_users(*users)

    crew.together([writer(0), writer(1), merge, writer(2)])
    facts = {fact.key: fact for fact in crew("get_user_facts", "chat:target", limit=999)}
    names = [f"{name} {number}" for name in range(3) for number in range(6)]
    assert set(facts) == {*names, *[f"preference {each}" for each in names], "shared", "old 0", "old 1", "old 2"}
    assert {fact.user_id for fact in facts.values()} == {"chat:target"}
    assert facts["shared"].times_confirmed == 18
    assert facts["old 1"].times_confirmed == 2
    assert crew("get_user", "chat:target").total_conversations == 18
    assert crew("get_user", "chat:source").merged_into_id == crew("get_user", "chat:target").id


@KINDS
def test_mergings_in_both_directions_and_a_deletion_do_not_wait_for_each_other(crew: Crew) -> None:
    names = ["Ann", "Bob", "Cleo"]
    for name in names:
        crew("get_or_create_user", "chat", name)
        for number in range(5):
            crew("set_fact", f"k{number}", name, scope="user", user_id=f"chat:{name}")
    ids = [fact.id for name in names for fact in crew("get_user_facts", f"chat:{name}")]

    def merge(source: str, target: str) -> Call:
        async def attempt(mine: Memory) -> bool:
            try:
                await mine.merge_users(f"chat:{source}", f"chat:{target}")
            except InvalidEntryError:
                return False  # the other way round already
            return True

        return attempt

    pairs = [("Ann", "Bob"), ("Bob", "Ann"), ("Cleo", "Ann"), ("Bob", "Cleo")]
    calls = [merge(*pair) for pair in pairs]
    results = crew.together([*calls, lambda mine: mine.delete_facts(ids[::3])])
    assert any(results[:4])
    roots = {crew("get_or_create_user", "chat", name).canonical_id for name in names}
    assert len(roots) == 1
    (root,) = roots
    facts = crew("get_user_facts", root)
    assert len({fact.key for fact in facts}) == len(facts)
    merged = [crew("get_user", f"chat:{name}") for name in names]
    assert sum(each.merged_into_id is None for each in merged) == 1


@KINDS
def test_several_facts_written_in_any_order_beside_deletions_do_not_wait_for_each_other(crew: Crew) -> None:
    keys = [f"k{number}" for number in range(8)]
    crew("get_or_create_user", "chat", "Ann")
    crew("update_preferences", "chat:Ann", dict.fromkeys(keys, 0))

    def write(number: int) -> Call:
        async def several(mine: Memory) -> None:
            for step in range(4):
                order = keys if (number + step) % 2 else keys[::-1]
                await mine.update_preferences("chat:Ann", {key: [number, step] for key in order})
                some = [each.id for each in await mine.get_user_facts("chat:Ann")]
                await mine.delete_facts(some[::3])

        return several

    crew.together([write(number) for number in range(4)])
    facts = crew("get_user_facts", "chat:Ann")
    assert len({fact.key for fact in facts}) == len(facts)


PROCESSES, EACH = 8, 20


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["sqlite", "postgresql-asyncpg", "postgresql-psycopg"])
def test_8_processes_that_set_and_confirm_one_fact_lose_nothing(kind: str, place: Place) -> None:
    backend, space = BY_NAME[kind], uuid4().hex
    with adapt(backend.open(place)) as store:
        service = MemoryService(store, space=space, embedder=None)
        service.list_facts()
        names = [f"p{number}" for number in range(PROCESSES)]
        work = ("set_and_confirm_one_fact", space)
        printed = processes_together([start(backend, place, *work, name, EACH) for name in names])
        seen = sorted(each for line in printed for each in json.loads(line))
        (fact,) = service.list_facts()
        assert (fact.times_confirmed, fact.access_count) == (2 * PROCESSES * EACH, PROCESSES * EACH)
        assert seen == list(range(1, 2 * PROCESSES * EACH + 1)), "no two writers got the same number"
        said = [each.value for each in service.history(fact.id, limit=999)]
        assert len(said) == PROCESSES * EACH - 1
        assert sorted([*said, fact.value]) == sorted([name, number] for name in names for number in range(EACH))

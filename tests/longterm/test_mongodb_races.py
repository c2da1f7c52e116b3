"""Writers of long-term memory in MongoDB at the same time: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from firefly_memory.concurrency.sync_bridge import run_without_loop as run
from firefly_memory.erasure import erase, readmit
from firefly_memory.errors import ErasedError
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.rows import FactRow, Filters, PersonMovedError
from tests.support.long_term_logs import ENGLISH, at, fact, person, written
from tests.support.mongodb_chunks import vector
from tests.support.mongodb_commands import AtCommand
from tests.support.mongodb_long_term import FACTS, Stored, contents, of, rivals, versions_are_whole
from tests.support.mongodb_tombstones import Somewhere

pytestmark = pytest.mark.thorough

ANN, BOB = "chat:Ann", "chat:Bob"
MANY = 20
"""More commands than a write has."""

IN_BOTH = pytest.mark.parametrize("is_there", [False, True], ids=["new", "there"])
ALL = (Filters(), 99, None)


@dataclass
class Race:
    """Somebody else does something before a command of a write: before the first one, then before the second one, and
    so on. Who waits for the write is waited for when it has ended."""

    somewhere: Somewhere
    prepare: Callable[[Stored], Any]
    mine: Callable[[Stored], Any]
    others: Callable[[Stored], Any]
    check: Callable[[Stored], Any]

    def run(self) -> None:
        number, has_acted = 0, True
        while has_acted:
            number += 1
            assert number < MANY
            has_acted = self._run(number)
            assert versions_are_whole(self.somewhere)
        assert number > 2, "it has several commands"

    def _run(self, number: int) -> bool:
        listener = AtCommand()
        with rivals(self.somewhere, listener) as (first, second):
            self.prepare(second)
            thread = threading.Thread(target=self.others, args=(second,))

            def act() -> None:
                thread.start()
                thread.join(0.2)  # it may have to wait

            listener.arm(number, act)
            self.mine(first)
            listener.arm(0, lambda: None)
            has_acted = thread.ident is not None
            if has_acted:
                thread.join()
                self.check(second)
            for row in run(second.facts("page", 99, "")):
                run(second.facts("delete", [row.id]))
            return has_acted


@IN_BOTH
def test_two_writers_of_one_fact_lose_no_count_and_no_version(somewhere: Somewhere, is_there: bool) -> None:
    numbers = {"first": 1, "mine": 2, "others": 3}

    def write(value: str) -> Callable[[Stored], Any]:
        return lambda store: run(store.set(fact("k", value, second=numbers[value]), vector(numbers[value])))

    def check(store: Stored) -> None:
        (row,) = run(store.facts("page", 9, ""))
        said = [each.value for each in run(store.facts("versions", row.id, 9, 0))]
        values = ['"first"'] * is_there + ['"mine"', '"others"']
        assert sorted([*said, row.value]) == values
        assert (row.times_confirmed, row.versions) == (len(values), len(values) - 1)
        kept = run(store.facts_index("vectors", "e", [row.id]))
        assert kept in ({row.id: vector(numbers[row.value.strip('"')]).vector}, {}), "none of another value"

    prepare = write("first") if is_there else lambda _: None
    Race(somewhere, prepare, write("mine"), write("others"), check).run()


@pytest.mark.parametrize("judged", ["confirm", "contradict"])
def test_a_fact_is_judged_while_it_is_written(somewhere: Somewhere, judged: str) -> None:
    first = fact("k", "first")

    def check(store: Stored) -> None:
        (row,) = run(store.facts("page", 9, ""))
        assert (row.value, row.times_confirmed) == ('"second"', 2 + (judged == "confirm"))
        assert row.times_contradicted == (judged == "contradict")

    def judge(store: Stored) -> None:
        assert run(store.facts(judged, "default", first.id, "w", at(5))) is not None

    def write(store: Stored) -> None:
        run(store.set(fact("k", "second", second=9)))

    Race(somewhere, lambda store: run(store.set(first)), write, judge, check).run()


def test_a_fact_that_is_deleted_while_it_is_written_is_a_new_one_or_gone(somewhere: Somewhere) -> None:
    ids: list[str] = []

    def write(value: str) -> Callable[[Stored], Any]:
        return lambda store: ids.append(run(store.set(fact("k", value), vector(1))).row.id)

    def check(store: Stored) -> None:
        assert [row.id for row in run(store.facts("page", 9, ""))] in ([], ids[-1:])

    def delete(store: Stored) -> None:
        assert run(store.facts("delete", ids[-1:])) == 1

    Race(somewhere, write("first"), write("second"), delete, check).run()


@IN_BOTH
def test_a_fact_that_is_written_while_its_person_is_merged_is_not_lost(replica_set: Somewhere, is_there: bool) -> None:
    moved: list[Any] = []
    ann, bob = person("Ann"), person("Bob")

    def prepare(store: Stored) -> None:
        moved.clear()
        run(store.people("delete", [row.id for row in run(store.people("page", 9, ""))]))
        for row in (ann, bob):
            assert run(store.people("restore", row))
        run(store.set(of(BOB, "other"), vector(1)))
        if is_there:
            run(store.set(of(ANN, value="first"), vector(1)))

    def write(store: Stored) -> None:
        try:
            run(store.set(of(ANN, value="second", second=1), vector(2)))
        except PersonMovedError as error:
            moved.append((error.word, error.row.id))

    def merge(store: Stored) -> None:
        assert run(store.people("merge", ann.word, bob.word, "w", at(2))).refusal is None

    def check(store: Stored) -> None:
        found = {each.key: each for each in run(store.facts("list", [bob.word], *ALL))}
        assert moved in ([], [(ann.word, bob.id)])
        value = '"second"' if not moved else '"first"' if is_there else None
        assert ("k" in found, "other" in found) == (value is not None, True)
        if value is not None:
            (row,) = run(store.facts("read", [found["k"].id]))
            assert (row.value, row.words[0], row.owner) == (value, bob.word, BOB)
            assert row.id in run(store.facts_index("best", [bob.word], {bob.word: 1}, 9))
            assert row.id in run(store.facts_index("signatures", [bob.word], "e", 9)).ids
        assert run(store.facts("list", [ann.word], *ALL)) == []

    Race(replica_set, prepare, write, merge, check).run()


@pytest.mark.parametrize("value", ["of Bob", "new"], ids=["the same value", "another value"])
def test_a_fact_that_is_written_while_it_takes_another_ones_in_has_all_counts_and_versions(
    replica_set: Somewhere, value: str
) -> None:
    ann, bob = person("Ann"), person("Bob")

    def prepare(store: Stored) -> None:
        run(store.people("delete", [row.id for row in run(store.people("page", 9, ""))]))
        for row in (ann, bob):
            assert run(store.people("restore", row))
        run(store.set(of(ANN, value="of Ann")))
        run(store.set(of(BOB, value="of Bob")))

    def write(store: Stored) -> None:
        run(store.set(of(BOB, value=value, second=1)))

    def merge(store: Stored) -> None:
        assert run(store.people("merge", ann.word, bob.word, "w", at(2))).refusal is None

    def check(store: Stored) -> None:
        (row,) = run(store.facts("page", 9, ""))
        said = [each.value for each in run(store.facts("versions", row.id, 9, 0))]
        assert (row.times_confirmed, row.owner) == (3, BOB)
        assert sorted({row.value, *said}) == sorted({'"of Ann"', '"of Bob"', f'"{value}"'})

    Race(replica_set, prepare, write, merge, check).run()


@pytest.mark.parametrize("scope", ["user", "global"])
@pytest.mark.parametrize("there", [None, "old", "new"], ids=["new", "another value", "the same value"])
def test_nothing_is_left_of_a_person_who_is_erased_while_their_fact_is_written(
    somewhere: Somewhere, scope: str, there: str | None
) -> None:
    def row(value: str, second: int) -> FactRow:
        scope_id = ANN if scope == "user" else ""
        return fact("k", value, scope=scope, scope_id=scope_id, owner=ANN, second=second)

    def prepare(store: Stored) -> None:
        readmit(store.store, ANN)
        if there is not None:
            run(store.set(row(there, 0)))

    def write(store: Stored) -> None:
        with suppress(ErasedError):
            run(store.set(row("new", 1)))

    def forget(store: Stored) -> None:
        erase(store.store, ANN)

    def check(store: Stored) -> None:
        assert store.contents() == {}

    Race(somewhere, prepare, write, forget, check).run()


def test_a_vector_that_is_added_while_the_fact_gets_another_value_is_none_of_the_old_one(somewhere: Somewhere) -> None:
    """By a process with an embedder, while this one has none."""
    first = fact("k", "first")

    def add(store: Stored) -> None:
        run(store.facts("add_vectors", {first.id: vector(1)}, [first.written_by]))

    def check(store: Stored) -> None:
        assert run(store.facts_index("vectors", "e", [first.id])) == {}
        assert run(store.facts("vectors_by_embedder")) == {}

    def write(store: Stored) -> None:
        run(store.set(fact("k", "second", second=1)))

    Race(somewhere, lambda store: run(store.set(first)), write, add, check).run()


@pytest.mark.parametrize("number", range(1, 8))
def test_writers_in_threads_and_a_merging_lose_nothing(replica_set: Somewhere, number: int) -> None:
    """Whenever the threads start while two people become one."""
    listener = AtCommand()
    with rivals(replica_set, listener) as (merging, writing):
        ann, bob = run(merging.meet("Ann", "Bob"))
        run(merging.set(of(ANN, "there")))

        def write(key: str) -> None:
            row = of(ANN, key)
            try:
                run(writing.set(row))
            except PersonMovedError:
                run(writing.set(of(BOB, key)))

        threads = [threading.Thread(target=write, args=(key,)) for key in ("there", "k0", "k1", "k2")]

        def start() -> None:
            for each in threads:
                each.start()

        listener.arm(number, start)
        assert run(merging.people("merge", ann.word, bob.word, "w", at(1))).refusal is None
        if threads[0].ident is None:
            start()
        for each in threads:
            each.join()
        found = {(each["key"], each["scope"], each["times_confirmed"]) for each in contents(replica_set)[FACTS]}
        counts = {"there": 2, "k0": 1, "k1": 1, "k2": 1}
        assert found == {(key, bob.word, count) for key, count in counts.items()}


def test_writers_in_threads_make_one_fact_with_all_of_their_versions(somewhere: Somewhere) -> None:
    with somewhere.store() as store:
        mine = Stored(somewhere, store)
        run(mine.facts("count"))

        def write(number: int) -> None:
            for each in range(5):
                run(store.blocking.log(LONG_TERM_LOG).facts.set([written(fact("k", [number, each]))], ENGLISH))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        (row,) = run(mine.facts("page", 9, ""))
        assert (row.times_confirmed, row.versions) == (20, 19)
        said = run(mine.facts("versions", row.id, 99, 0))
        assert len({row.value, *(each.value for each in said)}) == 20
        assert versions_are_whole(somewhere)


def test_two_callers_who_meet_one_person_make_one(somewhere: Somewhere) -> None:
    met: list[Any] = []
    rows = [person("1", "telegram", name=name, second=number) for number, name in enumerate(("One", "Two"))]

    def prepare(store: Stored) -> None:
        met.clear()
        run(store.people("delete", [row.id for row in run(store.people("page", 9, ""))]))

    def meet(row: Any) -> Callable[[Stored], Any]:
        return lambda store: met.append(run(store.people("meet", row)))

    def check(store: Stored) -> None:
        assert sorted(each.is_new for each in met) == [False, True]
        assert [each.row for each in met] == run(store.people("page", 9, "")) * 2

    Race(somewhere, prepare, meet(rows[0]), meet(rows[1]), check).run()

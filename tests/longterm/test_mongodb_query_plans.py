"""R11 for long-term memory in MongoDB: each call reads what it gives, by index, however much else there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from firefly_memory.concurrency.sync_bridge import run_without_loop as run
from firefly_memory.cursors import Moment
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.mongodb.documents import fact_document, version_document
from firefly_memory.longterm.mongodb.user_documents import user_document
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import FactPosition, FactRow, Filters, UserRow, VersionRow
from tests.support.long_term_logs import ENGLISH, at, fact, person, written
from tests.support.mongodb_chunks import Commands
from tests.support.mongodb_long_term import FACTS, USERS, VERSIONS
from tests.support.mongodb_plans import Plan, Planned
from tests.support.mongodb_tombstones import Somewhere

KEYS, IN_LISTS = "scope_1_key_1", "scope_1_confidence_-1_newest_-1_newest_us_-1__id_1_fact_type_1"
BY_ID, OF_OWNER, OF_FACT = "_id_", "owner_1__id_1", "fact_id_1_number_1"
SAID, VERSIONS_OF_OWNER = "fact_id_1_valid_from_-1_valid_from_us_-1_number_-1", "owner_1_fact_id_1_number_1"
WORD, STANDS_FOR, CANONICAL_ID = "word_1", "stands_for_1", "canonical_id_1"
IN_ORDER = "space_1_first_seen_1_first_seen_us_1__id_1"
ANN = "chat:Ann"


class Filled(NamedTuple):
    planned: Planned
    facts: list[FactRow]
    people: list[UserRow]
    log: Any


def _fact(number: int) -> FactRow:
    """Five hundred in each of four places."""
    scope, scope_id = [("session", "s"), ("user", ANN), ("agent", "a"), ("global", "")][number % 4]
    row = fact(
        f"key {number // 4}",
        f"value {'rare' if number // 4 % 250 == 7 else 'often'}",
        scope=scope,
        scope_id=scope_id,
        confidence=(1.0, 1.0, 0.5)[number % 3],
        fact_type=("correction", "relationship")[number // 4 % 2],
        second=number // 8,
    )
    return row._replace(id=f"i{number:05}", versions=3 if number < 1_999 else 899)


@pytest.fixture
def filled(replica_set: Somewhere) -> Iterator[Filled]:
    commands = Commands()
    with replica_set.listened(commands) as store:
        log = store.blocking.log(LONG_TERM_LOG)
        facts = [_fact(number) for number in range(2_000)]
        people = [person(f"{number:04}", second=number // 3)._replace(id=f"u{number:04}") for number in range(600)]
        run(log.people.restore(people[0]))  # makes the indexes
        replica_set.database[FACTS].insert_many([fact_document(row) for row in facts])
        replica_set.database[USERS].insert_many([user_document(row) for row in people[1:]])
        said = [
            VersionRow(row.id, number, "1", 1.0, None, row.owner, at(number - 9), at(number - 8))
            for row in facts[:400]
            for number in (1, 2, 3)
        ]
        many = [
            VersionRow("i01999", number, "1", 1.0, None, None, at(number), at(number + 1)) for number in range(4, 900)
        ]
        replica_set.database[VERSIONS].insert_many([version_document(row, "default") for row in (*said, *many)])
        yield Filled(Planned(replica_set, log, commands), facts, people, log)


def _places(filled: Filled) -> list[str]:
    return [row.scope for row in filled.facts[:4]]


def _listed(places: list[str], filters: Filters, after: FactPosition | None, log: Any) -> Any:
    return log.facts.list(places, filters, 20, after)


@pytest.mark.parametrize("number", [1, 4])
def test_a_page_of_facts_reads_its_facts_and_sorts_nothing(filled: Filled, number: int) -> None:
    places = _places(filled)[:number]
    few = (Filters(types=("correction",)), Filters(types=("correction", "other")))
    for filters in (Filters(), Filters(min_confidence=0.5), *few):
        first = run(filled.log.facts.list(places, filters, 150 * number, None))
        assert len(first) == 150 * number
        for after in (None, first[-1].listed_at):
            plan = filled.planned(partial(_listed, places, filters, after))
            assert (plan.indexes, plan.documents) == ({IN_LISTS}, 20)
            others = 3 if filters in few else 1  # facts of other types are passed over in the index
            assert plan.keys <= 20 * others + 16 * number


def test_a_pattern_is_looked_for_in_the_order_of_the_list(filled: Filled) -> None:
    places = _places(filled)
    plan = filled.planned(lambda log: log.facts.list(places, Filters(pattern=("value", "often")), 20, None))
    assert (plan.indexes, plan.documents <= 25) == ({IN_LISTS}, True)
    assert len(run(filled.log.facts.list(places, Filters(pattern=("rare",)), 20, None))) == 8


def test_a_lookup_reads_one_fact_of_each_place(filled: Filled) -> None:
    lookup = Lookup(*_places(filled))
    for ask in (
        lambda log: log.facts.get(lookup, "key 77", at(9_999)),
        lambda log: log.facts.find(lookup, "key 77"),
    ):
        plan = filled.planned(ask, sorts=True)  # these four
        assert (plan.indexes, plan.documents) == ({KEYS}, 4)
        assert plan.keys <= 20
    plan = filled.planned(lambda log: log.facts.as_of(lookup, "key 77", at(-7)), sorts=True)
    assert {KEYS, SAID} == plan.indexes
    assert plan.documents <= 8
    everybody = Lookup(None, None, None, filled.facts[3].scope)
    plan = filled.planned(lambda log: log.facts.as_of(everybody, "key 499", at(100)), sorts=True)
    assert plan.indexes == {KEYS, SAID}
    assert (plan.documents, plan.keys) == (2, 2), "not one of the 896 other versions"


Ask = Callable[[Any], Any]


def _reads(filled: Filled) -> list[tuple[Ask, set[str], int, int]]:
    ids, people = ["i00007", "i00008", "none"], filled.people
    third = Moment(people[3].first_seen, people[3].id)
    return [
        (lambda log: log.facts.read(ids), {BY_ID}, 2, 5),
        (lambda log: log.facts.page(10, "i00500"), {BY_ID}, 10, 10),
        (lambda log: log.facts.of_owner(ANN, 10, "i00500"), {OF_OWNER}, 0, 10),
        (lambda log: log.facts.count(), {BY_ID}, 0, 2_001),
        (lambda log: log.facts.confirm("default", "i00500", "w", at(0)), {BY_ID}, 1, 1),
        (lambda log: log.facts.versions("i01999", 10, 500), {OF_FACT}, 10, 10),
        (lambda log: log.facts.page_of_versions(10, ("i00100", 2)), {OF_FACT}, 10, 12),
        (lambda log: log.facts.versions_of_owner(ANN, 10, ("i00100", 2)), {VERSIONS_OF_OWNER}, 10, 12),
        (lambda log: log.facts.count_versions_of(["i00001", "none"]), {OF_FACT}, 0, 6),
        (lambda log: log.facts.count_versions(), {OF_FACT}, 0, 2_100),
        (lambda log: log.people.find(people[7].word), {WORD}, 1, 1),
        (lambda log: log.people.root(people[7].word), {WORD}, 1, 1),
        (lambda log: log.people.count_conversation(people[7].word, "w", at(0)), {WORD}, 1, 1),
        (lambda log: log.people.list("default", 10, None), {IN_ORDER}, 10, 10),
        (lambda log: log.people.list("default", 10, third), {IN_ORDER}, 10, 14),
        (lambda log: log.people.page(10, "u0100"), {BY_ID}, 10, 10),
        (lambda log: log.people.read(["u0100", "none"]), {BY_ID}, 1, 4),
        (lambda log: log.people.same_people([people[5].canonical_id]), {CANONICAL_ID, STANDS_FOR}, 2, 4),
    ]


def test_each_read_costs_what_it_gives(filled: Filled) -> None:
    for number, (ask, indexes, documents, keys) in enumerate(_reads(filled)):
        plan = filled.planned(ask)
        assert (plan.indexes, plan.documents) == (indexes, documents), number
        assert plan.keys <= keys, number


def test_a_write_costs_what_it_changes(filled: Filled) -> None:
    new = fact("key 77", "changed", scope="user", scope_id=ANN, second=9_999)
    plan = filled.planned(lambda log: log.facts.set([written(new)], ENGLISH))
    assert KEYS in plan.indexes
    assert plan.documents <= 6
    plan = filled.planned(lambda log: log.facts.delete(["i00001", "none"]))
    assert plan.documents <= 4 + 3
    plan = filled.planned(lambda log: log.facts.delete_versions([("i00002", 1)]))
    assert (plan.indexes, plan.documents) == ({OF_FACT}, 0), "it is gone"
    plan = filled.planned(lambda log: log.people.delete([filled.people[9].id]))
    assert plan.documents <= 3


def test_a_merging_reads_the_facts_and_versions_of_these_people(filled: Filled) -> None:
    source, target = filled.people[20], filled.people[30]
    for row in (source, target):
        for key in ("a", row.id):
            mine = fact(key, row.id, scope="user", scope_id=row.canonical_id)
            run(filled.log.facts.set([written(mine)], ENGLISH))
    plan: Plan = filled.planned(lambda log: log.people.merge(source.word, target.word, "w", at(0)))
    fences = 64
    assert plan.documents <= fences + 30
    assert "_id_" in plan.indexes

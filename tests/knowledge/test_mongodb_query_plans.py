"""MongoDB's query plans for chunks, and for the index over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.cursors import Moment
from firefly_memory.knowledge.log import KNOWLEDGE_LOG, ChunkRow
from tests.knowledge import ENGLISH, row
from tests.support.backends import Place
from tests.support.mongodb_chunks import Commands, vector
from tests.support.mongodb_plans import Planned
from tests.support.mongodb_tombstones import Somewhere

BY_ID, OF_WORDS, OF_PLACES, OF_PEOPLE = "_id_", "scope_1_words_1__id_1", "place_1", "scope_1_who_1"
IN_COLLECTION, NEWEST = "space_1_collection_1_added_1", "scope_1_newest_-1_newest_us_-1__id_1"
OF_OWNER, OF_ROW = "owner_1__id_1", "id_1_embedder_1"
OF_SIGNATURES = "scope_1_embedder_1_id_1_signature_1"


@pytest.fixture
def filled(place: Place) -> Iterator[tuple[Planned, list[ChunkRow], Any]]:
    """Two thousand chunks of nobody and of Ann."""
    commands = Commands()
    with ExitStack() as later:
        somewhere = Somewhere(place.mongodb(), later)
        log = later.enter_context(somewhere.listened(commands)).blocking.log(KNOWLEDGE_LOG)
        rows = [_row(number) for number in range(2_000)]
        for owner in (None, "Ann"):
            mine = [each for each in rows if each.owner == owner]
            run_without_loop(log.add(mine, {each.id: vector(1) for each in mine}, ENGLISH))
        run_without_loop(log.add([row("in another", collection="other")], {}, None))
        yield Planned(somewhere, log, commands), rows, log


def _row(number: int) -> ChunkRow:
    """One of a hundred has ``rare``, one of ten has ``some``, and each has ``often``."""
    words = ["often", *(["some"] if number % 20 < 2 else []), *(["rare"] if number % 200 < 2 else []), str(number)]
    return row(
        " ".join(words),
        owner="Ann" if number % 2 else None,
        who=("Anna", "Ben")[number // 2 % 2],
        group=f"g{number // 40}" if number % 80 < 40 else None,
        position=number % 40 // 2,
        day=number,
    )


Filled = tuple[Planned, list[ChunkRow], Any]


@pytest.mark.parametrize("owners", [1, 2])
def test_questions_to_the_index_read_as_many_keys_as_are_wanted_and_no_documents(filled: Filled, owners: int) -> None:
    planned, rows, _ = filled
    scopes = [each.scope for each in rows[:owners]]
    plan = planned(lambda log: log.index.counts(scopes, ["some", "rare"], 50))
    assert (plan.indexes, plan.documents) == ({OF_WORDS}, 0)
    assert plan.keys <= (10 + 100) * owners + 4 * owners
    plan = planned(lambda log: log.index.best(scopes, {"often": 1}, 30))
    assert (plan.indexes, plan.documents) == ({OF_WORDS}, 0)
    assert plan.keys <= 30 + 2 * owners
    plan = planned(lambda log: log.index.best(scopes, {"rare": 2, "some": 1}, 30))
    assert (plan.indexes, plan.documents) == ({OF_WORDS}, 0)
    assert plan.keys <= (10 + 100) * owners + 4 * owners
    plan = planned(lambda log: log.index.people(scopes, 10))
    assert (plan.indexes, plan.documents) == ({OF_PEOPLE}, 0)
    assert plan.keys <= 4 * owners
    plan = planned(lambda log: log.index.signatures(scopes, "e", 49))
    assert (plan.indexes, plan.documents) == ({OF_SIGNATURES}, 0)
    assert plan.keys <= 50 + owners


@pytest.mark.parametrize("owners", [1, 2])
def test_the_newest_with_a_text_are_read_first(filled: Filled, owners: int) -> None:
    planned, rows, _ = filled
    plan = planned(lambda log: log.index.containing([each.scope for each in rows[:owners]], "often", 10))
    assert (plan.indexes, plan.documents) == ({NEWEST}, 10)


def test_documents_and_their_neighbours_are_read_by_their_places(filled: Filled) -> None:
    planned, rows, log = filled
    mine = [each for each in rows if each.scope == rows[0].scope]
    grouped = [each.id for each in mine if each.group_id is not None][::50]
    alone = [each.id for each in mine if each.group_id is None][:5]
    found = run_without_loop(log.index.around([mine[0].scope], [*grouped, *alone]))
    plan = planned(lambda log: log.index.around([mine[0].scope], [*grouped, *alone]))
    assert (plan.indexes, plan.documents) == ({BY_ID, OF_PLACES}, len(found) + len(grouped)), "first only their places"
    assert len(found) == 7 * len(grouped) + len(alone) - 3 * sum(
        each.position == 0 for each in mine if each.id in grouped
    )
    plan = planned(lambda log: log.index.vectors("e", [*grouped, *alone]))
    assert (plan.indexes, plan.documents) == ({OF_ROW}, len(grouped) + len(alone))


def test_lists_read_what_they_return(filled: Filled) -> None:
    planned, rows, _ = filled
    third = Moment(rows[2].created_at, rows[2].id)
    lists: list[tuple[Callable[[Any], Any], str, int, int]] = [
        (lambda log: log.read([each.id for each in rows[:9]]), BY_ID, 9, 20),
        (lambda log: log.page(10, rows[5].id), BY_ID, 10, 10),
        (lambda log: log.oldest("", "notes", 10, None), IN_COLLECTION, 10, 10),
        (lambda log: log.oldest("", "notes", 10, third), IN_COLLECTION, 10, 11),
        (lambda log: log.of_owner("Ann", 10, ""), OF_OWNER, 0, 10),
        (lambda log: log.collections("", 9, ""), IN_COLLECTION, 0, 6),
        (lambda log: log.count("", "notes"), IN_COLLECTION, 0, 2_001),
        (lambda log: log.count("", None), IN_COLLECTION, 0, 2_002),
        (lambda log: log.count(None, None), BY_ID, 0, 2_002),
    ]
    for ask, index, documents, keys in lists:
        plan = planned(ask)
        assert (plan.indexes, plan.documents) == ({index}, documents)
        assert plan.keys <= keys


def test_chunks_without_a_vector_are_found_without_a_look_at_the_others(filled: Filled) -> None:
    planned, _, log = filled
    assert [each.collection for each in run_without_loop(log.without_vector("e", 10, ""))] == ["other"]
    plan = planned(lambda log: log.without_vector("e", 10, ""))
    assert (plan.indexes, plan.documents) == ({BY_ID, OF_ROW}, 1)

"""How a fact is made of a row, quickly and whole."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import FrozenInstanceError, asdict, fields, replace
from datetime import timedelta

import pytest

from firefly_memory.errors import CorruptDataError
from firefly_memory.longterm import MemoryFact
from firefly_memory.longterm.fact_form import fact_of
from tests.support.long_term_logs import START, at, fact

ROW = fact(
    "k", [1], scope="agent", scope_id="a", confidence=0.5, owner="chat:Ann", source="episode", second=3
)._replace(
    times_confirmed=2, times_contradicted=3, access_count=4, last_accessed=at(9), valid_from=at(1), created_at=at(2)
)
FACT = MemoryFact(
    id=ROW.id, key="k", value=[1], fact_type="world_knowledge", scope="agent", user_id="chat:Ann", agent_id="a",
    confidence=0.5, times_confirmed=2, times_contradicted=3, source_episode_id="episode", access_count=4,
    last_accessed=at(9), valid_from=at(1), created_at=at(2), updated_at=at(3),
)  # fmt: skip


def test_the_fact_of_a_row_is_one_like_any_other() -> None:
    made = fact_of(ROW)
    assert type(made) is MemoryFact
    assert (made, repr(made), asdict(made)) == (FACT, repr(FACT), asdict(FACT))
    assert hash(replace(made, value=None)) == hash(replace(FACT, value=None))
    assert copy(made) == pickle.loads(pickle.dumps(made)) == FACT
    assert all(hasattr(made, each.name) for each in fields(MemoryFact))


def test_the_fact_of_a_row_is_frozen() -> None:
    made = fact_of(ROW)
    with pytest.raises(FrozenInstanceError):
        made.valid_from = START - timedelta(days=1)  # type: ignore[misc]


@pytest.mark.parametrize("damage", [{"value": "["}, {"fact_scope": "nobody"}, {"value": None}])
def test_a_row_of_which_no_fact_can_be_made_is_an_error_that_names_it(damage: dict[str, str]) -> None:
    with pytest.raises(CorruptDataError, match=ROW.id):
        fact_of(ROW._replace(**damage))  # type: ignore[arg-type]

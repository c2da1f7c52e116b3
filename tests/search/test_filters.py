"""What rows are filtered by beside their scope."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firefly_memory.search.filters import Comparison, Condition, Filter, conditions_of, filters_in, passes

KIND, AGE = Filter("kind", Comparison.ONE_OF), Filter("age", Comparison.AT_LEAST)


def test_conditions_come_in_one_order_whatever_was_named_first() -> None:
    conditions = conditions_of((KIND, AGE), {"kind": ("a", "b"), "age": 0})
    assert conditions == (Condition(AGE, 0), Condition(KIND, ("a", "b")))
    assert conditions == conditions_of((AGE, KIND), {"age": 0, "kind": ("a", "b")})
    assert filters_in(conditions) == (AGE, KIND)
    assert (conditions_of((KIND, AGE), {}), filters_in(())) == ((), ())


def test_a_filter_that_nobody_has_declared_is_an_error() -> None:
    with pytest.raises(KeyError, match="scope"):
        conditions_of((KIND,), {"scope": ["another"]})


@pytest.mark.parametrize(
    ("wanted", "row", "expected"),
    [
        ({}, {}, True),
        ({"kind": ["a", "b"]}, {"kind": "b"}, True),
        ({"kind": ["a", "b"]}, {"kind": "ab"}, False),
        ({"kind": ["a", ""]}, {"kind": None}, False),
        ({"kind": []}, {"kind": "a"}, False),
        ({"age": 5}, {"age": 5.0}, True),
        ({"age": 5.5}, {"age": 5}, False),
        ({"age": -1}, {"age": 0}, True),
        ({"age": 0}, {"age": None}, False),
        ({"age": 5, "kind": ["a"]}, {"age": 5, "kind": "a"}, True),
        ({"age": 5, "kind": ["a"]}, {"age": 4, "kind": "a"}, False),
        ({"age": 5, "kind": ["a"]}, {"age": 5, "kind": "b"}, False),
    ],
)
def test_a_row_passes_if_it_fulfils_all_conditions(wanted: dict[str, Any], row: dict[str, Any], expected: bool) -> None:
    assert passes(SimpleNamespace(**row), conditions_of((KIND, AGE), wanted)) is expected

"""Arrays in PostgreSQL's notation. Plain texts take a shorter way, to the same notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, none, text

from firefly_memory.databases.sql.postgresql import arrays


@given(lists(text() | text('a"\\', max_size=5) | none() | integers() | floats(allow_nan=False)) | lists(text()))
def test_each_element_is_written_as_it_is_alone(values: list[str | float | None]) -> None:
    assert arrays.array_text(iter(values)) == "{" + ",".join(arrays.array_text([each])[1:-1] for each in values) + "}"


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([], "{}"),
        ([""], '{""}'),
        (["a", "b,c}"], '{"a","b,c}"}'),
        (['say "x"', "\\"], '{"say \\"x\\"","\\\\"}'),
        (["NULL", None, 1, 2.5], '{"NULL",NULL,1,2.5}'),
    ],
)
def test_arrays_are_written_in_the_notation_of_postgresql(values: list[str | float | None], written: str) -> None:
    assert arrays.array_text(values) == written

"""A short run of each fuzzing target, with the same examples every time; ``make fuzz`` runs them for longer."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzzing import archives, codec, rows, urls
from tests.support.backends import Place

pytestmark = pytest.mark.thorough

TARGETS = {archives: 8, codec: 150, urls: 200, rows: 8}
"""How many examples each has here, on every backend."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__.rpartition(".")[2])
def test_every_altered_input_gives_a_typed_error_or_a_right_result(target: ModuleType, place: Place) -> None:
    short = settings(
        max_examples=TARGETS[target],
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    def run(body: Callable[[st.DataObject], None]) -> None:
        short(given(st.data())(body))()

    with target.bodies(place) as bodies:
        for body in bodies.values():
            run(body)

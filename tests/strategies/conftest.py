"""The shapes of messages."""

from __future__ import annotations

import pytest

from tests.support.shaped_messages import SHAPES, Shape


@pytest.fixture(params=SHAPES.values(), ids=list(SHAPES))
def shape(request: pytest.FixtureRequest) -> Shape:
    """The messages of each library."""
    made: Shape = request.param
    return made

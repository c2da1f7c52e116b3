"""A ``MongoDBStore`` keeps the contract where only its own extra is installed."""

from __future__ import annotations

import os

import pytest

from firefly_memory import MongoDBStore
from firefly_memory.testing import Check, Colour, checks

URL = os.environ["FIREFLY_TEST_MONGODB_URL"]


@pytest.mark.parametrize("colour", Colour)
@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check, colour: Colour) -> None:
    check.run(lambda: MongoDBStore(URL), colour)

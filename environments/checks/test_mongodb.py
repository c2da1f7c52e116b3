"""A ``MongoDBStore`` keeps the contract where only its own extra is installed."""

from __future__ import annotations

import os

import pytest

from firefly_memory import MongoDBStore
from firefly_memory.testing import Check, Mode, checks

URL = os.environ["FIREFLY_TEST_MONGODB_URL"]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check, mode: Mode) -> None:
    check.run(lambda: MongoDBStore(URL), mode)

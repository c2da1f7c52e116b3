"""A ``PostgreSQLStore`` keeps the contract where only its own extra is installed."""

from __future__ import annotations

import os

import pytest

from firefly_memory import PostgreSQLStore
from firefly_memory.testing import Check, Mode, checks

URL = os.environ["FIREFLY_TEST_POSTGRES_URL"]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check, mode: Mode) -> None:
    check.run(lambda: PostgreSQLStore(URL), mode)

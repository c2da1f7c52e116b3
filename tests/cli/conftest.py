"""``firefly-memory db`` for the tests of the command line."""

from __future__ import annotations

import pytest

from tests.support.db_command import Db


@pytest.fixture
def db(url: str, capsys: pytest.CaptureFixture[str]) -> Db:
    """On an empty database."""
    return Db(capsys, "--url", url)


@pytest.fixture
def anywhere(capsys: pytest.CaptureFixture[str]) -> Db:
    """On no database but what its arguments and the environment name."""
    return Db(capsys)

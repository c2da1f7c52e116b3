"""The shared checks of arguments, values and missing extras."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from firefly_memory import ConfigurationError, InvalidEntryError, MissingDependencyError
from firefly_memory.validation import (
    ImportingExtra,
    above_zero,
    at_least,
    checked_mapping,
    checked_number,
    checked_text,
    checked_whole_number,
    is_installed,
    require_extra,
    seconds,
    true_or_false,
)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda value: at_least(1, "size", value), "size must be a whole number from 1 up, not True"),
        (lambda value: seconds("timeout", value), "timeout must be a number of seconds above 0, not True"),
        (lambda value: above_zero("rate", value), "rate must be a number above 0, not True"),
        (lambda value: checked_whole_number("limit", value), "limit: must be a whole number from 0 up, not True"),
        (lambda value: checked_number("by", value), "by: must be a number, not bool"),
    ],
)
def test_a_bool_is_not_accepted_as_a_number(check: Callable[[Any], Any], words: str) -> None:
    true: Any = True
    with pytest.raises((ConfigurationError, InvalidEntryError)) as refused:
        check(true)
    assert str(refused.value) == words


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 10**400, "1", None])
def test_a_time_out_is_finite_and_above_zero(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be a number of seconds above 0"):
        seconds("timeout", value)
    assert seconds("timeout", 1) == 1.0


def test_texts_dicts_and_bools_are_checked() -> None:
    assert checked_text("key", "\ud800") == "\ud800"
    assert checked_mapping("metadata", {}) == {}
    assert true_or_false("download", value=False) is False
    with pytest.raises(InvalidEntryError, match="key: must be text, not bytes"):
        checked_text("key", b"")
    with pytest.raises(InvalidEntryError, match="metadata: must be a dict, not list"):
        checked_mapping("metadata", [])
    with pytest.raises(ConfigurationError, match="download must be True or False, not 1"):
        true_or_false("download", 1)


def test_a_missing_extra_is_named_and_one_of_several_packages_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    assert not is_installed("asyncpg")
    require_extra("PostgreSQLStore", "asyncpg", "postgres", "psycopg")
    with pytest.raises(MissingDependencyError, match=r"needs the package 'asyncpg'.*firefly-memory\[postgres\]"):
        require_extra("PostgreSQLStore", "asyncpg", "postgres")


def test_a_failed_import_is_the_cause_and_other_errors_pass() -> None:
    importing = ImportingExtra("reading", "pydantic-ai-slim", "agents")
    with (
        pytest.raises(MissingDependencyError, match="reading needs the package 'pydantic-ai-slim'") as missing,
        importing,
    ):
        raise ImportError("no module")
    assert str(missing.value.__cause__) == "no module"
    with pytest.raises(ValueError, match="another"), importing:
        raise ValueError("another")
    with importing:
        pass

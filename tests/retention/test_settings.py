"""What the environment says of retention."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from firefly_memory import ConfigurationError, MemoryManager
from firefly_memory.settings import PREFIX, read_settings
from firefly_memory.testing.clock import stopped
from firefly_memory.validation import duration


def test_nothing_is_set_by_default() -> None:
    settings = read_settings(None)
    assert (settings.retention_older_than, settings.retention_keep_last) == (None, None)


def test_the_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}RETENTION_OLDER_THAN", "90d")
    monkeypatch.setenv(f"{PREFIX}RETENTION_KEEP_LAST", "100")
    settings = read_settings(None)
    assert (settings.retention_older_than, settings.retention_keep_last) == ("90d", 100)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RETENTION_OLDER_THAN", "90"),
        ("RETENTION_OLDER_THAN", "0d"),
        ("RETENTION_OLDER_THAN", "a week"),
        ("RETENTION_KEEP_LAST", "0"),
        ("RETENTION_KEEP_LAST", "many"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_the_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{PREFIX}{name}", value)
    with pytest.raises(ConfigurationError, match=f"^{PREFIX}{name}: "):
        read_settings(None)


def test_a_manager_does_not_heed_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"{PREFIX}RETENTION_OLDER_THAN", "1d")
    monkeypatch.setenv(f"{PREFIX}RETENTION_KEEP_LAST", "1")
    with MemoryManager.from_config() as manager, stopped() as clock:
        for name in ("old", "new"):
            manager.conversation.add_turn(name, "question", "answer")
            clock.advance(days=9)
        assert manager.conversation.conversation_ids == ["old", "new"]


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("90d", timedelta(days=90)),
        ("12h", timedelta(hours=12)),
        ("30m", timedelta(minutes=30)),
        ("45s", timedelta(seconds=45)),
        (1.5, timedelta(seconds=1.5)),
        (timedelta(days=2), timedelta(days=2)),
    ],
)
def test_a_length_of_time_is_said_in_several_ways(value: object, length: timedelta) -> None:
    assert duration("every", value) == length

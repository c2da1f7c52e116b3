"""``MemoryEntry``, the unit of storage."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from firefly_memory import DatabaseStoreError, InMemoryStore, MemoryEntry, MemoryScope
from firefly_memory.codec import MAX_DEPTH
from firefly_memory.testing import stopped


def test_an_entry_has_the_documented_defaults() -> None:
    with stopped() as clock:
        entry = MemoryEntry(content="x")
        assert entry.created_at == clock.now()
    assert entry.scope is MemoryScope.WORKING
    assert (entry.key, entry.metadata, entry.expires_at, entry.importance) == (None, {}, None, 0.5)
    assert not entry.is_expired
    assert MemoryEntry().entry_id != MemoryEntry().entry_id


def test_scopes_have_the_documented_values() -> None:
    assert [scope.value for scope in MemoryScope] == ["conversation", "working", "long_term"]
    assert MemoryEntry(scope="long_term").scope is MemoryScope.LONG_TERM


@pytest.mark.parametrize("importance", [-0.01, 1.01, float("nan"), float("inf"), "high"])
def test_importance_is_checked_when_made_and_when_changed(importance: float) -> None:
    with pytest.raises(ValidationError):
        MemoryEntry(importance=importance)
    entry = MemoryEntry(importance=1)
    with pytest.raises(ValidationError):
        entry.importance = importance
    assert entry.importance == 1.0


def test_datetimes_need_a_time_zone_and_are_kept_in_utc() -> None:
    for field in ("created_at", "expires_at"):
        with pytest.raises(ValidationError, match=field):
            MemoryEntry(**{field: datetime(2024, 1, 1)})  # noqa: DTZ001
        with pytest.raises(ValidationError, match="outside the years"):
            MemoryEntry(**{field: datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))})
    entry = MemoryEntry(expires_at=datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    assert entry.expires_at == datetime(2024, 1, 1, 10, tzinfo=UTC)
    assert entry.expires_at.tzinfo is UTC


def test_an_entry_is_expired_at_its_instant_of_expiry() -> None:
    with stopped() as clock:
        entry = MemoryEntry(expires_at=clock.now() + timedelta(seconds=1))
        assert not entry.is_expired
        clock.advance(seconds=1)
        assert entry.is_expired


def test_misspelt_fields_are_refused() -> None:
    with pytest.raises(ValidationError, match="ttl"):
        MemoryEntry(ttl=5)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "fields", [{"key": 5}, {"entry_id": b"x"}, {"metadata": []}, {"metadata": None}, {"scope": "x"}]
)
def test_fields_of_the_wrong_type_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MemoryEntry(**fields)


def test_an_entry_survives_json_and_has_a_json_schema() -> None:
    entry = MemoryEntry(key="k", content={"a": [1, None]}, metadata={"m": 1})
    assert MemoryEntry.model_validate_json(entry.model_dump_json()) == entry
    assert set(json.loads(json.dumps(MemoryEntry.model_json_schema()))["properties"]) == set(MemoryEntry.model_fields)


def test_a_loaded_entry_is_an_ordinary_model() -> None:
    from firefly_memory import InMemoryStore

    store = InMemoryStore()
    saved = MemoryEntry(key="k", content=[1])
    store.save("n", saved)
    (loaded,) = store.load("n")
    assert loaded == saved
    assert loaded.model_copy(update={"key": "other"}).key == "other"
    assert loaded.model_dump() == saved.model_dump()
    assert repr(loaded) == repr(saved)
    loaded.importance = 0.9
    with pytest.raises(ValidationError):
        loaded.importance = 9
    assert store.load("n") == [saved]


def test_loaded_entries_share_nothing() -> None:
    with InMemoryStore() as store:
        store.save_many("n", [MemoryEntry(content=1), MemoryEntry(content=2)])
        first, second = store.load("n")
        first.model_fields_set.discard("content")
        assert "content" in second.model_dump(exclude_unset=True)


def test_loading_a_deep_value_with_little_stack_left_raises_one_clear_error() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    with InMemoryStore() as store:
        store.save("n", MemoryEntry(content=value))

        def load(levels: int) -> list[MemoryEntry]:
            return load(levels - 1) if levels else store.load("n")

        with pytest.raises(DatabaseStoreError, match="room left on Python's stack"):
            load(600)
        assert len(store.load("n")) == 1

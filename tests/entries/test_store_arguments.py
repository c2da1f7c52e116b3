"""Arguments of stores and of their methods; stores cannot be pickled or copied."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from firefly_memory import (
    Capability,
    ConfigurationError,
    FileStore,
    InMemoryStore,
    InvalidEntryError,
    MemoryEntry,
    SQLiteStore,
    adapt,
)
from tests.support.backends import OWN, Backend, Place


def test_arguments_of_the_wrong_type_are_named() -> None:
    store = InMemoryStore()
    with pytest.raises(InvalidEntryError, match="use save\\(\\) for one"):
        store.save_many("n", MemoryEntry())  # type: ignore[arg-type]
    for arguments in ({"prefix": 5}, {"after": 5}, {"limit": None}):
        with pytest.raises(InvalidEntryError, match=next(iter(arguments))):
            store.namespaces(**arguments)


@pytest.mark.parametrize("make", [FileStore, SQLiteStore])
def test_invalid_time_outs_are_refused(make: Any) -> None:
    for timeout in (0, -1, "5", None, True, float("nan")):
        with pytest.raises(ConfigurationError, match="timeout must be a number of seconds"):
            make("x", timeout=timeout)


def test_a_pool_needs_at_least_one_connection() -> None:
    for size in (0, -1, 1.5, "3"):
        with pytest.raises(ConfigurationError, match="pool_size"):
            SQLiteStore("x.db", pool_size=size)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", OWN, ids=str)
def test_a_store_cannot_be_pickled_or_copied_and_says_why(backend: Backend, place: Place) -> None:
    store = adapt(backend.open(place))
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="open a store of its own in each process"):
            use(store)
    store.close_sync()


def test_every_capability_has_a_description() -> None:
    assert all(capability.value for capability in Capability)
    assert InMemoryStore().capabilities < SQLiteStore("x.db").capabilities == frozenset(Capability)

"""Hypothesis compares every backend with a plain dict over random sequences of calls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from firefly_memory import Capability, EntryOwnershipError, EntryStore, MemoryEntry, adapt
from firefly_memory.testing import stopped
from firefly_memory.testing.rules.values import same
from tests.support.backends import OWN, Backend, Place
from tests.support.value_strategies import json_values

pytestmark = [pytest.mark.no_cover, pytest.mark.thorough]

NAMESPACES = ["a", "A", "b%"]
KEYS = st.sampled_from([None, "k", "K", "\x00"])
IDS = [f"id-{number}" for number in range(4)]


class _Model:
    """What a store is: a dict of dicts."""

    def __init__(self, *, unique_ids: bool) -> None:
        self.namespaces: dict[str, dict[str, MemoryEntry]] = {name: {} for name in NAMESPACES}
        self._unique_ids = unique_ids

    def live(self, namespace: str) -> list[MemoryEntry]:
        entries = [entry for entry in self.namespaces[namespace].values() if not entry.is_expired]
        return sorted(entries, key=lambda entry: (entry.created_at, entry.entry_id))

    def owner(self, entry_id: str) -> str | None:
        if not self._unique_ids:
            return None
        owners = [name for name in NAMESPACES if entry_id in {entry.entry_id for entry in self.live(name)}]
        return owners[0] if owners else None

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        earlier = self.namespaces[namespace].get(entry.entry_id)
        created_at = entry.created_at if earlier is None or earlier.is_expired else earlier.created_at
        if self._unique_ids:
            for entries in self.namespaces.values():
                entries.pop(entry.entry_id, None)
        self.namespaces[namespace][entry.entry_id] = entry.model_copy(update={"created_at": created_at})


def machine(open_store: Callable[[], EntryStore]) -> type[RuleBasedStateMachine]:
    class Play(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.store = open_store()
            self.run = uuid4().hex
            self.model = _Model(unique_ids=Capability.UNIQUE_IDS in self.store.capabilities)
            self.stopping = stopped(datetime(2024, 1, 1, tzinfo=UTC))
            self.clock = self.stopping.__enter__()

        def teardown(self) -> None:
            for namespace in NAMESPACES:
                self.store.clear(self.at(namespace))
            self.store.close_sync()
            self.stopping.__exit__(None, None, None)

        def at(self, namespace: str) -> str:
            return f"{namespace}:{self.run}"

        def entry(self, number: int, key: str | None, content: Any, seconds: int | None) -> MemoryEntry:
            expires_at = None if seconds is None else self.clock.now() + timedelta(seconds=seconds)
            return MemoryEntry(entry_id=f"{IDS[number]}:{self.run}", key=key, content=content, expires_at=expires_at)

        entries = st.tuples(st.integers(0, len(IDS) - 1), KEYS, json_values, st.none() | st.integers(-1, 20))

        @rule(namespace=st.sampled_from(NAMESPACES), fields=entries)
        def save(self, namespace: str, fields: Any) -> None:
            entry = self.entry(*fields)
            if self.model.owner(entry.entry_id) in (None, namespace):
                self.store.save(self.at(namespace), entry)
                self.model.save(namespace, entry)
            else:
                with pytest.raises(EntryOwnershipError):
                    self.store.save(self.at(namespace), entry)

        @rule(namespace=st.sampled_from(NAMESPACES), batch=st.lists(entries, max_size=5))
        def save_many(self, namespace: str, batch: list[Any]) -> None:
            made = [self.entry(*fields) for fields in batch]
            if all(self.model.owner(entry.entry_id) in (None, namespace) for entry in made):
                self.store.save_many(self.at(namespace), made)
                first: dict[str, datetime] = {}
                last: dict[str, MemoryEntry] = {}
                for entry in made:
                    first.setdefault(entry.entry_id, entry.created_at)
                    last[entry.entry_id] = entry
                for entry_id, entry in last.items():
                    self.model.save(namespace, entry.model_copy(update={"created_at": first[entry_id]}))
            else:
                with pytest.raises(EntryOwnershipError):
                    self.store.save_many(self.at(namespace), made)

        @rule(namespace=st.sampled_from(NAMESPACES), number=st.integers(0, len(IDS) - 1))
        def delete(self, namespace: str, number: int) -> None:
            entry_id = f"{IDS[number]}:{self.run}"
            self.store.delete(self.at(namespace), entry_id)
            self.model.namespaces[namespace].pop(entry_id, None)

        @rule(namespace=st.sampled_from(NAMESPACES), numbers=st.lists(st.integers(0, len(IDS) - 1)))
        def delete_many(self, namespace: str, numbers: list[int]) -> None:
            ids = [f"{IDS[number]}:{self.run}" for number in numbers]
            there = {entry.entry_id for entry in self.model.live(namespace)} & set(ids)
            assert self.store.delete_many(self.at(namespace), ids) == len(there)
            for entry_id in there:
                del self.model.namespaces[namespace][entry_id]

        @rule(namespace=st.sampled_from(NAMESPACES))
        def clear(self, namespace: str) -> None:
            self.store.clear(self.at(namespace))
            self.model.namespaces[namespace].clear()

        @rule(seconds=st.integers(1, 10))
        def wait(self, seconds: int) -> None:
            self.clock.advance(seconds=seconds)

        @rule()
        def clean_up(self) -> None:
            if Capability.LISTING in self.store.capabilities:
                self.store.cleanup_expired_sync()
                for entries in self.model.namespaces.values():
                    for entry in [entry for entry in entries.values() if entry.is_expired]:
                        del entries[entry.entry_id]

        @rule()
        def reopen(self) -> None:
            if Capability.DURABLE in self.store.capabilities:
                self.store.close_sync()
                self.store = open_store()

        @invariant()
        def both_tell_the_same(self) -> None:
            for namespace in NAMESPACES:
                expected = self.model.live(namespace)
                loaded = self.store.load(self.at(namespace))
                assert loaded == expected
                assert all(same(mine.content, theirs.content) for mine, theirs in zip(loaded, expected, strict=True))
                assert self.store.count(self.at(namespace)) == len(expected)
                for key in ("k", "K", "\x00"):
                    newest = [entry for entry in expected if entry.key == key][-1:]
                    assert self.store.load_by_key(self.at(namespace), key) == (newest[0] if newest else None)
                page = self.store.load_page(self.at(namespace), limit=2)
                assert list(page) == expected[:2]
                if page.next is not None:
                    assert list(self.store.load_page(self.at(namespace), after=page.next)) == expected[2:]

    return Play


@pytest.mark.parametrize("backend", OWN, ids=str)
def test_a_store_gives_the_same_results_as_a_dict(backend: Backend, place: Place) -> None:
    run_state_machine_as_test(
        machine(lambda: adapt(backend.open(place))),
        settings=settings(
            max_examples=15,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )

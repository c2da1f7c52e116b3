"""Samples of the toy, which the tests of the registry add to the facets of the library."""

from __future__ import annotations

import pytest

from firefly_memory import EntryStore, ErasedError
from tests.toy_facet.facet import key
from tests.toy_facet.log import Note


async def store_data_of(store: EntryStore, owner: str) -> None:
    await store.suspending.log(key()).put(Note(f"note of {owner}", f"body of {owner}", owner=owner))


async def assert_late_writes_are_refused(store: EntryStore, owner: str) -> None:
    with pytest.raises(ErasedError):
        await store.suspending.log(key()).put(Note("new", "body", owner=owner))

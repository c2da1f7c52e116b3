"""What workers do with long-term memory: ``tests.support.store_worker`` finds it by the name of this module."""

from __future__ import annotations

import json

from firefly_memory import EntryStore
from firefly_memory.longterm import MemoryService


def set_and_confirm_one_fact(store: EntryStore, space: str, name: str, count: str) -> None:
    """Each value is another one. Prints how often the fact was confirmed after each write."""
    service = MemoryService(store, space=space, embedder=None)
    seen = []
    for number in range(int(count)):
        fact = service.set_fact("shared", [name, number])
        service.get_fact("shared")
        seen += [fact.times_confirmed, service.confirm_fact(fact.id).times_confirmed]
    print(json.dumps(seen))

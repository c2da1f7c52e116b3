"""What workers do with feeds: ``tests.support.store_worker`` finds it by the name of this module."""

from __future__ import annotations

import json

from firefly_memory import EntryStore
from firefly_memory.testing.rules.feed_stores import message_store


def append_and_read(store: EntryStore, location: str, name: str, count: str) -> None:
    """Prints what this process has read: after each append what came after the newest message that it knew."""
    messages = message_store(store)
    seen: list[tuple[int, str]] = []
    for number in range(int(count)):
        messages.append(location, {"content": f"{name} {number}", "agent_key": name})
        after = seen[-1][0] if seen else 0
        seen += [(each.number, each.message["content"]) for each in messages.get_items(location, after=after)]
    print(json.dumps(seen))

"""Samples of feeds."""

from __future__ import annotations

import pytest

from firefly_memory import EntryStore, ErasedError
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.message_stores import SQLMessageStore

OF_SEVERAL_NODES = {
    "PostgreSQLFeedStatements.append_group": (
        "appends to several feeds; Citus takes the results of its parts over the coordinator"
    ),
    "PostgreSQLFeedStatements.append_group_and_notify": "the same",
}


async def store_data_of(store: EntryStore, owner: str) -> None:
    messages = [{"content": f"{number} of {owner}", "agent_key": owner, owner: owner} for number in range(3)]
    await FeedFlows(store.suspending).append(f"location of {owner}", messages, owner, "messages")


async def assert_late_writes_are_refused(store: EntryStore, owner: str) -> None:
    for whose, location in ((owner, "new"), (owner, f"location of {owner}"), (None, f"location of {owner}")):
        with pytest.raises(ErasedError):
            await FeedFlows(store.suspending).append(location, [{"content": 1}], whose, "messages")


def store_hostile(store: EntryStore, text: str) -> None:
    for message in ({"type": text, "agent_key": text, "content": text * 20}, {text: {text: text}}):
        SQLMessageStore(store).append(text, message, owner=text)


def store_archived(store: EntryStore) -> None:
    feeds = SQLMessageStore(store)
    for location, owner in (("job", "ann"), ("dropped", None), ("empty", None)):
        feeds.append_many(location, [{"type": "task", "agent_key": "a", "n": n} for n in range(4)], owner)
    feeds.clear("dropped", keep_last=2)
    feeds.clear("empty")

"""A process that appends turns to a conversation in MongoDB."""

from __future__ import annotations

import asyncio
import sys

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from tests.support.backends import Place
from tests.support.turns import a_turn
from tests.support.workers import Worker

DATABASE = "conversation_races"


def start(place: Place, name: str, work: str) -> Worker:
    """``work`` is ``together`` or ``until killed``. It prints ``ready`` and waits for a line."""
    return Worker(__name__, place.mongodb(), name, work)


def main() -> None:
    url, name, work = sys.argv[1:]
    store = MongoDBStore(url, database=DATABASE)
    blocking, suspending = store.blocking.log(CONVERSATION_LOG), store.suspending.log(CONVERSATION_LOG)
    run_without_loop(blocking.head(name))
    print("ready", flush=True)
    sys.stdin.readline()

    async def from_tasks() -> None:
        await asyncio.gather(*[suspending.append(name, a_turn(), None) for _ in range(32)])
        await store.close()

    if work == "together":
        for _ in range(10):
            run_without_loop(blocking.append(name, a_turn(), None))
        asyncio.run(from_tasks())
    while work == "until killed":
        draft = a_turn()
        run_without_loop(blocking.append(name, draft, None))
        print(draft.append_id, flush=True)
    store.close_sync()

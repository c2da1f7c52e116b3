"""A process that appends messages to a feed in MongoDB."""

from __future__ import annotations

import asyncio
import sys

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.feeds.log import FEED_LOG
from tests.support.backends import Place
from tests.support.mongodb_feeds import DATABASE, a_message
from tests.support.workers import Worker

THREADED, TASKS, TOGETHER = 3, 8, 3


def start(place: Place, location: str, work: str) -> Worker:
    """``work`` is ``at once``, ``until killed`` or ``together until killed``. It prints ``ready`` and waits for a line."""
    return Worker(__name__, place.mongodb(), location, work)


def main() -> None:
    url, location, work = sys.argv[1:]
    store = MongoDBStore(url, database=DATABASE)
    blocking, suspending = store.blocking.log(FEED_LOG), store.suspending.log(FEED_LOG)
    run_without_loop(blocking.feed(location))
    print("ready", flush=True)
    sys.stdin.readline()

    async def from_tasks() -> None:
        await asyncio.gather(*[suspending.append(location, [a_message()], None) for _ in range(TASKS)])
        await suspending.append(location, [a_message(f"{each}", "together") for each in range(TOGETHER)], None)
        await store.close()

    if work == "at once":
        for _ in range(THREADED):
            run_without_loop(blocking.append(location, [a_message()], None))
        asyncio.run(from_tasks())
    while work.endswith("until killed"):
        messages = [a_message("1"), *([a_message("2")] if work.startswith("together") else [])]
        print(run_without_loop(blocking.append(location, messages, None)), flush=True)
    store.close_sync()

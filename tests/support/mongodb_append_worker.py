"""A process that appends turns to a conversation in MongoDB: ``python -m tests.support.mongodb_append_worker URL NAME WORK``."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from tests.support.backends import Place
from tests.support.store_worker import ROOT
from tests.support.turns import a_turn

DATABASE = "conversation_races"


def start(place: Place, name: str, work: str) -> subprocess.Popen[str]:
    """``work`` is ``together`` or ``until killed``. It prints ``ready`` and waits for a line."""
    command = [sys.executable, "-W", "error", "-m", "tests.support.mongodb_append_worker", place.mongodb(), name, work]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def main(url: str, name: str, work: str) -> None:
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


if __name__ == "__main__":
    main(*sys.argv[1:])

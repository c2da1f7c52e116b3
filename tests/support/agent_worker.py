"""Runs of an agent whose process is killed.

The n-th run of conversation ``CONVERSATION-n`` is in a process of its own, which kills itself with -9 when the run waits
for the n-th time. Ends with the first run that nothing stopped, and prints how many there were.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
from itertools import count

from pydantic_ai import Agent

from firefly_memory import MemoryManager, connect
from firefly_memory.agents import Memory
from firefly_memory.tokens import tiktoken_loader
from tests.support.cancellation import interrupted
from tests.support.scripted_model import Scripted
from tests.support.tiktoken_vocabularies import LONG_ENOUGH
from tests.support.workers import Worker


def runs_until_one_ends(url: str, conversation_id: str) -> int:
    """How many runs there were; they are forked by a process of their own."""
    worker = Worker(__name__, url, conversation_id)
    printed = worker.communicate()
    assert worker.returncode == 0
    return int(printed)


async def run(url: str, conversation_id: str, killed_at: int) -> None:
    async with connect(url) as store:
        memory = Memory(MemoryManager(store=store), tools=True)
        await Agent(Scripted("before").model, capabilities=[memory]).run("zero", conversation_id=conversation_id)
        calls = {"look": {}, "remember": {"key": conversation_id, "value": "killed"}}
        agent = Agent(Scripted(calls, {"look": {}}, "done").model, capabilities=[memory])

        @agent.tool_plain
        async def look() -> str:
            await asyncio.sleep(0)
            return "seen"

        whole = agent.run("one", conversation_id=conversation_id)
        await interrupted(whole, killed_at, lambda: os.kill(os.getpid(), signal.SIGKILL))


def main() -> None:
    url, conversation_id = sys.argv[1:]
    tiktoken_loader.LOAD_TIMEOUT = LONG_ENOUGH
    for warm in ("memory:", "sqlite://"):  # what is imported here is there in every child
        asyncio.run(run(warm, conversation_id, killed_at=0))
    importlib.import_module("pymongo" if url.startswith("mongodb") else "asyncpg")
    for number in count(1):
        child = os.fork()
        if not child:
            asyncio.run(run(url, f"{conversation_id}-{number}", number))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert status == 0
            print(number)
            return
        assert os.WTERMSIG(status) == signal.SIGKILL

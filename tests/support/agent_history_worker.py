"""A process of its own that uses a conversation store."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.exceptions import UserError
from pymongo import monitoring

from tests.support.agent_histories import Stored, message, messages, opened, texts
from tests.support.workers import Worker


def start(kind: str, where: str, work: str, *arguments: object) -> Worker:
    """Like the workers of ``tests.support.store_worker``: it prints ``ready`` and waits for a line."""
    return Worker(__name__, kind, where, work, *arguments)


async def append(conversations: Stored, name: str, count: str) -> None:
    """So many messages to one conversation, whoever else does so."""
    number = 0
    while number < int(count):
        conversation = await conversations.load("shared") or Conversation(conversation_id="shared")
        conversation.messages.append(message(f"{name} {number}"))
        with suppress(ConversationConflict):
            await conversations.save(conversation)
            number += 1


async def save_and_delete(conversations: Stored, _: str, count: str) -> None:
    for _number in range(int(count)):
        await conversations.save(Conversation(conversation_id="source", messages=messages(6)))
        await conversations.delete("source")


async def fork(conversations: Stored, name: str, count: str) -> None:
    """Forks of what somebody else deletes are whole, or refused."""
    forks = 0
    for number in range(int(count)):
        with suppress(UserError):
            await conversations.fork("source", at=1 + number % 6, new_conversation_id=name)
            assert texts(await conversations.load(name)) == [str(each) for each in range(1 + number % 6)]
            forks += 1
            await conversations.delete(name)
    print(forks)


async def save_until_killed(conversations: Stored, _: str) -> None:
    conversation = Conversation(conversation_id="growing")
    while True:
        conversation.messages += messages(3, len(conversation.messages))
        await conversations.save(conversation)
        print(len(conversation.messages), flush=True)


async def delete_until_killed(_: Stored, conversation_id: str, commits: str) -> None:
    """Kill this process when so many transactions of a deletion are committed."""
    monitoring.register(_KilledAtCommit(int(commits)))
    async with opened(*sys.argv[1:3]) as conversations:
        await conversations.delete(conversation_id)


class _KilledAtCommit(monitoring.CommandListener):
    def __init__(self, commits: int) -> None:
        self._to_come = commits

    def started(self, event: monitoring.CommandStartedEvent) -> None: ...

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        self._to_come -= event.command_name == "commitTransaction"
        if self._to_come == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


async def _work() -> None:
    kind, where, work, *arguments = sys.argv[1:]
    async with opened(kind, where) as conversations:
        print("ready", flush=True)
        sys.stdin.readline()
        await globals()[work](conversations, *arguments)


def main() -> None:
    asyncio.run(_work())

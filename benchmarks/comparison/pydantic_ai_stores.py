"""pydantic-ai by itself: its ConversationStore in memory, and the rows that its example of a chat writes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from benchmarks.comparison.contender import MESSAGES_OF_A_TURN, NEWEST_TURNS, Answer, Contender
from benchmarks.comparison.pydantic_ai_turns import agent, kinds
from benchmarks.one_turn import MESSAGES, PROMPT


class OfConversationStore(Contender):
    """Load, run, save; and again after a conflict, as the documentation of ``ConversationConflict`` says."""

    reads = "the newest 80 messages (`limit=`)"
    conversations: ConversationStore

    async def load(self, conversation: str) -> int:
        return len((await self._loaded(conversation)).messages)

    async def _loaded(self, conversation: str) -> Conversation:
        loaded = await self.conversations.load(conversation, limit=NEWEST_TURNS * MESSAGES_OF_A_TURN)
        return loaded or Conversation(conversation_id=conversation)

    async def turn(self, conversation: str) -> None:
        while True:
            loaded = await self._loaded(conversation)
            loaded.messages.extend(MESSAGES)
            try:
                await self.conversations.save(loaded)
            except ConversationConflict:
                continue
            return

    async def fill(self, conversation: str, turns: int) -> None:
        await self.conversations.save(Conversation(messages=MESSAGES * turns, conversation_id=conversation))

    async def run(self, conversation: str, answer: Answer) -> None:
        loaded = await self._loaded(conversation)
        await self.conversations.save(await agent(answer).run(PROMPT, conversation=loaded))

    async def stored(self, conversation: str) -> list[str]:
        loaded = await self.conversations.load(conversation)
        return kinds(loaded.messages if loaded else [])


class InMemory(OfConversationStore):
    name = "pydantic-ai, `InMemoryConversationStore`"
    backend = "memory"
    package = "pydantic-ai-slim"

    async def open(self, *, create: bool = True) -> None:
        self.conversations = InMemoryConversationStore()

    async def close(self) -> None:
        pass


class RowsOfTheExample(Contender):
    """``pydantic_ai_examples/chat_app.py``, with a column for the conversation: about thirty lines of one's own."""

    name = "pydantic-ai, the rows of its chat example"
    backend = "sqlite"
    package = "pydantic-ai-slim"
    reads = "all messages"

    async def open(self, *, create: bool = True) -> None:
        self.executor = ThreadPoolExecutor(max_workers=1)
        self.connection = await self._in_thread(partial(sqlite3.connect, self.place.path))
        await self._write(
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, conversation TEXT, message_list TEXT)"
        )
        await self._write("CREATE INDEX IF NOT EXISTS of_conversation ON messages (conversation, id)")

    async def close(self) -> None:
        await self._in_thread(self.connection.close)
        self.executor.shutdown()

    async def _in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.executor, work, *arguments)

    async def _write(self, sql: str, *arguments: Any) -> None:
        def write() -> None:
            self.connection.execute(sql, arguments)
            self.connection.commit()

        await self._in_thread(write)

    async def _read(self, conversation: str) -> list[ModelMessage]:
        sql = "SELECT message_list FROM messages WHERE conversation = ? ORDER BY id"
        cursor = await self._in_thread(self.connection.execute, sql, (conversation,))
        messages: list[ModelMessage] = []
        for (text,) in await self._in_thread(cursor.fetchall):
            messages.extend(ModelMessagesTypeAdapter.validate_json(text))
        return messages

    async def _add(self, conversation: str, messages: bytes) -> None:
        await self._write("INSERT INTO messages (conversation, message_list) VALUES (?, ?)", conversation, messages)

    async def load(self, conversation: str) -> int:
        return len(await self._read(conversation))

    async def turn(self, conversation: str) -> None:
        await self._read(conversation)
        await self._add(conversation, ModelMessagesTypeAdapter.dump_json(MESSAGES))

    async def fill(self, conversation: str, turns: int) -> None:
        rows = [(conversation, ModelMessagesTypeAdapter.dump_json(MESSAGES))] * turns
        sql = "INSERT INTO messages (conversation, message_list) VALUES (?, ?)"
        await self._in_thread(self.connection.executemany, sql, rows)
        await self._in_thread(self.connection.commit)

    async def run(self, conversation: str, answer: Answer) -> None:
        result = await agent(answer).run(PROMPT, message_history=await self._read(conversation))
        await self._add(conversation, result.new_messages_json())

    async def stored(self, conversation: str) -> list[str]:
        return kinds(await self._read(conversation))

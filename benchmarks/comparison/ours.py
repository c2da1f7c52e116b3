"""firefly-memory: turns with a window, and pydantic-ai's ConversationStore on the same database."""

from __future__ import annotations

import asyncio

from benchmarks.comparison.contender import BUDGET, Answer, Contender
from benchmarks.comparison.pydantic_ai_stores import OfConversationStore
from benchmarks.comparison.pydantic_ai_turns import agent, kinds
from benchmarks.one_turn import ANSWER, MESSAGES, PROMPT
from firefly_memory import MemoryManager, PostgreSQLStore, SQLiteStore
from firefly_memory.agents import Memory, SQLConversationStore

PACKAGE = "firefly-memory"
_AT_ONCE = 128  # turns that share a flush


class _Turns(Contender):
    name = "firefly-memory, `Memory`"
    package = PACKAGE
    reads = "a window of 4,000 tokens"
    store: SQLiteStore | PostgreSQLStore

    def new_store(self) -> SQLiteStore | PostgreSQLStore:
        raise NotImplementedError

    async def open(self, *, create: bool = True) -> None:
        self.store = self.new_store()
        self.manager = MemoryManager(store=self.store, max_conversation_tokens=BUDGET)

    async def close(self) -> None:
        await self.store.close()

    async def load(self, conversation: str) -> int:
        return len(await self.manager.conversation.async_get_message_history(conversation))

    async def turn(self, conversation: str) -> None:
        await self.load(conversation)
        await self.manager.conversation.async_add_turn(conversation, PROMPT, ANSWER, MESSAGES)

    async def fill(self, conversation: str, turns: int) -> None:
        added = self.manager.conversation.async_add_turn
        for start in range(0, turns, _AT_ONCE):
            count = min(_AT_ONCE, turns - start)
            await asyncio.gather(*[added(conversation, PROMPT, ANSWER, MESSAGES) for _ in range(count)])

    async def run(self, conversation: str, answer: Answer) -> None:
        await agent(answer, [Memory(self.manager)]).run(PROMPT, conversation_id=conversation)

    async def stored(self, conversation: str) -> list[str]:
        return kinds(await self.manager.conversation.async_get_message_history(conversation, 10_000_000))


class OursOnSQLite(_Turns):
    backend = "sqlite"

    def new_store(self) -> SQLiteStore:
        return SQLiteStore(self.place.path)


class OursOnPostgreSQL(_Turns):
    backend = "postgresql"

    def new_store(self) -> PostgreSQLStore:
        return PostgreSQLStore(self.place.postgresql_url)


class _History(OfConversationStore):
    name = "firefly-memory, `SQLConversationStore`"
    package = PACKAGE

    async def open(self, *, create: bool = True) -> None:
        place = self.place
        self.database = SQLiteStore(place.path) if self.backend == "sqlite" else PostgreSQLStore(place.postgresql_url)
        self.conversations = SQLConversationStore(self.database)

    async def close(self) -> None:
        await self.database.close()


class OurHistoryOnSQLite(_History):
    backend = "sqlite"


class OurHistoryOnPostgreSQL(_History):
    backend = "postgresql"

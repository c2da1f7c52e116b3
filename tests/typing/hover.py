"""What an editor shows for public names: a part of the docstring is behind each name."""

from __future__ import annotations

from firefly_memory import (
    ABSENT,  # shows: there is to be no value
    ConversationMemory,  # shows: Conversations by id
    MemoryEntry,  # shows: One remembered value.
    MemoryManager,  # shows: shortcuts to what is used most
    SQLiteStore,  # shows: Entries in an SQLite file
    StoreClosedError,  # shows: The store was used after
    connect,  # shows: Open the store that
)
from firefly_memory.agents import (
    FireflyAgent,  # shows: with the capability
    Memory,  # shows: the agent remembers
)
from firefly_memory.database_store import PostgreSQLStore  # shows: Entries in a PostgreSQL database
from firefly_memory.erasure import async_erase  # shows: Delete everything of the person
from firefly_memory.retention import async_prune  # shows: Delete the conversations that are out of bounds
from firefly_memory.service import async_list  # shows: rows, from the start or from

manager = MemoryManager(store=connect("memory:"))
agent = FireflyAgent(name="assistant", memory=manager)
memory = Memory(manager)
stores = SQLiteStore("memory.db"), PostgreSQLStore("postgresql://host/name")
names = ABSENT, ConversationMemory, MemoryEntry, StoreClosedError, async_erase, async_prune, async_list

members = (
    manager.add_turn,  # shows: Append a turn, durably
    manager.async_add_turn,  # shows: Append a turn, durably
    manager.async_set_fact,  # shows: Remember
    manager.async_close,  # shows: Give back
    manager.conversation.async_get_window,  # shows: with a receipt
    manager.working.async_compare_and_set,  # shows: if it still has the value
    stores[0].async_save,  # shows: replacing the one with its
    stores[0].async_cleanup_expired,  # shows: Delete expired entries
    stores[1].initialize_sync,  # shows: bring the schema up to date
    agent.tool_plain,  # shows: Decorator to register a tool function
    agent.remembering,  # shows: with this agent's options
)

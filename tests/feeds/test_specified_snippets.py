"""The snippets of the specification run as they are written there, with the imports of this library."""

from __future__ import annotations

import inspect
import sqlite3
from typing import Any

import pytest

from firefly_memory.feeds import base_store, message_builder
from firefly_memory.feeds.configuration.loading import load_memory
from firefly_memory.feeds.history_filters import HistoryFilter
from firefly_memory.feeds.memories import BaseMemory, InMemoryMemory, MessageStoreMemory, SharedInMemoryMemory
from firefly_memory.feeds.memories.shared_state import STATE_OF_THE_PROCESS, SharedStateStore
from firefly_memory.feeds.message_stores import InMemoryMessageStore
from tests.support.specified_snippets import complete_example, executed, literals, snippets

TASK = {"type": "task", "content": "Analyze", "agent_key": "worker_1"}


async def test_the_interface_of_memories_is_the_specified_one() -> None:
    (snippet,) = snippets("BaseMemory Interface")
    specified = (await executed(snippet))["BaseMemory"]
    assert specified.__abstractmethods__ == BaseMemory.__abstractmethods__ == {"add", "get_history"}
    assert all(map(inspect.iscoroutinefunction, (specified.add, BaseMemory.add)))


async def test_a_memory_has_what_was_added() -> None:
    (snippet,) = snippets("InMemoryMemory")
    assert (await executed(snippet))["history"] == [{"type": "user_message", "content": "Hello"}]


async def test_agents_of_a_namespace_share_their_messages() -> None:
    (snippet,) = snippets("SharedInMemoryMemory")
    try:
        names = await executed(snippet)
        assert names["history"] == [{"type": "observation", "content": "Found 5 tables"}]
        update = {"type": "global_observation", "content": "Shared update"}
        for memory in (names["memory1"], names["memory2"]):
            assert await memory.get_history() == [*names["history"], update]
    finally:
        await STATE_OF_THE_PROCESS.clear("job_123")


class _Database:
    """The snippet's database, whose queries it does not say."""

    def query(self, _: Any) -> list[dict[str, Any]]:
        return [TASK]


async def test_a_memory_reads_from_a_store_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_store.BaseMessageStore, "db", _Database(), raising=False)
    (snippet,) = snippets("MessageStoreMemory")
    assert (await executed(snippet))["history"] == [TASK]
    (snippet,) = snippets("HierarchicalMessageStoreMemory")
    store = InMemoryMessageStore()
    store.append("job_123", {"type": "user_message", "content": "not the manager's"})
    for key in ("worker_1", "nobody's worker", "worker_3", "manager"):
        store.append("job_123", TASK | {"agent_key": key})
    seen = (await executed(snippet, store=store))["history"]
    assert [each["agent_key"] for each in seen] == ["manager", "worker_1", "worker_3"]


async def test_the_shared_state_has_the_methods_of_the_sketch() -> None:
    (snippet,) = snippets("Async-Safe SharedStateStore")
    sketch = (await executed(snippet))["SharedStateStore"]()
    for state in (sketch, SharedStateStore()):
        await state.append_agent_msg("job_123", "worker_1", TASK)
        assert await state.list_agent_msgs("job_123", "worker_1") == [TASK]
        assert await state.list_agent_msgs("job_123", "worker_2") == await state.list_agent_msgs("x", "worker_1") == []


FORMATS = ["Conversation Types", "Execution Trace Types", "Completion Types", "Planning Types"]
FORMATTED = [message for heading in FORMATS for message in literals(snippets(heading)[0])]


async def test_each_specified_message_is_made_by_the_builder_and_kept_by_every_store(
    any_store: Any, location: str
) -> None:
    for number, message in enumerate(FORMATTED):
        create = getattr(message_builder, f"create_{message['type']}")
        made = create(**{name: value for name, value in message.items() if name != "type"})
        assert made == {"timestamp": made["timestamp"], **message}
        of_one = MessageStoreMemory(any_store, f"{location}, {number}", "worker_1")
        await of_one.add(made)
        assert await of_one.get_history() == [{"agent_key": "worker_1", **made}]


def test_every_specified_message_has_a_type_of_its_own() -> None:
    assert len({each["type"] for each in FORMATTED}) == len(FORMATTED) == 11


async def test_a_store_over_an_sql_database_is_read() -> None:
    (snippet,) = snippets("BaseMessageStore Interface")
    # The store's methods are called in a worker thread.
    database = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        database.row_factory = lambda cursor, row: dict(
            zip([name for name, *_ in cursor.description], row, strict=True)
        )
        columns = "location, type, agent_key, is_global, content, timestamp"
        database.execute(f"CREATE TABLE messages ({columns})")
        rows = [
            ("job_123", "observation", "worker_1", False, "own", 3),
            ("job_123", "user_message", None, False, "question", 4),
            ("job_123", "observation", "worker_2", True, "for all", 1),
            ("job_123", "observation", "worker_2", False, "another's", 2),
            ("job_4", "observation", "worker_1", True, "elsewhere", 0),
        ]
        database.executemany(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?, ?, ?)", rows)
        store = (await executed(snippet))["DatabaseMessageStore"](database)
        memory = MessageStoreMemory(store, "job_123", "worker_1")
        assert [each["content"] for each in await memory.get_history()] == ["question", "own", "for all"]
        assert not memory.writable
    finally:
        database.close()


async def test_the_builder_makes_messages() -> None:
    (snippet,) = snippets("Message Builder Utilities")
    names = await executed(snippet)
    made = [names[name] for name in ("user_msg", "task", "observation")]
    assert [(each["type"], each["content"], each.get("agent_key")) for each in made] == [
        ("user_message", "List all tables", None),
        ("task", "Analyze the model", "worker_1"),
        ("observation", {"tables": [...]}, "worker_1"),
    ]
    assert all(each["timestamp"].endswith("+00:00") for each in made)


async def test_each_configuration_gives_its_memory() -> None:
    (snippet,) = snippets("Memory in YAML Configuration")
    store = InMemoryMessageStore()
    documents = [f"memory:{text}" for text in snippet.split("memory:")[1:]]
    simple, shared, stored = [load_memory(text, {"JOB_ID": "job_123"}, {}, store) for text in documents]
    assert type(simple) is InMemoryMemory
    assert type(shared) is SharedInMemoryMemory
    assert (shared.namespace, shared.agent_key) == ("job_123", "worker_1")
    assert type(stored) is MessageStoreMemory
    assert (stored.location, stored.agent_key, stored.message_store) == ("job_123", "worker_1", store)


async def test_the_filters_of_all_roles_are_made() -> None:
    (snippet,) = snippets("History Filtering")
    names = await executed(snippet)
    filters = [names[name] for name in ("orch_filter", "manager_filter", "worker_filter")]
    assert all(isinstance(each, HistoryFilter) for each in filters)
    assert names["orch_filter"].max_conversation_turns == 10


async def test_memories_of_before_become_async() -> None:
    calls, classes = [each.partition("# After (async)\n")[2] or each for each in snippets("Migration Guide")]
    memory = InMemoryMemory()
    assert (await executed(calls, memory=memory))["history"] == [{"type": "task", "content": "..."}]
    own = (await executed(classes, BaseMemory=BaseMemory))["MyMemory"]()
    own.store = []
    await own.add_many([TASK, TASK])
    assert await own.get_history() == [TASK, TASK]


async def test_the_complete_example_has_a_store_and_a_memory() -> None:
    names = await complete_example()
    await names["memory"].add({"type": "task", "content": "Greet Alice"})
    greeting = {"type": "task", "content": "Greet Alice", "agent_key": "worker_1"}
    assert await names["memory"].get_history() == names["store"].messages["job_123"] == [greeting]

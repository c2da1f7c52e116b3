"""The memories of agents on message stores: the library's on every backend, and those of users."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import Any

import pytest

from firefly_memory import TokenEstimator
from firefly_memory.errors import (
    ConflictError,
    InvalidEntryError,
)
from firefly_memory.feeds.memories import HierarchicalMessageStoreMemory, MessageStoreMemory
from firefly_memory.feeds.message_stores import InMemoryMessageStore as OurInMemoryMessageStore
from firefly_memory.feeds.message_stores import StoredMessages
from tests.support.event_loops import each_in_its_own_loop
from tests.support.users_message_stores import (
    RecordingStore,
)

Message = dict[str, Any]


async def add(store: Any, location: str, key: str, *messages: Message) -> None:
    memory = MessageStoreMemory(store, location, key)
    for message in messages:
        await memory.add(message)


async def contents(memory: MessageStoreMemory | HierarchicalMessageStoreMemory) -> list[Any]:
    return [message["content"] for message in await memory.get_history()]


async def a_job(store: Any, location: str) -> None:
    """The messages of three agents, in an order in which no block is at once."""
    await add(store, location, "two", {"type": "global_observation", "is_global": True, "content": "for all, by two"})
    await add(store, location, "one", {"type": "task", "content": "task of one"})
    await add(store, location, "user", {"type": "user_message", "content": "question"})
    await add(store, location, "three", {"type": "observation", "content": "trace of three"})
    await add(store, location, "two", {"type": "action", "content": "call of two"})
    await add(store, location, "chief", {"type": "synthesis", "content": "note of chief"})
    await add(store, location, "one", {"type": "global_observation", "is_global": True, "content": "for all, by one"})
    await add(store, location, "assistant", {"type": "assistant_message", "content": "answer"})
    await add(store, location, "two", {"type": "observation", "content": "result of two"})
    await add(store, f"{location}, another", "one", {"type": "task", "content": "elsewhere"})


# Who sees what.


@pytest.mark.parametrize("role", ["worker", "orchestrator"])
async def test_workers_and_orchestrators_see_conversation_then_own_then_global_messages(
    any_store: Any, location: str, role: str
) -> None:
    await a_job(any_store, location)
    key = "one" if role == "worker" else "orchestrator"
    own = ["task of one", "for all, by one"] if role == "worker" else []
    rest = [] if role == "worker" else ["for all, by one"]
    expected = ["question", "answer", *own, "for all, by two", *rest]
    assert await contents(MessageStoreMemory(any_store, location, key)) == expected


async def test_a_manager_sees_own_then_subordinates_then_global_messages(any_store: Any, location: str) -> None:
    await a_job(any_store, location)
    chief = HierarchicalMessageStoreMemory(any_store, location, "chief", ["two", "three", "chief", "two"])
    of_team = ["for all, by two", "trace of three", "call of two", "result of two"]
    assert await contents(chief) == ["note of chief", *of_team, "for all, by one"]
    assert chief.subordinates == ("two", "three")


async def test_a_manager_of_nobody_sees_own_and_global_messages(any_store: Any, location: str) -> None:
    await a_job(any_store, location)
    alone = HierarchicalMessageStoreMemory(any_store, location, "chief")
    assert await contents(alone) == ["note of chief", "for all, by two", "for all, by one"]


async def test_an_unknown_location_has_no_history(any_store: Any, location: str) -> None:
    assert await MessageStoreMemory(any_store, location, "one").get_history() == []
    assert await HierarchicalMessageStoreMemory(any_store, location, "one", ["two"]).get_history() == []


async def test_equal_messages_are_listed_as_often_as_they_were_added(any_store: Any, location: str) -> None:
    for _ in range(2):
        await add(any_store, location, "one", {"type": "user_message", "content": "again", "is_global": True})
    assert await contents(MessageStoreMemory(any_store, location, "one")) == ["again", "again"]
    assert await contents(HierarchicalMessageStoreMemory(any_store, location, "chief", ["one"])) == ["again", "again"]


# What is added.


async def test_a_message_gets_the_key_of_the_agent_if_it_has_none(any_store: Any, location: str) -> None:
    memory = MessageStoreMemory(any_store, location, "one")
    messages: list[Message] = [{"content": 1}, {"content": 2, "agent_key": None}, {"content": 3, "agent_key": "two"}]
    for message in messages:
        await memory.add(message)
    assert messages == [{"content": 1}, {"content": 2, "agent_key": None}, {"content": 3, "agent_key": "two"}]
    team = HierarchicalMessageStoreMemory(any_store, location, "one", ["two"])
    assert await team.get_history() == [
        {"content": 1, "agent_key": "one"},
        {"content": 2, "agent_key": "one"},
        {"content": 3, "agent_key": "two"},
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "no type"},
        {"type": None, "content": {"deep": [1, {"er": None}]}},
        {"type": ["odd"], "is_global": "perhaps", "content": 1.5},
        {"type": "observation", "content": "x" * 1_000_000},
        {"": "empty key", "$where": 1, "a.b": "\x00 \ud800", "content": 2**70},
    ],
    ids=["no type", "None", "odd", "long", "keys"],
)
async def test_a_message_is_given_back_equal(any_store: Any, location: str, message: Message) -> None:
    await add(any_store, location, "one", message)
    history = await MessageStoreMemory(any_store, location, "one").get_history()
    assert {**message, "agent_key": "one"} in history


async def test_what_callers_change_changes_nothing(any_store: Any, location: str) -> None:
    memory = MessageStoreMemory(any_store, location, "one")
    message = {"type": "task", "content": {"rows": [1]}}
    await memory.add(message)
    for changed in (message, *(await memory.get_history())):
        changed["content"]["rows"].append(2)
    assert await contents(memory) == [{"rows": [1]}]


@pytest.mark.parametrize("message", [None, "text", ["a"], MappingProxyType({})])
async def test_what_is_no_dict_is_refused(any_store: Any, location: str, message: Any) -> None:
    memory = MessageStoreMemory(any_store, location, "one")
    with pytest.raises(InvalidEntryError, match="message: must be a dict"):
        await memory.add(message)
    assert await memory.get_history() == []


@pytest.mark.parametrize(
    ("content", "path"), [({"rows": [object()]}, r"message\['content'\]\['rows'\]\[0\]"), (float("nan"), "message")]
)
async def test_content_that_is_not_json_is_refused_before_anything_is_written(
    message_store: StoredMessages, location: str, content: Any, path: str
) -> None:
    memory = MessageStoreMemory(message_store, location, "one")
    with pytest.raises(InvalidEntryError, match=path):
        await memory.add({"type": "observation", "content": content})
    assert await memory.get_history() == []
    assert await message_store.async_get_items(location) == []


async def test_messages_that_are_added_together_get_the_key_of_the_agent(any_store: Any, location: str) -> None:
    memory = MessageStoreMemory(any_store, location, "one")
    await memory.add_many({"content": number} for number in range(3))
    await memory.add_many([])
    assert await memory.get_history() == [{"content": number, "agent_key": "one"} for number in range(3)]


async def test_messages_are_added_together_or_not_at_all(message_store: StoredMessages, location: str) -> None:
    memory = MessageStoreMemory(message_store, location, "one")
    with pytest.raises(InvalidEntryError, match=r"messages\[1\]\['content'\]"):
        await memory.add_many([{"content": 0}, {"content": object()}])
    wrong: Any = "no dict"
    with pytest.raises(InvalidEntryError, match=r"messages\[1\]: must be a dict"):
        await memory.add_many([{"content": 0}, wrong])
    assert await message_store.async_get_items(location) == []


async def test_many_agents_add_at_once_and_lose_nothing(any_store: Any, location: str) -> None:
    memories = [MessageStoreMemory(any_store, location, f"agent {number}") for number in range(10)]
    await asyncio.gather(*(memory.add({"content": number}) for number in range(10) for memory in memories))
    for memory in memories:
        assert sorted(await contents(memory)) == [*range(10)]


async def test_the_owner_of_a_location_is_the_one_that_the_memory_names(
    message_store: StoredMessages, location: str
) -> None:
    await MessageStoreMemory(message_store, location, "one", owner="Ada").add({"content": 1})
    await MessageStoreMemory(message_store, location, "two").add({"content": 2})
    stranger = HierarchicalMessageStoreMemory(message_store, location, "one", owner="Bob")
    with pytest.raises(ConflictError, match="has another owner than 'Bob'"):
        await stranger.add({"content": 3})
    assert len(await message_store.async_get_items(location)) == 2


async def test_several_event_loops_and_threads_use_one_memory(any_store: Any, location: str) -> None:
    memory = MessageStoreMemory(any_store, location, "one")

    async def write(key: int) -> None:
        for number in range(10):
            await memory.add({"content": key * 100 + number})

    await each_in_its_own_loop(*map(write, range(3)))
    found = await contents(memory)
    for key in range(3):
        assert [content for content in found if content // 100 == key] == [key * 100 + n for n in range(10)]


# The bound.


@pytest.mark.parametrize("hierarchical", [False, True])
async def test_a_history_has_at_most_max_tokens(any_store: Any, location: str, hierarchical: bool) -> None:
    for number in range(40):
        await add(any_store, location, "one", {"type": "user_message", "content": f"said {number}"})
        await add(any_store, location, "two", {"type": "task", "content": f"task {number}"})
    if hierarchical:
        memory: Any = HierarchicalMessageStoreMemory(any_store, location, "two", ["one"], max_tokens=300)
    else:
        memory = MessageStoreMemory(any_store, location, "two", max_tokens=300)
    history = await memory.get_history()
    assert 250 < TokenEstimator().estimate_messages(history) <= 300
    for word, key in (("said", "one"), ("task", "two")):
        block = [message["content"] for message in history if message["agent_key"] == key]
        assert block == [f"{word} {number}" for number in range(40 - len(block), 40)]
        assert len(block) >= 4


async def test_with_a_budget_no_more_is_read_than_it_may_take(location: str) -> None:
    store = RecordingStore()
    for number in range(3_000):
        message = {"content": f"a message {number}", "agent_key": "one" if number % 2 else "two"}
        store.append(location, message)
    memory = HierarchicalMessageStoreMemory(store, location, "one", ["two"], max_tokens=500)
    assert 0 < len(await memory.get_history()) < 50
    assert {(kind, limit) for kind, limit, _ in store.reads} == {
        *(("agent", limit) for limit in (16, 32, 64)),
        *(("team", limit) for limit in (16, 32, 64)),
        ("global", 16),
    }
    assert sum(found for _, _, found in store.reads) <= 2 * (16 + 32 + 64)


async def test_a_conversation_of_the_agent_itself_is_not_cut_for_its_second_listing(
    any_store: Any, location: str
) -> None:
    messages = [{"type": "user_message", "content": f"said {number}"} for number in range(10)]
    await add(any_store, location, "one", *messages)
    whole = MessageStoreMemory(any_store, location, "one")
    needed = TokenEstimator().estimate_messages(await whole.get_history())
    bounded = MessageStoreMemory(any_store, location, "one", max_tokens=needed)
    assert await bounded.get_history() == await whole.get_history()


# Arguments.


@pytest.mark.parametrize("name", ["", None, 5, "x" * 513])
def test_locations_keys_and_owners_are_texts_that_are_not_empty(name: Any) -> None:
    store = OurInMemoryMessageStore()
    with pytest.raises(InvalidEntryError, match="location"):
        MessageStoreMemory(store, name, "one")
    with pytest.raises(InvalidEntryError, match="agent_key"):
        MessageStoreMemory(store, "job", name)
    with pytest.raises(InvalidEntryError, match="subordinates"):
        HierarchicalMessageStoreMemory(store, "job", "one", [name])
    if name is not None:
        with pytest.raises(InvalidEntryError, match="owner"):
            MessageStoreMemory(store, "job", "one", owner=name)


def test_memories_show_where_they_belong_and_no_contents() -> None:
    store = OurInMemoryMessageStore()
    assert repr(MessageStoreMemory(store, "job", "one")) == "MessageStoreMemory(InMemoryMessageStore, 'job', 'one')"
    chief = HierarchicalMessageStoreMemory(store, "job", "chief", ["one"])
    assert repr(chief) == "HierarchicalMessageStoreMemory(InMemoryMessageStore, 'job', 'chief', ['one'])"

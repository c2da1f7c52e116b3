"""``SharedStateStore``: the messages that the agents of a process share."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from firefly_memory.errors import ConfigurationError, InvalidEntryError
from firefly_memory.feeds.memories import SharedInMemoryMemory, SharedStateStore
from firefly_memory.testing import stopped
from tests.support.event_loops import each_in_its_own_loop
from tests.support.forked_child import in_child


@pytest.fixture
def state() -> SharedStateStore:
    """A state that is made outside the event loop."""
    return SharedStateStore()


async def test_messages_of_an_agent_are_listed_in_the_order_of_arrival(state: SharedStateStore) -> None:
    for number in range(3):
        await state.append_agent_msg("job", "one", {"n": number})
        await state.append_agent_msg("job", "two", {"n": -number})
    assert await state.list_agent_msgs("job", "one") == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert await state.list_agent_msgs("other job", "one") == []


async def test_the_messages_of_a_team_are_listed_in_the_order_of_arrival(state: SharedStateStore) -> None:
    for number, key in enumerate(["b", "a", "c", "a", "b"]):
        await state.append_agent_msg("job", key, {"n": number})
    assert await state.list_team_msgs("job", ["a", "b", "a", "nobody"]) == [{"n": 0}, {"n": 1}, {"n": 3}, {"n": 4}]
    assert await state.list_team_msgs("job", []) == []


async def test_global_updates_are_not_among_the_messages_of_an_agent(state: SharedStateStore) -> None:
    await state.append_global_update("job", {"type": "global_observation", "agent_key": "one"})
    assert await state.list_global_updates("job") == [{"type": "global_observation", "agent_key": "one"}]
    assert await state.list_agent_msgs("job", "one") == []


@pytest.mark.parametrize("message", [{"type": "global_observation"}, {"type": "task", "is_global": True}])
async def test_an_agent_s_message_for_every_agent_is_a_global_update_too(
    state: SharedStateStore, message: dict[str, Any]
) -> None:
    await state.append_agent_msg("job", "one", message)
    assert await state.list_global_updates("job") == await state.list_agent_msgs("job", "one") == [message]


async def test_a_turn_is_kept_with_its_role_and_the_time(state: SharedStateStore) -> None:
    with stopped(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)):
        await state.append_conversation_turn("job", "user", "Hello")
        await state.append_conversation_turn("job", "assistant", {"answer": 1})
    time = "2026-01-02T03:04:05+00:00"
    assert await state.list_conversation("job") == [
        {"role": "user", "content": "Hello", "timestamp": time},
        {"role": "assistant", "content": {"answer": 1}, "timestamp": time},
    ]


@pytest.mark.parametrize("role", ["system", "", None, ["user"]])
async def test_a_turn_of_another_role_is_refused(state: SharedStateStore, role: Any) -> None:
    with pytest.raises(ValueError, match="role: must be 'user' or 'assistant'"):
        await state.append_conversation_turn("job", role, "Hello")
    assert await state.list_namespaces() == []


async def test_reading_an_unknown_namespace_creates_nothing(state: SharedStateStore) -> None:
    await state.list_agent_msgs("unknown", "one")
    await state.list_global_updates("unknown")
    await state.list_conversation("unknown")
    await state.list_team_msgs("unknown", ["one"])
    await state.clear("unknown")
    await SharedInMemoryMemory("unknown", "one", state=state).get_history()
    assert await state.list_namespaces() == []


async def test_clearing_a_namespace_leaves_the_others(state: SharedStateStore) -> None:
    for namespace in ("one", "two", "three"):
        await state.append_global_update(namespace, {"in": namespace})
    await state.clear("two")
    assert await state.list_namespaces() == ["one", "three"]
    await state.clear()
    assert await state.list_namespaces() == []
    assert await state.list_global_updates("one") == []


async def test_the_oldest_messages_of_a_namespace_go_when_there_are_too_many() -> None:
    state = SharedStateStore(max_messages=4)
    await state.append_conversation_turn("job", "user", "first")
    await state.append_agent_msg("job", "one", {"n": 1})
    await state.append_global_update("job", {"n": 2})
    await state.append_agent_msg("other", "one", {"n": 0})
    await state.append_agent_msg("job", "two", {"n": 3})
    assert [turn["content"] for turn in await state.list_conversation("job")] == ["first"]
    await state.append_agent_msg("job", "one", {"n": 4})
    assert await state.list_conversation("job") == []
    assert await state.list_agent_msgs("job", "one") == [{"n": 1}, {"n": 4}]
    await state.append_agent_msg("job", "one", {"n": 5, "is_global": True})
    assert await state.list_agent_msgs("job", "one") == [{"n": 4}, {"n": 5, "is_global": True}]
    assert await state.list_agent_msgs("other", "one") == [{"n": 0}]
    await state.append_agent_msg("job", "one", {"n": 6})
    assert await state.list_global_updates("job") == [{"n": 5, "is_global": True}]


@pytest.mark.parametrize("most", [0, -1, True, "4", 1.5])
def test_a_bound_that_is_no_whole_number_is_refused(most: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_messages must be a whole number from 1 up"):
        SharedStateStore(max_messages=most)


@pytest.mark.parametrize("name", ["", None, 5, "x" * 513])
async def test_namespaces_and_keys_are_texts_that_are_not_empty(state: SharedStateStore, name: Any) -> None:
    with pytest.raises(ValueError, match="namespace"):
        await state.append_global_update(name, {})
    with pytest.raises(ValueError, match="agent_key"):
        await state.append_agent_msg("job", name, {})
    with pytest.raises(ValueError, match="agent_keys"):
        await state.list_team_msgs("job", [name])
    assert await state.list_namespaces() == []


async def test_one_text_is_no_team(state: SharedStateStore) -> None:
    with pytest.raises(InvalidEntryError, match="agent_keys: must be several keys"):
        await state.list_team_msgs("job", "one")


async def test_what_callers_change_changes_nothing_in_the_state(state: SharedStateStore) -> None:
    message: dict[str, Any] = {"content": {"rows": [1]}}
    content = ["Hello"]
    await state.append_agent_msg("job", "one", message)
    await state.append_global_update("job", message)
    await state.append_conversation_turn("job", "user", content)
    message["content"]["rows"].append(2)
    content.append("you")
    for _ in range(2):
        (own,) = await state.list_agent_msgs("job", "one")
        (for_all,) = await state.list_global_updates("job")
        (turn,) = await state.list_conversation("job")
        assert own == for_all == {"content": {"rows": [1]}}
        assert turn["content"] == ["Hello"]
        for listed in (own, for_all, turn):
            listed["content"] = "changed"


async def test_threads_with_event_loops_of_their_own_lose_nothing(state: SharedStateStore) -> None:
    threads, each = 8, 200

    async def write(key: str) -> None:
        memory = SharedInMemoryMemory("job", key, state=state)
        for number in range(each):
            await memory.add({"from": key, "n": number})
            if number % 50 == 0:
                await memory.get_history()

    await each_in_its_own_loop(*(write(str(at)) for at in range(threads)))
    history = await SharedInMemoryMemory("job", "late", state=state).get_history()
    assert len(history) == threads * each
    for at in range(threads):
        assert [message["n"] for message in history if message["from"] == str(at)] == [*range(each)]


def test_a_forked_child_has_a_state_of_its_own(state: SharedStateStore) -> None:
    asyncio.run(state.append_global_update("job", {"from": "parent"}))

    def child() -> None:
        asyncio.run(state.append_global_update("job", {"from": "child"}))
        assert len(asyncio.run(state.list_global_updates("job"))) == 2

    assert in_child(child) == 0
    assert asyncio.run(state.list_global_updates("job")) == [{"from": "parent"}]

"""The memories of agents in one process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from firefly_memory import TokenEstimator
from firefly_memory.errors import ConfigurationError, InvalidEntryError
from firefly_memory.feeds.memories import (
    BaseMemory,
    HierarchicalSharedMemory,
    InMemoryMemory,
    SharedInMemoryMemory,
    SharedStateStore,
)
from firefly_memory.feeds.memories.shared_state import STATE_OF_THE_PROCESS
from firefly_memory.testing import stopped
from tests.support.event_loops import each_in_its_own_loop

Messages = list[dict[str, Any]]

MAKERS: list[Callable[..., Any]] = [
    InMemoryMemory,
    lambda **options: SharedInMemoryMemory("job", "one", state=SharedStateStore(), **options),
    lambda **options: HierarchicalSharedMemory("job", "one", ["two"], state=SharedStateStore(), **options),
]
each_memory = pytest.mark.parametrize("make", MAKERS, ids=["own", "shared", "hierarchical"])


@pytest.fixture
def state() -> SharedStateStore:
    return SharedStateStore()


def shared(state: SharedStateStore, key: str) -> SharedInMemoryMemory:
    return SharedInMemoryMemory("job", key, state=state)


def manager(state: SharedStateStore, key: str, subordinates: Sequence[str]) -> HierarchicalSharedMemory:
    return HierarchicalSharedMemory("job", key, subordinates, state=state)


async def contents(memory: BaseMemory) -> list[Any]:
    return [message["content"] for message in await memory.get_history()]


# Who sees what.


async def test_the_messages_of_a_memory_are_private_to_it() -> None:
    one, other = InMemoryMemory(), InMemoryMemory()
    await one.add({"content": 1})
    await one.add({"content": 2})
    assert await contents(one) == [1, 2]
    assert await contents(other) == []


async def test_agents_of_a_namespace_share_what_they_add_in_the_order_of_arrival(state: SharedStateStore) -> None:
    one, two = shared(state, "one"), shared(state, "two")
    elsewhere = SharedInMemoryMemory("other job", "one", state=state)
    for number, memory in enumerate([one, two, two, one]):
        await memory.add({"content": number, "type": "observation"})
    await elsewhere.add({"content": "elsewhere"})
    assert await contents(one) == await contents(two) == [0, 1, 2, 3]
    assert await contents(elsewhere) == ["elsewhere"]


async def test_a_worker_sees_conversation_then_traces_then_global_messages(state: SharedStateStore) -> None:
    worker = shared(state, "one")
    await worker.add_global({"content": "for all"})
    await worker.add({"content": "trace"})
    with stopped(datetime(2026, 1, 2, tzinfo=UTC)):
        await state.append_conversation_turn("job", "user", "question")
        await state.append_conversation_turn("job", "assistant", "answer")
    time = "2026-01-02T00:00:00+00:00"
    assert await worker.get_history() == [
        {"type": "user_message", "content": "question", "timestamp": time},
        {"type": "assistant_message", "content": "answer", "timestamp": time},
        {"content": "trace"},
        {"content": "for all"},
    ]


async def test_a_manager_sees_its_notes_then_its_subordinates_then_global_messages(state: SharedStateStore) -> None:
    chief = manager(state, "chief", ["two", "one"])
    await shared(state, "one").add_global({"content": "for all"})
    for key, content in (("one", 1), ("two", 2), ("three", 3), ("one", 4)):
        await shared(state, key).add({"content": content})
    await chief.add({"content": "note"})
    await state.append_conversation_turn("job", "user", "question")
    assert await contents(chief) == ["note", 1, 2, 4, "for all"]


async def test_the_notes_of_a_manager_are_private(state: SharedStateStore) -> None:
    chief = manager(state, "chief", ["one"])
    await chief.add({"content": "note"})
    assert await contents(shared(state, "one")) == []
    assert await contents(shared(state, "chief")) == []
    assert await contents(manager(state, "other", ["one"])) == []
    assert await contents(manager(state, "director", ["chief"])) == ["note"]


async def test_everybody_sees_what_a_manager_says_to_all(state: SharedStateStore) -> None:
    chief = manager(state, "chief", ["one"])
    await chief.add({"type": "global_observation", "content": 1})
    await chief.add_global({"content": 2})
    for memory in (chief, shared(state, "one"), shared(state, "late"), manager(state, "other", [])):
        assert await contents(memory) == [1, 2]


async def test_a_latecomer_sees_global_messages(state: SharedStateStore) -> None:
    await shared(state, "one").add_global({"content": "for all"})
    late = shared(state, "late")
    assert await late.get_global_updates() == await late.get_history() == [{"content": "for all"}]


async def test_a_global_message_of_an_agent_is_listed_once_in_the_first_block(state: SharedStateStore) -> None:
    one = shared(state, "one")
    await one.add({"content": 1, "is_global": True})
    await one.add({"content": 2})
    assert await contents(one) == await contents(manager(state, "chief", ["one"])) == [1, 2]
    assert await contents(manager(state, "chief", [])) == [1]
    assert await one.get_global_updates() == [{"content": 1, "is_global": True}]


async def test_equal_messages_that_were_added_twice_are_listed_twice(state: SharedStateStore) -> None:
    one = shared(state, "one")
    await one.add({"content": "same"})
    await one.add({"content": "same"})
    await one.add_global({"content": "same"})
    assert await contents(one) == ["same"] * 3


async def test_a_manager_is_not_its_own_subordinate(state: SharedStateStore) -> None:
    chief = manager(state, "chief", ["one", "chief", "one"])
    await chief.add({"content": "note"})
    assert chief.subordinates == ("one",)
    assert await contents(chief) == ["note"]


async def test_memories_without_a_state_share_that_of_the_process() -> None:
    memory = SharedInMemoryMemory("a namespace of this test", "one")
    await memory.add({"content": 1})
    try:
        assert await contents(SharedInMemoryMemory("a namespace of this test", "two")) == [1]
        assert memory.state is STATE_OF_THE_PROCESS
    finally:
        await memory.state.clear("a namespace of this test")


# What is kept.


@dataclass
class Point:
    x: list[int]


class Stubborn:
    """Cannot be copied, and is equal to what has the same name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stubborn) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __deepcopy__(self, memo: object) -> Stubborn:
        raise TypeError("no copies")


class LoudDict(dict[str, Any]):
    """A dict whose methods lie."""

    def get(self, *_: object) -> Any:
        raise AssertionError("the memory asked a method that the caller wrote")


SAME_OBJECT = object()

MESSAGES: list[dict[Any, Any]] = [
    {},
    {"content": "without a type"},
    {"type": None},
    {"type": ["a", "list"], "is_global": "perhaps", "agent_key": {"not": "text"}},
    {"type": 5, "agent_key": ["a"]},
    {1: "one", None: "nothing", (1, 2): "pair", "": {2.5: b"bytes"}},
    {"content": {"when": datetime(2026, 1, 1, tzinfo=UTC), "set": {1, 2}, "point": Point([1]), "nan": float("inf")}},
    {"content": SAME_OBJECT, "lock": threading.Lock, "stubborn": [Stubborn("mule")]},
    {"content": "x" * 1_000_000},
    {"content": "\x00 \ud800 \U0001f600", "\x00": 1},
    OrderedDict(type="task", content=OrderedDict(b=1, a=2)),
    LoudDict(type="observation", content="loud"),
]


@each_memory
@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
async def test_any_dict_is_given_back_equal(make: Callable[..., BaseMemory], message: dict[Any, Any]) -> None:
    memory = make()
    await memory.add(message)
    (given_back,) = await memory.get_history()
    assert given_back == message
    assert type(given_back) is dict
    assert [*given_back] == [*message]


@each_memory
@pytest.mark.parametrize("message", [None, "text", ["a"], MappingProxyType({}), 5])
async def test_what_is_no_dict_is_refused(make: Callable[..., BaseMemory], message: Any) -> None:
    memory = make()
    with pytest.raises(InvalidEntryError, match="message: must be a dict"):
        await memory.add(message)
    assert await memory.get_history() == []


@each_memory
async def test_messages_can_be_added_together(make: Callable[..., BaseMemory]) -> None:
    memory = make()
    await memory.add_many({"content": number} for number in range(3))
    assert await contents(memory) == [0, 1, 2]


@each_memory
async def test_what_callers_change_changes_nothing(make: Callable[..., BaseMemory]) -> None:
    memory = make()
    message: dict[str, Any] = {"content": {"rows": [1], "pair": ([2],), "point": Point([3])}}
    await memory.add(message)
    for changed in (message, *(await memory.get_history())):
        changed["content"]["rows"].append(0)
        changed["content"]["pair"][0].append(0)
        changed["content"]["point"].x.append(0)
        changed["more"] = 1
    assert await memory.get_history() == [{"content": {"rows": [1], "pair": ([2],), "point": Point([3])}}]


@each_memory
async def test_a_message_that_contains_itself_is_refused(make: Callable[..., BaseMemory]) -> None:
    memory = make()
    message: dict[str, Any] = {"content": []}
    message["content"].append(message)
    with pytest.raises(InvalidEntryError, match="message: is nested deeper than 500 levels"):
        await memory.add(message)
    assert await memory.get_history() == []


@each_memory
async def test_deep_messages_are_kept(make: Callable[..., BaseMemory]) -> None:
    memory = make()
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    await memory.add({"content": deep})
    assert await memory.get_history() == [{"content": deep}]


async def test_one_memory_is_used_by_several_event_loops_and_threads_at_once() -> None:
    memory = InMemoryMemory()

    async def write(key: int) -> None:
        for number in range(300):
            await memory.add({"from": key, "n": number})
            if number % 100 == 0:
                await memory.get_history()

    await each_in_its_own_loop(*map(write, range(4)))
    history = await memory.get_history()
    for key in range(4):
        assert [message["n"] for message in history if message["from"] == key] == [*range(300)]


# Arguments.


@pytest.mark.parametrize("name", ["", None, 5, "x" * 513])
def test_namespaces_and_keys_are_texts_that_are_not_empty(name: Any) -> None:
    for make in (SharedInMemoryMemory, HierarchicalSharedMemory):
        with pytest.raises(ValueError, match="namespace"):
            make(name, "one")
        with pytest.raises(ValueError, match="agent_key"):
            make("job", name)
    with pytest.raises(ValueError, match="agent_key"):
        InMemoryMemory(name)
    with pytest.raises(ValueError, match="subordinates"):
        HierarchicalSharedMemory("job", "one", [name])


@pytest.mark.parametrize("subordinates", ["two", None, 5])
def test_subordinates_are_several_keys(subordinates: Any) -> None:
    with pytest.raises(InvalidEntryError, match="subordinates: must be several keys, in a list"):
        HierarchicalSharedMemory("job", "one", subordinates)


@each_memory
@pytest.mark.parametrize("most", [-1, True, "5", 1.5])
def test_a_bound_that_is_no_whole_number_is_refused(make: Callable[..., BaseMemory], most: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_tokens must be a whole number from 0 up"):
        make(max_tokens=most)


def test_other_things_than_a_state_or_an_estimator_are_refused() -> None:
    wrong: Any = {}
    with pytest.raises(ConfigurationError, match="state must be a SharedStateStore, not dict"):
        SharedInMemoryMemory("job", "one", state=wrong)
    with pytest.raises(ConfigurationError, match="estimator must be a TokenEstimator, not dict"):
        InMemoryMemory(estimator=wrong)


def test_a_wrong_keyword_is_answered_with_the_right_one() -> None:
    options: dict[str, Any] = {"token_limit": 5}
    with pytest.raises(TypeError, match="did you mean 'max_tokens'"):
        InMemoryMemory(**options)


def test_memories_show_where_they_belong() -> None:
    assert repr(InMemoryMemory()) == "InMemoryMemory('default')"
    assert repr(SharedInMemoryMemory("job", "one")) == "SharedInMemoryMemory('job', 'one')"
    chief = HierarchicalSharedMemory("job", "chief", ["one"])
    assert repr(chief) == "HierarchicalSharedMemory('job', 'chief', ['one'])"
    assert repr(SharedStateStore(5)) == "SharedStateStore(max_messages=5)"


async def test_a_memory_of_the_user_s_own_needs_two_methods() -> None:
    class MyMemory(BaseMemory):
        def __init__(self) -> None:
            self.store: Messages = []

        async def add(self, message: dict[str, Any]) -> None:
            self.store.append(message)

        async def get_history(self) -> Messages:
            return list(self.store)

    memory = MyMemory()
    await memory.add({"content": 1})
    assert memory.writable
    assert await memory.get_history() == [{"content": 1}]


# The bound.


@each_memory
async def test_a_history_has_at_most_max_tokens(make: Callable[..., Any]) -> None:
    memory = make(max_tokens=200)
    for number in range(100):
        await memory.add({"type": "observation", "content": f"observation {number}"})
    history = await memory.get_history()
    assert [message["content"] for message in history] == [f"observation {n}" for n in range(100 - len(history), 100)]
    assert 180 <= TokenEstimator().estimate_messages(history) <= 200


@each_memory
async def test_an_estimator_of_the_user_s_own_counts(make: Callable[..., Any]) -> None:
    class OneEach(TokenEstimator):
        def estimate_message(self, message: Any) -> int:
            return 1

    memory = make(max_tokens=3, estimator=OneEach())
    for number in range(100):
        await memory.add({"content": number})
    assert await contents(memory) == [97, 98, 99]


async def test_each_block_has_its_share_of_the_tokens(state: SharedStateStore) -> None:
    for number in range(50):
        await state.append_conversation_turn("job", "user", f"turn {number}")
        await state.append_agent_msg("job", "one", {"content": f"trace {number}"})
        await state.append_global_update("job", {"content": f"update {number}"})
    memory = SharedInMemoryMemory("job", "one", state=state, max_tokens=300)
    history = await memory.get_history()
    for kind in ("turn", "trace", "update"):
        block = [message for message in history if message["content"].startswith(kind)]
        assert block[-1]["content"] == f"{kind} 49"
        assert 60 < TokenEstimator().estimate_messages(block) <= 100


async def test_the_notes_of_a_bounded_state_and_a_bounded_history_are_the_newest() -> None:
    state = SharedStateStore(max_messages=3)
    memory = SharedInMemoryMemory("job", "one", state=state, max_tokens=10_000)
    for number in range(10):
        await memory.add({"content": number})
    assert await contents(memory) == [7, 8, 9]

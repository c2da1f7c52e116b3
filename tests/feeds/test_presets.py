"""A preset gives the memory of a role, in a namespace that no other job gets by accident."""

from __future__ import annotations

from typing import Any

import pytest

from firefly_memory import ConfigurationError
from firefly_memory.feeds.base_store import BaseMessageStore
from firefly_memory.feeds.configuration.presets import describe_preset, get_memory_preset, list_presets
from firefly_memory.feeds.memories import (
    BaseMemory,
    HierarchicalMessageStoreMemory,
    HierarchicalSharedMemory,
    InMemoryMemory,
    MessageStoreMemory,
    SharedInMemoryMemory,
)
from firefly_memory.feeds.message_stores import InMemoryMessageStore

WORKER: dict[str, Any] = {"agent_key": "worker_1"}
NOTE = {"type": "observation", "content": 1}


def namespace_of(memory: BaseMemory) -> str:
    assert isinstance(memory, (SharedInMemoryMemory, HierarchicalSharedMemory))
    return memory.namespace


def team_of(memory: BaseMemory) -> list[str]:
    assert isinstance(memory, (HierarchicalSharedMemory, HierarchicalMessageStoreMemory))
    return list(memory.subordinates)


def key_of(memory: BaseMemory) -> str:
    key = getattr(memory, "agent_key", None)
    assert isinstance(key, str)
    return key


# Which presets there are


def test_there_are_three_presets() -> None:
    assert list_presets() == ["standalone", "worker", "manager"]
    list_presets().clear()
    assert list_presets()


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("standalone", [InMemoryMemory]),
        ("worker", [SharedInMemoryMemory, MessageStoreMemory]),
        ("manager", [HierarchicalSharedMemory, HierarchicalMessageStoreMemory]),
    ],
)
def test_a_description_names_the_memories(name: str, classes: list[type]) -> None:
    assert all(f" {each.__name__}" in describe_preset(name) for each in classes)
    assert describe_preset(name.upper()) == describe_preset(name)


@pytest.mark.parametrize(
    ("name", "shown"), [("x", "'x'"), ("", "''"), ("work er", "'work er'"), (None, "None"), (1, "1"), ([], r"\[\]")]
)
def test_an_unknown_preset_is_refused(name: Any, shown: str) -> None:
    problem = rf"^Unknown memory preset: {shown}\. Available: standalone, worker, manager$"
    with pytest.raises(ValueError, match=problem):
        get_memory_preset(name, WORKER)
    with pytest.raises(ValueError, match=problem):
        describe_preset(name)


# Which memory a preset gives


@pytest.mark.parametrize(
    ("name", "without_store", "with_store"),
    [
        ("standalone", InMemoryMemory, InMemoryMemory),
        ("worker", SharedInMemoryMemory, MessageStoreMemory),
        ("manager", HierarchicalSharedMemory, HierarchicalMessageStoreMemory),
        ("Worker", SharedInMemoryMemory, MessageStoreMemory),
        ("MANAGER", HierarchicalSharedMemory, HierarchicalMessageStoreMemory),
    ],
)
def test_a_role_has_its_memory(name: str, without_store: type, with_store: type) -> None:
    assert type(get_memory_preset(name, WORKER, {})) is without_store
    assert type(get_memory_preset(name, WORKER, {}, InMemoryMessageStore())) is with_store


async def test_a_standalone_memory_is_private_also_with_a_store() -> None:
    store = InMemoryMessageStore()
    first, second = (get_memory_preset("standalone", {"namespace": "n"}, {}, store) for _ in range(2))
    await first.add(NOTE)
    assert [key_of(first), key_of(second)] == ["default", "default"]
    assert await second.get_history() == store.get_agent_messages("n", "default") == []
    assert len(await first.get_history()) == 1


async def test_a_manager_and_its_workers_share_a_location_of_the_store() -> None:
    store = InMemoryMessageStore()
    worker = get_memory_preset("worker", {"JOB_ID": "job_7", "agent_name": "Worker 1"}, {}, store)
    context = {"JOB_ID": "job_7", "agent_key": "boss", "subordinates": ["Worker-1"]}
    manager = get_memory_preset("manager", context, {}, store)
    other_job = get_memory_preset("manager", {**context, "JOB_ID": "job_8"}, {}, store)
    await worker.add(NOTE)
    assert store.get_agent_messages("job_7", "worker_1") == [NOTE | {"agent_key": "worker_1"}]
    assert [each["content"] for each in await manager.get_history()] == [1]
    assert await other_job.get_history() == []


class EmptyStore(BaseMessageStore):
    """A message store of one's own that is false, because it has no messages."""

    def __len__(self) -> int:
        return 0

    def get_conversation_messages(self, location: str, limit: int | None = None) -> list[Any]:
        return []

    def get_agent_messages(self, location: str, agent_key: str, limit: int | None = None) -> list[Any]:
        return []

    def get_global_messages(self, location: str, limit: int | None = None) -> list[Any]:
        return []

    def get_team_messages(self, location: str, agent_keys: Any, limit: int | None = None) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("name", "kind"), [("worker", MessageStoreMemory), ("manager", HierarchicalMessageStoreMemory)]
)
def test_a_store_without_messages_is_a_store(name: str, kind: type) -> None:
    assert type(get_memory_preset(name, WORKER, {}, EmptyStore())) is kind


# The key of the agent


@pytest.mark.parametrize("preset", ["standalone", "worker", "manager"])
@pytest.mark.parametrize(
    ("context", "key"),
    [
        ({"agent_key": "worker_1"}, "worker_1"),
        ({"agent_key": "Data-Team One"}, "data_team_one"),
        ({"agent_name": "Schema Analyst"}, "schema_analyst"),
        ({"agent_key": "k", "agent_name": "n"}, "k"),
        ({"agent_key": None, "agent_name": "n"}, "n"),
    ],
)
def test_the_key_of_the_agent_comes_from_the_context(preset: str, context: dict[str, Any], key: str) -> None:
    assert key_of(get_memory_preset(preset, context, {})) == key


@pytest.mark.parametrize("preset", ["worker", "manager"])
@pytest.mark.parametrize("context", [None, {}, {"agent_key": None}, {"namespace": "n"}])
def test_an_agent_of_a_team_needs_a_key(preset: str, context: Any) -> None:
    with pytest.raises(
        ValueError, match=f"^the preset '{preset}' needs the key of its agent: give agent_key or agent_name$"
    ):
        get_memory_preset(preset, context, {})


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        ({"agent_key": ""}, "agent_key must be text that is not empty, not empty text"),
        ({"agent_key": " ", "agent_name": "n"}, "agent_key must be text that is not empty, not empty text"),
        ({"agent_name": 3}, "agent_name must be text that is not empty, not int"),
        (WORKER | {"namespace": ""}, "namespace must be text that is not empty, not empty text"),
        (WORKER | {"namespace": 3}, "namespace must be text that is not empty, not int"),
        (WORKER | {"JOB_ID": ""}, "JOB_ID must be text that is not empty, not empty text"),
        (WORKER | {"JOB_ID": True}, "JOB_ID in the context must be text or a whole number, not bool"),
        (WORKER | {"JOB_ID": ["j"]}, "JOB_ID in the context must be text or a whole number, not list"),
        (WORKER | {"subordinates": "worker_2"}, "subordinates must be a list of agent keys, not str"),
        (WORKER | {"subordinates": ["a", ""]}, "subordinates[1] must be text that is not empty, not empty text"),
        (WORKER | {"subordinates": [1]}, "subordinates[0] must be text that is not empty, not int"),
        ("worker_1", "context must be a mapping or None, not str"),
    ],
)
def test_a_context_that_cannot_be_used_is_refused(context: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        get_memory_preset("manager", context, {"JOB_ID": "j"})
    assert str(caught.value) == problem


def test_an_environment_that_is_no_mapping_is_refused() -> None:
    wrong: Any = ["JOB_ID=j"]
    with pytest.raises(ConfigurationError, match="env must be a mapping or None, not list"):
        get_memory_preset("worker", WORKER, wrong)


# The namespace


@pytest.mark.parametrize("preset", ["worker", "manager"])
@pytest.mark.parametrize(
    ("context", "env", "namespace"),
    [
        ({"namespace": "n", "JOB_ID": "c"}, {"JOB_ID": "e"}, "n"),
        ({"namespace": "Given-Name"}, {}, "Given-Name"),
        ({"JOB_ID": "c"}, {"JOB_ID": "e"}, "c"),
        ({"JOB_ID": 17}, {"JOB_ID": "e"}, "17"),
        ({"JOB_ID": 0}, {"JOB_ID": "e"}, "0"),
        ({"namespace": None, "JOB_ID": None}, {"JOB_ID": "e"}, "e"),
        ({}, {"JOB_ID": "e"}, "e"),
        ({}, {"JOB_ID": ""}, "default"),
        ({}, {}, "default"),
    ],
)
def test_the_namespace_is_the_first_that_is_given(preset: str, context: Any, env: Any, namespace: str) -> None:
    assert namespace_of(get_memory_preset(preset, WORKER | context, env)) == namespace


def test_without_env_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_ID", "of_the_process")
    assert namespace_of(get_memory_preset("worker", WORKER)) == "of_the_process"
    assert namespace_of(get_memory_preset("worker", WORKER, {})) == "default"
    monkeypatch.delenv("JOB_ID")
    assert namespace_of(get_memory_preset("worker", WORKER)) == "default"


# The team


def test_subordinates_are_keys() -> None:
    context = WORKER | {"subordinates": ("Worker-2", "worker 3")}
    assert team_of(get_memory_preset("manager", context, {})) == ["worker_2", "worker_3"]
    assert team_of(get_memory_preset("manager", WORKER, {})) == []
    assert team_of(get_memory_preset("manager", context, {}, InMemoryMessageStore())) == ["worker_2", "worker_3"]


def test_what_else_the_context_has_is_not_read() -> None:
    """A context of a job may have a budget of the model, and an owner of something else."""
    context = WORKER | {"max_tokens": "many", "owner": 3, "type": []}
    memory = get_memory_preset("worker", context, {})
    assert isinstance(memory, SharedInMemoryMemory)
    assert memory.max_tokens is None

"""A memory is made as YAML says, or refused with what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from firefly_memory import ConflictError
from firefly_memory.feeds.memories import (
    HierarchicalMessageStoreMemory,
    HierarchicalSharedMemory,
    InMemoryMemory,
    MessageStoreMemory,
    SharedInMemoryMemory,
)
from firefly_memory.feeds.message_stores import InMemoryMessageStore
from tests.support.memory_configuration import facts, load, problem

# The types


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("memory:\n  type: InMemoryMemory\n", InMemoryMemory, {"agent_key": "default"}),
        ("memory:\n  type: InMemoryMemory\n  config:\n", InMemoryMemory, {"agent_key": "default"}),
        (
            "memory:\n  type: InMemoryMemory\n  config: {agent_key: A-b, max_tokens: 9}\n",
            InMemoryMemory,
            {"agent_key": "A-b", "max_tokens": 9},
        ),
        (
            "memory:\n  type: SharedInMemoryMemory\n  config:\n    namespace: ${JOB_ID}\n    agent_key: worker_1\n",
            SharedInMemoryMemory,
            {"namespace": "job_7", "agent_key": "worker_1"},
        ),
        (
            (
                "memory:\n  type: HierarchicalSharedMemory\n"
                "  config: {namespace: n, agent_key: m, subordinates: [w-1, '${JOB_ID}'], max_tokens: null}\n"
            ),
            HierarchicalSharedMemory,
            {"namespace": "n", "agent_key": "m", "subordinates": ["w-1", "job_7"]},
        ),
        (
            "memory:\n  type: HierarchicalSharedMemory\n  config: {namespace: n, agent_key: m}\n",
            HierarchicalSharedMemory,
            {"namespace": "n", "agent_key": "m", "subordinates": []},
        ),
    ],
)
def test_each_type_of_one_process_is_made(text: str, kind: type, expected: dict[str, Any]) -> None:
    memory = load(text)
    assert type(memory) is kind
    assert facts(memory) == expected


async def test_a_memory_on_a_message_store_reads_and_writes_its_location() -> None:
    store = InMemoryMessageStore()
    memory = load(
        "memory:\n  type: MessageStoreMemory\n  config:\n    location: ${JOB_ID}\n    agent_key: worker_1\n",
        store=store,
    )
    assert type(memory) is MessageStoreMemory
    await memory.add({"type": "task", "content": "x"})
    assert [each["content"] for each in store.get_agent_messages("job_7", "worker_1")] == ["x"]
    manager = load(
        "memory:\n  type: HierarchicalMessageStoreMemory\n"
        "  config: {location: job_7, agent_key: m, subordinates: [worker_1], max_tokens: 4000}\n",
        store=store,
    )
    assert type(manager) is HierarchicalMessageStoreMemory
    assert [each["content"] for each in await manager.get_history()] == ["x"]
    assert facts(manager)["max_tokens"] == 4000


async def test_the_owner_of_a_location_comes_from_the_configuration() -> None:
    store = InMemoryMessageStore()
    for number, text in enumerate(
        (
            "memory: {type: MessageStoreMemory, config: {location: '0', agent_key: w, owner: ann}}",
            "memory: {$preset: worker, namespace: '1', agent_key: w, owner: ann}",
            "memory: {$preset: manager, namespace: '2', agent_key: w, owner: ann}",
        )
    ):
        await load(text, store=store).add({"content": number})
        store.append(str(number), {}, owner="ann")
        with pytest.raises(ConflictError):
            store.append(str(number), {}, owner="bob")


@pytest.mark.parametrize("name", ["MessageStoreMemory", "HierarchicalMessageStoreMemory"])
def test_a_memory_on_a_message_store_needs_one(name: str) -> None:
    text = f"memory: {{type: {name}, config: {{location: a, agent_key: b}}}}"
    assert problem(text) == f"memory: {name} needs a message store: load_memory(text, store=…)"


# Presets


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("memory: {$preset: standalone}", InMemoryMemory, {"agent_key": "default"}),
        ("memory: {$preset: Standalone, agent_key: A}", InMemoryMemory, {"agent_key": "a"}),
        (
            "memory: {$preset: '${ROLE}', agent_key: W-1}",
            SharedInMemoryMemory,
            {"namespace": "job_7", "agent_key": "w_1"},
        ),
        (
            "memory: {$preset: worker, agent_key: w, namespace: N-1, max_tokens: '${TOKENS}'}",
            SharedInMemoryMemory,
            {"namespace": "N-1", "agent_key": "w", "max_tokens": 500},
        ),
        (
            "memory: {$preset: '${NONE:-manager}', agent_key: m, subordinates: [W-1, '${ROLE}']}",
            HierarchicalSharedMemory,
            {"namespace": "job_7", "agent_key": "m", "subordinates": ["w_1", "worker"]},
        ),
    ],
)
def test_a_preset_is_made_with_its_overrides(text: str, kind: type, expected: dict[str, Any]) -> None:
    memory = load(text)
    assert type(memory) is kind
    assert facts(memory) == expected


def test_an_override_comes_before_the_context() -> None:
    context = {"agent_key": "c", "agent_name": "n", "namespace": "cn", "JOB_ID": "cj", "subordinates": ["cs"]}
    assert facts(load("memory: {$preset: manager}", context=context)) == {
        "namespace": "cn", "agent_key": "c", "subordinates": ["cs"]
    }  # fmt: skip
    text = "memory: {$preset: manager, agent_key: o, namespace: '${JOB_ID}', subordinates: []}"
    assert facts(load(text, context=context)) == {"namespace": "cj", "agent_key": "o", "subordinates": []}


def test_a_preset_takes_the_message_store() -> None:
    store = InMemoryMessageStore()
    assert type(load("memory: {$preset: worker, agent_key: w}", store=store)) is MessageStoreMemory
    assert type(load("memory: {$preset: manager, agent_key: w}", store=store)) is HierarchicalMessageStoreMemory
    assert type(load("memory: {$preset: standalone}", store=store)) is InMemoryMemory


# The document of an agent

AGENT = """
kind: Agent
metadata: {{name: Data Team}}
spec:
  memory: {memory}
  workers:
    - name: Worker-1
      role: "${{NOT_READ}}"
    - {{name: "${{ROLE}} 2"}}
"""


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("{$preset: standalone}", {"agent_key": "data_team"}),
        ("{$preset: worker}", {"namespace": "job_7", "agent_key": "data_team"}),
        ("{$preset: manager}", {"namespace": "job_7", "agent_key": "data_team", "subordinates": ["worker_1", "worker_2"]}),
        ("{$preset: manager, agent_key: m, subordinates: [x]}", {"namespace": "job_7", "agent_key": "m", "subordinates": ["x"]}),
        ("{type: InMemoryMemory}", {"agent_key": "data_team"}),
        ("{type: SharedInMemoryMemory, config: {namespace: n}}", {"namespace": "n", "agent_key": "data_team"}),
        (
            "{type: HierarchicalSharedMemory, config: {namespace: n}}",
            {"namespace": "n", "agent_key": "data_team", "subordinates": ["worker_1", "worker_2"]},
        ),
    ],
)  # fmt: skip
def test_an_agent_gives_its_key_and_its_workers(memory: str, expected: dict[str, Any]) -> None:
    text = AGENT.format(memory=memory)
    assert facts(load(text)) == expected
    assert facts(load(text, context={"agent_key": "of a job", "agent_name": "n"})) == expected


def test_memory_at_the_top_has_the_name_of_the_agent_beside_it() -> None:
    text = "metadata: {name: A B}\nmemory: {$preset: worker}"
    assert facts(load(text)) == {"namespace": "job_7", "agent_key": "a_b"}


def test_the_context_gives_the_key_if_the_document_does_not() -> None:
    for text in (
        "memory: {type: InMemoryMemory}",
        "memory: {$preset: standalone}",
        "metadata: {name: }\nmemory: {type: InMemoryMemory}",
    ):
        assert facts(load(text, context={"agent_name": "Worker 1"})) == {"agent_key": "worker_1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata: {name: 3}\nmemory: {$preset: worker}", "metadata.name: must be text, not int"),
        ("metadata: {name: '${NONE}'}\nmemory: {$preset: worker}", "metadata.name: the variable NONE is not set"),
        ("spec: {memory: {$preset: manager, agent_key: a}, workers: w}", "spec.workers: must be a list, not str"),
        ("spec: {memory: {$preset: manager, agent_key: a}, workers: [w]}", "spec.workers[0]: must be a mapping, and is a str"),
        ("spec: {memory: {$preset: manager, agent_key: a}, workers: [{name: b}, {}]}", "spec.workers[1].name: must be text, not NoneType"),
        ("spec: {memory: }", "spec.memory: must be a mapping, and is empty"),
        ("spec: {memory: {}}\nmemory: {}", "the configuration: has memory both at the top and in spec; keep one of them"),
        ("spec: [memory]", "the configuration: has neither memory at the top nor spec.memory"),
        ("spec: {memory: {type: SharedInMemoryMemory, config: {}}}", "spec.memory.config.namespace: is required"),
    ],
)  # fmt: skip
def test_a_document_of_an_agent_that_cannot_be_used_is_refused(text: str, expected: str) -> None:
    assert problem(text).startswith(expected)


# What is refused


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the configuration: must be a mapping, and is empty"),
        ("- memory", "the configuration: must be a mapping, and is a list"),
        ("memory", "the configuration: must be a mapping, and is a str"),
        ("a: 1", "the configuration: has neither memory at the top nor spec.memory"),
        ("memory:", "memory: must be a mapping, and is empty"),
        ("memory: worker", "memory: must be a mapping, and is a str"),
        ("memory: {}", "memory: needs type or $preset"),
        ("memory: {config: {}}", "memory: needs type or $preset"),
        ("memory: {type: }", "memory.type: must be text, not NoneType"),
        ("memory: {type: [InMemoryMemory]}", "memory.type: must be text, not list"),
        ("memory: {type: InMemoryMemori}", ("memory.type: unknown type 'InMemoryMemori'; known are InMemoryMemory, "
         "SharedInMemoryMemory, HierarchicalSharedMemory, MessageStoreMemory, HierarchicalMessageStoreMemory; did you mean InMemoryMemory?")),
        ("memory: {type: BaseMemory}", "memory.type: unknown type 'BaseMemory'"),
        ("memory: {type: Variables}", "memory.type: unknown type 'Variables'"),
        ("memory: {type: __class__}", "memory.type: unknown type '__class__'"),
        ("memory: {type: InMemoryMemory, $preset: worker}", "memory: has both type and $preset; keep one of them"),
        ("memory: {type: InMemoryMemory, agent_key: a}", "memory: unknown argument 'agent_key'; known are type, config"),
        ("memory: {type: InMemoryMemory, config: [a]}", "memory.config: must be a mapping, and is a list"),
        ("memory: {type: InMemoryMemory, config: {agent_keys: a}}", "memory.config: unknown argument 'agent_keys'; known are max_tokens, agent_key; did you mean agent_key?"),
        ("memory: {type: InMemoryMemory, config: {1: a}}", "memory.config: unknown argument 1; "),
        ("memory: {type: InMemoryMemory, config: {null: a}}", "memory.config: unknown argument None; "),
        ("memory: {type: InMemoryMemory, config: {agent_key: }}", "memory.config.agent_key: is empty"),
        ("memory: {type: InMemoryMemory, config: {agent_key: ''}}", "memory.config.agent_key: must not be empty"),
        ("memory: {type: InMemoryMemory, config: {agent_key: 7}}", "memory.config.agent_key: must be text; in YAML, put quotes around it"),
        ("memory: {type: InMemoryMemory, config: {agent_key: no}}", "memory.config.agent_key: must be text; in YAML, put quotes around it"),
        ("memory: {type: InMemoryMemory, config: {max_tokens: -1}}", "memory.config.max_tokens: must be a whole number from 0 up"),
        ("memory: {type: InMemoryMemory, config: {max_tokens: true}}", "memory.config.max_tokens: must be a whole number"),
        ("memory: {type: InMemoryMemory, config: {max_tokens: 1.0}}", "memory.config.max_tokens: must be a whole number"),
        ("memory: {type: SharedInMemoryMemory}", "memory.config.namespace: is required; memory.config.agent_key: is required"),
        ("memory: {type: SharedInMemoryMemory, config: {state: x}}", "memory.config: unknown argument 'state'"),
        ("memory: {type: MessageStoreMemory, config: {message_store: x}}", "memory.config: unknown argument 'message_store'"),
        ("memory: {$preset: 3}", "memory.$preset: must be text, not int"),
        ("memory: {$preset: x}", "Unknown memory preset: 'x'. Available: standalone, worker, manager"),
        ("memory: {$preset: worker}", "the preset 'worker' needs the key of its agent: give agent_key or agent_name"),
        ("memory: {$preset: worker, agent_key: a, namespace: }", "memory.namespace: is empty"),
        ("memory: {$preset: worker, subordinates: [a]}", "memory: unknown argument 'subordinates'"),
        ("memory: {$preset: standalone, namespace: a}", "memory: unknown argument 'namespace'"),
        ("memory: {$preset: manager, agent_key: a, subordinates: [a, [b]]}", "memory.subordinates[1]: must be text"),
        ("memory: {$preset: worker, config: {}}", "memory: unknown argument 'config'"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_used_says_why(text: str, expected: str) -> None:
    assert problem(text).startswith(expected)

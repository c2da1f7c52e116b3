"""Whatever the text is, it gives a memory or an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory import ConfigurationError
from firefly_memory.feeds.configuration.loading import load_memory
from firefly_memory.feeds.memories import BaseMemory
from firefly_memory.feeds.message_stores import InMemoryMessageStore
from tests.support.memory_configuration import SECRET, load, problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory: !!python/object/apply:os.system ['true']", "the configuration: is not YAML: could not determine a constructor"),
        ("memory: {type: InMemoryMemory}\n---\nmemory: {}", "the configuration: is not YAML: expected a single document"),
        ("memory:\n\ttype: InMemoryMemory", "the configuration: is not YAML: "),
        ("memory: \0", "the configuration: is not YAML: unacceptable character"),
        ("memory: {type: InMemoryMemory}\nmemory: {$preset: worker}", "the configuration: has the key 'memory' twice"),
        ("memory: &a {type: *a}", "the configuration: is too large: "),
        ("a0: &a0 [x]\n" + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))
         + "\nmemory: {$preset: manager, agent_key: a, subordinates: *a8}", "the configuration: is too large: "),
    ],
    ids=["object", "two documents", "tab", "NUL", "twice", "in itself", "billion laughs"],
)  # fmt: skip
def test_hostile_yaml_is_refused(text: str, expected: str) -> None:
    assert problem(text).startswith(expected)


def test_the_text_is_a_str() -> None:
    wrong: Any = b"memory: {type: InMemoryMemory}"
    with pytest.raises(ConfigurationError, match="the text must be YAML in a str, not bytes"):
        load_memory(wrong)


# Any text

words = st.sampled_from(
    [
        *("memory", "type", "config", "$preset", "spec", "metadata", "name", "workers", "namespace", "agent_key"),
        *("subordinates", "max_tokens", "owner", "InMemoryMemory", "SharedInMemoryMemory", "MessageStoreMemory"),
        *("HierarchicalSharedMemory", "standalone", "worker", "manager", "${JOB_ID}", "${NONE:-x}", "${", "${}", "1"),
        *("null", "&a", "*a", "<<", "!!set", "!!binary", "!!timestamp", "2025-01-01", "yes", "''", "---", "\0"),
    ]
)
marks = st.sampled_from([": ", ":\n  ", "\n", "\n  ", "\n    ", "{", "}", "[", "]", ", ", " ", "- ", "\t"])


def documents() -> Iterator[st.SearchStrategy[str]]:
    yield st.text()
    yield st.lists(words | marks, max_size=20).map("".join)
    scalars = words | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4), max_leaves=12
    )
    memories = st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["InMemoryMemory", "SharedInMemoryMemory", "HierarchicalMessageStoreMemory"]) | values,
            "$preset": st.sampled_from(["standalone", "Worker", "manager"]) | values,
            "config": st.dictionaries(words, values, max_size=4),
            "agent_key": scalars,
            "namespace": scalars,
            "subordinates": values,
        },
    )  # fmt: skip
    yield st.builds(
        lambda memory, more: yaml.safe_dump({"memory": memory, **more}),
        memories,
        st.dictionaries(words, values, max_size=3),
    )


@given(st.one_of(*documents()), st.booleans())
def test_any_text_gives_a_memory_or_an_error(text: str, with_store: bool) -> None:
    found: BaseMemory | ValueError
    try:
        found = load(text, store=InMemoryMessageStore() if with_store else None)
    except ValueError as error:
        found = error
    assert isinstance(found, BaseMemory) or SECRET not in str(found)

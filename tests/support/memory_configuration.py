"""Memories that are made from YAML with a fixed environment, one of whose variables is secret."""

from __future__ import annotations

from typing import Any

import pytest

from firefly_memory import ConfigurationError
from firefly_memory.feeds.configuration.loading import load_memory
from firefly_memory.feeds.memories import BaseMemory

SECRET = "hunter2"
ENV = {"JOB_ID": "job_7", "SECRET": SECRET, "EMPTY": "", "ROLE": "worker", "TOKENS": "500"}


def load(text: str, **more: Any) -> BaseMemory:
    return load_memory(text, **{"env": ENV, **more})


def facts(memory: BaseMemory) -> dict[str, Any]:
    """What a memory was made with."""
    names = ("namespace", "location", "agent_key", "subordinates", "max_tokens")
    found = {name: getattr(memory, name) for name in names if getattr(memory, name, None) is not None}
    return {name: list(value) if name == "subordinates" else value for name, value in found.items()}


def problem(text: str, **more: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(text, **more)
    assert SECRET not in f"{caught.value!r} {caught.value.__cause__!r}"
    return str(caught.value)

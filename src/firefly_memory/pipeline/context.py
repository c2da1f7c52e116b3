"""``PipelineContext``: the inputs of a run of a pipeline, and the results of its steps so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from firefly_memory.manager import MemoryManager

_INPUTS: Any = object()


@dataclass
class PipelineContext:
    """``PipelineContext(inputs=data, memory=manager)``, one for each run."""

    inputs: Any = None
    """The input of the first step."""
    memory: MemoryManager | None = None
    """The memory of every step; in a branch, a fork of that memory, which is deleted when the run ends."""
    conversation_id: str | None = None
    """The conversation for the turns of all agents. Without it, each agent has a conversation of its own."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options for the runs of all agents, such as ``{"deps": …, "usage": …}``. Options of a step override them."""
    results: dict[str, Any] = field(default_factory=dict)
    """The result of each step, by its name. A failed run leaves the results of the steps before the error."""
    output: Any = _INPUTS
    """The result of the newest step; ``inputs`` before the first result."""
    parent: PipelineContext | None = field(default=None, repr=False)
    """In a branch: the context of its ``Parallel``."""
    branches: dict[str, dict[str, PipelineContext]] = field(default_factory=dict, repr=False)
    """The contexts of branches, by the name of the ``Parallel`` and the name of the branch."""

    def __post_init__(self) -> None:
        if self.output is _INPUTS:
            self.output = self.inputs

    def done(self, step: str, result: Any) -> None:
        """Keep the result of a step."""
        self.results[step] = self.output = result

    def branch(self, memory: MemoryManager | None) -> PipelineContext:
        """A context for a branch: it begins with the results so far."""
        return replace(self, memory=memory, results=dict(self.results), parent=self, branches={})

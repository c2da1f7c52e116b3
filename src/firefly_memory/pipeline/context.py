"""``PipelineContext``: what a run of a pipeline begins with, and what its steps have done so far."""

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
    """What the first step is given."""
    memory: MemoryManager | None = None
    """Every step's memory; in a branch, a fork of it that is deleted when the run ends."""
    conversation_id: str | None = None
    """The conversation that the agents' turns are in. Without, each has one of its own."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """For the runs of all agents, such as ``{"deps": …, "usage": …}``; what a step was made with comes first."""
    results: dict[str, Any] = field(default_factory=dict)
    """What each step has returned, by its name. A run that fails leaves here what was done before."""
    output: Any = _INPUTS
    """What the newest step has returned; ``inputs``, before there is one."""
    parent: PipelineContext | None = field(default=None, repr=False)
    """In a branch: the context that it branched from."""
    branches: dict[str, dict[str, PipelineContext]] = field(default_factory=dict, repr=False)
    """The contexts of branches, by the name of the ``Parallel`` and their own."""

    def __post_init__(self) -> None:
        if self.output is _INPUTS:
            self.output = self.inputs

    def done(self, step: str, result: Any) -> None:
        """Keep what a step returned."""
        self.results[step] = self.output = result

    def branch(self, memory: MemoryManager | None) -> PipelineContext:
        """A context that has what was done so far and goes its own way from here."""
        return replace(self, memory=memory, results=dict(self.results), parent=self, branches={})

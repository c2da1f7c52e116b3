"""The steps of a pipeline."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

from pydantic_ai import DeferredToolRequests
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import is_multi_modal_content

from firefly_memory.agents.routing import AnyAgent
from firefly_memory.agents.run_messages import response_text
from firefly_memory.agents.run_options import StepOptions, with_memory
from firefly_memory.errors import ConfigurationError
from firefly_memory.manager import MemoryManager
from firefly_memory.pipeline.context import PipelineContext
from firefly_memory.reasoning import ReasoningPattern

Prompt: TypeAlias = Callable[[PipelineContext], Any] | str | None
"""The prompt of an agent: a text, or a function of the context. Without one, it is the output of the step before."""

Function: TypeAlias = Callable[[PipelineContext], Awaitable[Any]]

AnyStep: TypeAlias = "PipelineStep | Parallel | Function"
"""A step, or a coroutine function, which is a step with the name of the function."""

Merge: TypeAlias = Callable[[PipelineContext, dict[str, PipelineContext]], Any]
"""Gets the context of the ``Parallel``, and the contexts of the branches by name. It returns the result of the
``Parallel``, or an awaitable of it. Facts and results of branches are lost unless this function copies them."""


class PipelineStep(ABC):
    """A step. A subclass does its work in :meth:`run`."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    async def run(self, context: PipelineContext) -> Any:
        """Do the work and return the result, which the engine puts into ``context.results``."""


class FunctionStep(PipelineStep):
    """A coroutine function of the context."""

    def __init__(self, function: Function, name: str | None = None) -> None:
        if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):
            hint = "; AgentStep(agent) makes an agent one" if isinstance(function, AbstractAgent) else ""
            raise ConfigurationError(f"a step must be a PipelineStep or a coroutine function, not {function!r}{hint}")
        super().__init__(name or str(getattr(function, "__name__", type(function).__name__)))
        self.function = function

    async def run(self, context: PipelineContext) -> Any:
        """Call the function."""
        return await self.function(context)


class AgentStep(PipelineStep):
    """A run of an agent, for this run with the context's memory. Its result is the output.

    ``options`` are those of ``Agent.run``.
    """

    def __init__(
        self, agent: AnyAgent, prompt: Prompt = None, *, name: str | None = None, **options: Unpack[StepOptions]
    ) -> None:
        super().__init__(_named(name or agent.name, agent))
        self.agent = agent
        self.prompt = prompt
        self.options = options

    async def run(self, context: PipelineContext) -> Any:
        """Run the agent."""
        options = {"conversation_id": context.conversation_id, **context.options, **self.options}
        result = await self._answer(await _asked(self.prompt, context), context.memory, options)
        return result.output

    async def _answer(self, prompt: Any, memory: MemoryManager | None, options: dict[str, Any]) -> Any:
        return await self.agent.run(prompt, **with_memory(self.agent, memory, options))


class ReasoningStep(AgentStep):
    """A run of a pattern, with its own scope of the context's memory, stored as one turn. Its result is the output."""

    def __init__(
        self,
        pattern: ReasoningPattern,
        agent: AnyAgent,
        prompt: Prompt = None,
        *,
        name: str | None = None,
        **options: Unpack[StepOptions],
    ) -> None:
        super().__init__(agent, prompt, name=name, **options)
        self.pattern = pattern

    async def _answer(self, prompt: Any, memory: MemoryManager | None, options: dict[str, Any]) -> Any:
        return await self.pattern.execute(self.agent, prompt, memory=memory, **options)


class Parallel:
    """Branches that run at the same time: ``Parallel({"en": step, "fr": [step, step]}, merge=function)``.

    Each has a context with a fork of the memory. ``merge`` is called when all are done; the first that fails cancels
    the others.
    """

    def __init__(
        self, branches: Mapping[str, AnyStep | Sequence[AnyStep]], *, merge: Merge, name: str = "parallel"
    ) -> None:
        if len(branches) < 2:  # noqa: PLR2004 - what "parallel" means
            raise ConfigurationError(f"{name!r} needs at least two branches")
        for each in (name, *branches):
            _check(each)
        self.name = name
        self.merge = merge
        self.branches: dict[str, list[PipelineStep | Parallel]] = {
            branch: as_steps(list(steps) if isinstance(steps, Sequence) else [steps], f"{name}/{branch}")
            for branch, steps in branches.items()
        }

    async def merged(self, context: PipelineContext) -> Any:
        """Run the branches, and return the result of ``merge``."""
        branches = context.branches[self.name]
        merged = self.merge(context, {name: branches[name] for name in self.branches})
        return await merged if inspect.isawaitable(merged) else merged


def as_steps(steps: Sequence[AnyStep], where: str) -> list[PipelineStep | Parallel]:
    """The steps, with functions turned into steps. Every step must have a name of its own."""
    made = [step if isinstance(step, (PipelineStep, Parallel)) else FunctionStep(step) for step in steps]
    names = [step.name for step in made]
    if not made:
        raise ConfigurationError(f"{where} has no steps")
    for name in names:
        _check(name)
        if names.count(name) > 1:
            raise ConfigurationError(f"{where} has more than one step named {name!r}; give each a name of its own")
    return made


def _check(name: str) -> None:
    if not name or "/" in name or name.startswith("__"):
        reason = "it needs a name, '/' parts names, and '__' begins those of the graph"
        raise ConfigurationError(f"a step or branch cannot be named {name!r}: {reason}")


def _named(name: str | None, agent: AnyAgent) -> str:
    if not name:
        raise ConfigurationError(f"{agent!r} has no name; give its step one: name=…")
    return name


async def _asked(prompt: Prompt, context: PipelineContext) -> Any:
    if callable(prompt):
        made = prompt(context)
        return await made if inspect.isawaitable(made) else made
    if prompt is not None:
        return prompt
    if context.output is None:
        return None
    if isinstance(context.output, DeferredToolRequests):
        raise ConfigurationError(
            "the step before waits for tools that somebody has to answer or approve: a pipeline can end there, or this "
            "step needs a prompt"
        )
    return _as_content(context.output) or response_text(context.output)


def _as_content(value: Any) -> Sequence[Any]:
    """The parts of a prompt with pictures, documents or other files; empty for any other value."""
    content = value if isinstance(value, (list, tuple)) else [value]
    whole = all(isinstance(item, str) or is_multi_modal_content(item) for item in content)
    return content if whole and any(map(is_multi_modal_content, content)) else ()

"""``PipelineEngine``: a pipeline as a graph of pydantic-graph, and its runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_graph import Graph, GraphBuilder

from firefly_memory.agents.run_options import own_scope
from firefly_memory.errors import StepError
from firefly_memory.pipeline.context import PipelineContext
from firefly_memory.pipeline.steps import AnyStep, Parallel, PipelineStep, as_steps

# pydantic-graph's types are beyond mypy. A node is given a PipelineContext as its inputs, and returns the one to go
# on with; the graph's state is a stack of the scopes of all branches.
_Given: TypeAlias = Any
_Call: TypeAlias = Any
_Node: TypeAlias = Any


@dataclass(frozen=True)
class PipelineResult:
    """The output of the last step, and the context with the results of all steps."""

    output: Any
    context: PipelineContext


class PipelineEngine:
    """``PipelineEngine([step, Parallel(…), step])``. It runs its ``graph``, which ``engine.graph.render()`` draws. Many
    runs are possible at once, each with a context of its own."""

    def __init__(self, steps: Sequence[AnyStep], *, name: str = "pipeline") -> None:
        self.steps: list[PipelineStep | Parallel] = as_steps(steps, name)
        self.graph: Graph[Any, Any, Any, Any] = _graph(self.steps, name)  # type: ignore[type-arg] # mypy finds none

    async def run(self, context: PipelineContext) -> PipelineResult:
        """Run all steps. ``StepError`` names the step that failed, and its cause is the error; ``context`` keeps the
        results of the steps before."""
        context.output = context.inputs  # not what an earlier run of this context may have left
        async with AsyncExitStack() as scopes:
            await self.graph.run(state=scopes, inputs=context)
        return PipelineResult(context.output, context)


def _graph(steps: Sequence[PipelineStep | Parallel], name: str) -> Graph:
    builder: GraphBuilder = GraphBuilder(
        name=name, state_type=AsyncExitStack, input_type=PipelineContext, output_type=PipelineContext
    )
    last = _add(builder, builder.start_node, steps, "")
    builder.add(builder.edge_from(last).to(builder.end_node))
    return builder.build()


def _add(builder: GraphBuilder, source: _Node, steps: Sequence[PipelineStep | Parallel], path: str) -> _Node:
    for step in steps:
        if isinstance(step, Parallel):
            source = _add_parallel(builder, source, step, f"{path}{step.name}")
        else:
            source = _then(builder, source, f"{path}{step.name}", _keeping(step.name, step.run, f"{path}{step.name}"))
    return source


def _add_parallel(builder: GraphBuilder, source: _Node, parallel: Parallel, path: str) -> _Node:
    # The fork is given a source of its own: what is in front may be a join, or the start.
    source = _then(builder, source, f"{path}//fork", _passing)
    fork_id = f"{path}//branches"
    entries = [builder.step(_branching(parallel.name, each), node_id=f"{path}/{each}") for each in parallel.branches]
    builder.add(
        builder.edge_from(source).broadcast(lambda edge: [edge.to(entry) for entry in entries], fork_id=fork_id)
    )
    ends = [
        _add(builder, entry, steps, f"{path}/{branch}/")
        for entry, (branch, steps) in zip(entries, parallel.branches.items(), strict=True)
    ]
    join = builder.join(_parent_of_all, initial_factory=_nothing, node_id=f"{path}//join", parent_fork_id=fork_id)
    builder.add(builder.edge_from(*ends).to(join))
    return _then(builder, join, path, _keeping(parallel.name, parallel.merged, path))


def _then(builder: GraphBuilder, source: _Node, node_id: str, call: _Call) -> _Node:
    step = builder.step(call, node_id=node_id)
    builder.add(builder.edge_from(source).to(step))
    return step


async def _passing(given: _Given) -> Any:
    return given.inputs


def _branching(parallel: str, branch: str) -> _Call:
    async def fork(given: _Given) -> PipelineContext:
        context: PipelineContext = given.inputs
        memory = await given.state.enter_async_context(own_scope(context.memory))
        own = context.branches.setdefault(parallel, {})[branch] = context.branch(memory)
        return own

    return fork


def _keeping(name: str, work: Callable[[PipelineContext], Awaitable[Any]], path: str) -> _Call:
    async def call(given: _Given) -> PipelineContext:
        context: PipelineContext = given.inputs
        try:
            context.done(name, await work(context))
        except Exception as exc:
            raise StepError(path, f"{type(exc).__name__}: {exc}") from exc
        return context

    return call


def _nothing() -> PipelineContext:
    return PipelineContext()


def _parent_of_all(_context: Any, _so_far: PipelineContext, branch: PipelineContext) -> PipelineContext:
    assert branch.parent is not None
    return branch.parent

"""Pipelines: steps one after the other, or side by side, with one memory. Needs the extra ``agents``."""

from __future__ import annotations

from firefly_memory.validation import ImportingExtra

with ImportingExtra("firefly_memory.pipeline", "pydantic-ai-slim", "agents"):
    import pydantic_ai  # noqa: F401
    import pydantic_graph  # noqa: F401

from firefly_memory.pipeline.context import PipelineContext
from firefly_memory.pipeline.engine import PipelineEngine, PipelineResult
from firefly_memory.pipeline.steps import AgentStep, FunctionStep, Parallel, PipelineStep, ReasoningStep

__all__ = [
    "AgentStep",
    "FunctionStep",
    "Parallel",
    "PipelineContext",
    "PipelineEngine",
    "PipelineResult",
    "PipelineStep",
    "ReasoningStep",
]

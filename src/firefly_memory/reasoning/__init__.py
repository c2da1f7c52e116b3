"""Patterns of reasoning: several runs of an agent that come to one answer. Needs the extra ``agents``."""

from __future__ import annotations

from firefly_memory.validation import ImportingExtra

with ImportingExtra("firefly_memory.reasoning", "pydantic-ai-slim", "agents"):
    import pydantic_ai  # noqa: F401

from firefly_memory.reasoning.pattern import ReasoningPattern, ReasoningResult, ReasoningStepDone
from firefly_memory.reasoning.plan_and_execute import Plan, PlanAndExecutePattern
from firefly_memory.reasoning.react import ReActPattern, Thought

__all__ = [
    "Plan",
    "PlanAndExecutePattern",
    "ReActPattern",
    "ReasoningPattern",
    "ReasoningResult",
    "ReasoningStepDone",
    "Thought",
]

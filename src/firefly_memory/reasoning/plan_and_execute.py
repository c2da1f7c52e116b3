"""``PlanAndExecutePattern``: make a plan, carry it out, answer."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from firefly_memory.errors import StepError
from firefly_memory.messages.quoted_text import indented
from firefly_memory.reasoning.pattern import ReasoningPattern
from firefly_memory.validation import at_least


class Plan(BaseModel):
    """The steps of a plan."""

    steps: list[str] = Field(description="Each a task that can be done and looked at by itself.")


class PlanAndExecutePattern(ReasoningPattern):
    """A step that plans, one for each of the plan's steps, and one that answers, with an output of the agent's own
    type. ``StepError`` if the plan has more than ``max_steps`` steps."""

    def __init__(self, *, max_steps: int = 10) -> None:
        self.max_steps: int = at_least(1, "max_steps", max_steps)

    async def reason(self, state: dict[str, Any]) -> Any:
        """Plan, execute, answer."""
        plan: Plan = await self.step(state, "plan", self.planning(state["prompt"]), output_type=Plan)
        if len(plan.steps) > self.max_steps:
            raise StepError("plan", f"it has {len(plan.steps)} steps, more than {self.max_steps}")
        for number, task in enumerate(plan.steps, 1):
            await self.step(
                state, f"step {number}", f"Now do step {number} of the plan: {indented(task)}", output_type=str
            )
        return await self.step(state, "answer", "All steps are done. Now answer what was asked at first.")

    def planning(self, prompt: Any) -> Any:
        """The prompt that asks for a plan."""
        wanted = f"First make a plan of at most {self.max_steps} steps. Do not carry it out yet."
        return f"{prompt}\n\n{wanted}" if isinstance(prompt, str) else [*(prompt or ()), wanted]

"""``ReActPattern``: think, act, look, until there is an answer."""

from __future__ import annotations

from copy import copy
from typing import Any

from pydantic import BaseModel, Field
from pydantic_ai import NativeOutput, PromptedOutput

from firefly_memory.errors import StepError
from firefly_memory.reasoning.pattern import ReasoningPattern
from firefly_memory.validation import at_least


class Thought(BaseModel):
    """A thought before the answer. Another step follows it."""

    thought: str = Field(description="What is known by now, and what to do next.")


class ReActPattern(ReasoningPattern):
    """Each step ends with a thought, or with the answer: an output of the agent's own type. In a step the agent acts
    and looks by calling its tools. ``StepError`` if there is no answer after ``max_steps``."""

    def __init__(self, *, max_steps: int = 10) -> None:
        self.max_steps: int = at_least(1, "max_steps", max_steps)

    async def reason(self, state: dict[str, Any]) -> Any:
        """Think until there is an answer."""
        answer = state["options"].get("output_type") or state["agent"].output_type
        prompt = state["prompt"]
        for number in range(1, self.max_steps + 1):
            output = await self.step(state, f"thought {number}", prompt, output_type=_either(answer))
            if not isinstance(output, Thought):
                return output
            prompt = "Go on."
        raise StepError(type(self).__name__, f"there was no answer after {self.max_steps} steps")


def _either(answer: Any) -> Any:
    """The type of a step's output: the agent's own output type, or a thought."""
    if isinstance(answer, (NativeOutput, PromptedOutput)):
        either = copy(answer)
        either.outputs = _either(answer.outputs)
        return either
    return [*(answer if isinstance(answer, (list, tuple)) else [answer]), Thought]

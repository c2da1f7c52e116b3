"""Models and conversations for tests of flushes."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory.strategies import SummarizerStrategy
from firefly_memory.testing.checks import Memory


class Summaries:
    """A model that gives one summary after the other, and keeps the prompts."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []
        self.model = FunctionModel(self._respond)

    def _respond(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        self.prompts += [str(part.content) for part in messages[0].parts if part.part_kind == "user-prompt"]
        answer = self.answers.pop(0) if self.answers else f"summary {len(self.prompts)}"
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(parts=[TextPart(answer)])


def summarizer(summaries: Summaries, **options: Any) -> SummarizerStrategy:
    """A strategy that asks the model once, after three turns, and keeps one."""
    given = {"interaction_threshold_qty": 3, "interaction_keep": 1, "cod_max_loops": 1, **options}
    return SummarizerStrategy(model=summaries.model, **given)


async def add_turns(memory: Memory, first: int, beyond: int, conversation_id: str = "c", **options: Any) -> None:
    for number in range(first, beyond):
        await memory.add_turn(conversation_id, f"question {number}", f"answer {number}", **options)

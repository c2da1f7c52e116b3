"""A model for agents that says what a test tells it to, and what is stored of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from firefly_memory import MemoryManager, TokenEstimator
from firefly_memory.agents import Memory
from firefly_memory.agents.run_state import ARE_DATA

TOLD = f"{ARE_DATA}\nWorking Memory:\n"
"""What stands above the facts that a model is told."""


class Scripted:
    """A model that says what it is told to, and remembers what it was asked. A step is a text, calls of tools by name
    with arguments, or an error to raise."""

    def __init__(self, *steps: str | dict[str, Any] | Exception) -> None:
        self.steps = list(steps)
        self.asked: list[list[ModelMessage]] = []
        self.instructions: list[str] = []
        self.model = FunctionModel(self._respond, stream_function=self._stream)

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> str | dict[str, Any]:
        self.asked.append(messages)
        self.instructions.append(info.instructions or "")
        step = self.steps.pop(0) if self.steps else f"answer {len(self.asked)}"
        if isinstance(step, Exception):
            raise step
        return step

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = self._next(messages, info)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in step.items()])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        step = self._next(messages, info)
        if isinstance(step, str):
            for character in step:
                yield character
        else:
            for index, (name, arguments) in enumerate(step.items()):
                yield {index: DeltaToolCall(name, str(arguments).replace("'", '"'), tool_call_id=f"{name}-{index}")}

    @property
    def texts(self) -> list[list[str]]:
        """What each request said: prompts, answers, results."""
        return [
            [str(part.content) for message in messages for part in message.parts if hasattr(part, "content")]
            for messages in self.asked
        ]


def stored(manager: MemoryManager, conversation_id: str = "c") -> list[tuple[str, str]]:
    """The texts of a conversation's turns."""
    return [(turn.user_prompt, turn.assistant_response) for turn in manager.conversation.get_turns(conversation_id)]


def estimator_that_warns_once() -> TokenEstimator:
    """An estimator that warns the first time, where warnings are errors."""
    warned: list[bool] = []

    class WarnsOnce(TokenEstimator):
        def estimate_turn(self, *_: Any) -> int:
            if not warned:
                warned.append(True)
                raise UserWarning("tokens are estimated")
            return 1

    return WarnsOnce()


async def instructions_of_a_run(manager: MemoryManager, **options: Any) -> str:
    """The instructions of a run."""
    scripted = Scripted()
    await Agent(scripted.model, capabilities=[Memory(manager, **options)]).run("go", conversation_id="c")
    return scripted.instructions[0]


async def answers_to_remember(manager: MemoryManager, *calls: dict[str, Any], **options: Any) -> list[str]:
    """What a model that calls ``remember`` is answered."""
    scripted = Scripted(*({"remember": call} for call in calls), "done")
    await Agent(scripted.model, retries=9, capabilities=[Memory(manager, tools=True, **options)]).run(
        "go", conversation_id="c"
    )
    return scripted.texts[-1][1:]

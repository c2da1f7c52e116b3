"""A run of an agent with the capability ``Memory``, against the same run with its history read and written by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.conversations import BUDGET, ESTIMATOR, fills
from benchmarks.harness import Result, Work, measure
from benchmarks.one_turn import ANSWER, PROMPT
from benchmarks.stores import Places
from benchmarks.turns import Pair, filled, pairs
from firefly_memory import MemoryManager
from firefly_memory.agents import Memory

_OPERATIONS = 32  # of a round
_SIZE = 1_000


def _answer(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart(ANSWER)])


async def agents(places: Places, rounds: int) -> AsyncIterator[Result]:
    """In the asynchronous mode, which runs have."""
    fill = fills(places)
    async with pairs(places) as compared:
        for pair in [each for each in compared if each.concurrent]:
            names = filled(pair, fill[pair.backend], 20, _SIZE, "agent ")
            places.settle()
            works = _remembering(pair, names), _by_hand(pair, names)
            times = await measure(*works, operations=_OPERATIONS, rounds=rounds)
            yield Result(pair.name, "run of an agent", 1, _SIZE, *times, 1.3, 1.5)


def _remembering(pair: Pair, names: list[str]) -> Work:
    manager = MemoryManager(store=pair.ours.memory.store, max_conversation_tokens=BUDGET, estimator=ESTIMATOR)
    agent = Agent(FunctionModel(_answer), capabilities=[Memory(manager)])
    free = deque(names)

    async def run() -> None:
        free.rotate()
        await agent.run(PROMPT, conversation_id=free[0])

    return run


def _by_hand(pair: Pair, names: list[str]) -> Work:
    agent = Agent(FunctionModel(_answer))
    free = deque(names)

    async def run() -> None:
        free.rotate()
        history = await pair.bare.history(free[0])
        await agent.run(PROMPT, message_history=history, conversation_id=free[0])
        await pair.bare.add(free[0])

    return run

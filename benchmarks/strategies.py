"""How long a strategy takes to plan: ``python -m benchmarks.strategies``.

Prints milliseconds of the processor for 1,000, 10,000 and 100,000 messages, and how the time grows when the messages
are ten times as many: about 10 is linear. Tokens are not counted: applications keep the counts, and each message has
ten tokens here.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from firefly_memory.strategies import MemoryMaxTokensStrategy, NeuralyzerStrategy, SummarizerStrategy, interactions_of
from tests.support.shaped_messages import SHAPES, Shape

SIZES = (1_000, 10_000, 100_000)


def conversation(shape: Shape, messages: int) -> list[Any]:
    """Interactions of four messages: a question, a call, its result and an answer."""
    made: list[Any] = []
    for number in range(messages // 4):
        call = f"call {number}"
        made += [shape.user("question"), shape.assistant(calls=[(call, "look")])]
        made += [shape.tool(call, "look"), shape.assistant("answer")]
    return made


def ten(_: Any) -> int:
    return 10


PLANS: dict[str, Callable[[list[Any]], object]] = {
    "interactions": lambda messages: interactions_of(messages, ten),
    "max_tokens, everything fits": lambda messages: MemoryMaxTokensStrategy(memory_max_tokens=10**9).plan(
        messages, ten
    ),
    "max_tokens, 100 messages fit": lambda messages: MemoryMaxTokensStrategy(memory_max_tokens=1000).plan(
        messages, ten
    ),
    "max_tokens, a condition": lambda messages: MemoryMaxTokensStrategy(
        memory_max_tokens=10**9, conditions=["message.role != 'tool'"]
    ).plan(messages, ten),
    "summarizer": lambda messages: SummarizerStrategy(interaction_keep=2).plan(messages, count=ten),
    "neuralyzer": lambda messages: NeuralyzerStrategy(interaction_threshold_qty=1).plan(messages),
}


def milliseconds(plan: Callable[[list[Any]], object], messages: list[Any], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        plan(messages)
        taken.append((time.process_time() - started) * 1e3)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strategies", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shape", choices=SHAPES, nargs="*", default=["dicts", "pydantic-ai"])
    arguments = parser.parse_args()
    for name in arguments.shape:
        conversations = [conversation(SHAPES[name], size) for size in SIZES]
        print(f"{name:30}" + "".join(f"{size:>10,}" for size in SIZES) + "   growth")
        for what, plan in PLANS.items():
            times = [milliseconds(plan, messages, arguments.rounds) for messages in conversations]
            growth = ", ".join(f"{later / earlier:.1f}" for earlier, later in pairwise(times))
            print(f"{what:30}" + "".join(f"{taken:10.1f}" for taken in times) + f"   {growth}", flush=True)


if __name__ == "__main__":
    main()

"""Presets and filters on the histories of every kind of message store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from firefly_memory.feeds import constants
from firefly_memory.feeds.configuration.presets import get_memory_preset
from firefly_memory.feeds.constants import ASSISTANT_MESSAGE, GLOBAL_OBSERVATION, TASK, USER_MESSAGE
from firefly_memory.feeds.history_filters import (
    DefaultHistoryFilter,
    HistoryFilter,
    ManagerHistoryFilter,
    OrchestratorHistoryFilter,
    WorkerHistoryFilter,
)
from firefly_memory.feeds.items import Messages
from firefly_memory.feeds.memories import MessageStoreMemory

QUESTION, ANSWER, FOR_ALL = {USER_MESSAGE}, {ASSISTANT_MESSAGE}, {GLOBAL_OBSERVATION}
TYPES = {value for name, value in vars(constants).items() if name.isupper() and isinstance(value, str)}
WORK = TYPES - QUESTION - ANSWER
WRITERS = {"user": QUESTION, "worker_1": WORK, "boss": WORK, "assistant": ANSWER}

Seen = list[tuple[str, set[str]]]


async def work(any_store: Any, location: str) -> None:
    """Two phases. In each the user asks, a worker and its manager add a message of each type for work, a task first,
    and the assistant answers."""
    for phase in (1, 2):
        for key, types in WRITERS.items():
            memory = MessageStoreMemory(any_store, location, key)
            for kind in sorted(types, key=lambda kind: (kind != TASK, kind)):
                mark = {"is_global": True} if kind in FOR_ALL else {}  # a user's store may not know the type
                await memory.add({"type": kind, "content": phase, "phase_id": phase, **mark})


async def history_of(preset: str, agent: str, any_store: Any, location: str) -> Messages:
    context = {"JOB_ID": location, "agent_key": agent, "subordinates": ["Worker 1"] if agent == "boss" else []}
    return await get_memory_preset(preset, context, {}, any_store).get_history()


def seen(history: Iterable[dict[str, Any]]) -> Seen:
    """The agents in the order in which they appear, each with the types of its messages."""
    found: dict[str, set[str]] = {}
    for each in history:
        found.setdefault(each["agent_key"], set()).add(each["type"])
    return [*found.items()]


@pytest.mark.parametrize(
    ("preset", "agent", "expected"),
    [
        ("standalone", "worker_1", []),
        ("worker", "worker_1", [("user", QUESTION), ("assistant", ANSWER), ("worker_1", WORK), ("boss", FOR_ALL)]),
        ("worker", "planner", [("user", QUESTION), ("assistant", ANSWER), ("worker_1", FOR_ALL), ("boss", FOR_ALL)]),
        ("manager", "boss", [("boss", WORK), ("worker_1", WORK)]),
        ("manager", "another", [("worker_1", FOR_ALL), ("boss", FOR_ALL)]),
    ],
)
async def test_a_preset_sees_its_part_of_every_store(
    preset: str, agent: str, expected: Seen, any_store: Any, location: str
) -> None:
    await work(any_store, location)
    history = await history_of(preset, agent, any_store, location)
    assert seen(history) == expected
    assert len(history) == 2 * sum(len(types) for _, types in expected)


STEPS = ["action", "error", GLOBAL_OBSERVATION, "observation"]


@pytest.mark.parametrize(
    ("preset", "agent", "each_filter", "expected"),
    [
        ("worker", "planner", OrchestratorHistoryFilter(3), [(ASSISTANT_MESSAGE, 1), (USER_MESSAGE, 2), (ASSISTANT_MESSAGE, 2)]),
        ("manager", "boss", ManagerHistoryFilter(), [("synthesis", 1), ("synthesis", 1)]),
        # The messages for every agent come last in a history, so that those of before the task are there as well.
        ("worker", "worker_1", WorkerHistoryFilter(), [*((kind, 2) for kind in STEPS), *((GLOBAL_OBSERVATION, n) for n in (1, 2))]),
    ],
)  # fmt: skip
async def test_a_filter_chooses_from_the_history_of_every_store(
    preset: str, agent: str, each_filter: HistoryFilter, expected: list[tuple[str, int]], any_store: Any, location: str
) -> None:
    await work(any_store, location)
    history = await history_of(preset, agent, any_store, location)
    chosen = each_filter.filter_for_prompt(history, {"phase_id": 2})
    assert [(each["type"], each["content"]) for each in chosen] == expected
    assert DefaultHistoryFilter().filter_for_prompt(history) == history

"""The messages that a long-term strategy leaves, with a summary in the place of the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from firefly_memory.messages.removal import system_parts_of
from firefly_memory.strategies.planning import FlushPlan


def left_by(
    plan: FlushPlan, messages: Sequence[Any], replacement: Sequence[Any] = (), *, replaced: Collection[int] = ()
) -> list[Any]:
    """``messages`` without the old ones of ``plan``; ``replacement`` stands where the first of them was.

    The messages at the places ``replaced``, which are earlier summaries, are left out too.
    Messages of the system stay, and so do the parts of the system in an old request of pydantic-ai.
    """
    left: list[Any] = []
    old = set(plan.old)
    for place, message in enumerate(messages):
        if place in replaced:
            continue
        if place not in old:
            left.append(message)
            continue
        if (system := system_parts_of(message)) is not None:
            left.append(system)
        if place == plan.old[0]:
            left.extend(replacement)
    return left

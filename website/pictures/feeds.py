"""Who sees which messages of one location: what is filled in is what the memories themselves return."""

from __future__ import annotations

import asyncio
from typing import Any

from firefly_memory.feeds import (
    BaseMemory,
    HierarchicalMessageStoreMemory,
    InMemoryMessageStore,
    MessageStoreMemory,
    create_action,
    create_assistant_message,
    create_final,
    create_global_observation,
    create_observation,
    create_synthesis,
    create_task,
    create_user_message,
)
from website.pictures.drawing import Picture

LEFT, WIDTH, GAP, HEIGHT, ROW = 20, 60, 6, 34, 84

MESSAGES = [
    ("blue", "user", create_user_message("Compare the two databases", timestamp=0)),
    ("panel", "plan", create_task("Ask both workers", agent_key="manager", timestamp=0)),
    ("green", "action", create_action("list_tables", {}, agent_key="worker_1", timestamp=0)),
    ("amber", "action", create_action("list_tables", {}, agent_key="worker_2", timestamp=0)),
    ("green", "found", create_observation("5 tables", agent_key="worker_1", timestamp=0)),
    ("faded", "for all", create_global_observation("Use read-only roles", timestamp=0)),
    ("amber", "final", create_final("7 tables", agent_key="worker_2", timestamp=0)),
    ("panel", "result", create_synthesis("Two differ", agent_key="manager", timestamp=0)),
    ("blue", "answer", create_assistant_message("Two tables differ", timestamp=0)),
]
"""The color, a word and the message: of people and the assistant, of the manager, of each worker, of everybody."""


def draw() -> Picture:
    picture = Picture(
        640,
        26 + 4 * ROW,
        "Who sees which messages",
        "Nine messages of one location: a question and its answer, two messages of the manager, two of each of two "
        "workers, and one for all. Worker 1 sees the question and the answer, its own two messages and the one for "
        "all. The manager sees its own messages, those of both workers and the one for all. The orchestrator sees the "
        "question and the answer, and the one for all.",
    )
    store = InMemoryMessageStore()
    store.append_many("job", [message for _, _, message in MESSAGES])
    rows: dict[str, BaseMemory | None] = {
        "The feed: all messages, in the order in which they came": None,
        "worker_1: conversation, its own messages, those for all": MessageStoreMemory(store, "job", "worker_1"),
        "manager: its own, those of its workers, those for all": HierarchicalMessageStoreMemory(
            store, "job", "manager", ["worker_1", "worker_2"]
        ),
        "orchestrator: conversation, its own, those for all": MessageStoreMemory(store, "job", "orchestrator"),
    }
    for number, (words, memory) in enumerate(rows.items()):
        seen = [message for _, _, message in MESSAGES] if memory is None else asyncio.run(memory.get_history())
        _row(picture, number, words, seen)
    return picture


def _row(picture: Picture, number: int, words: str, seen: list[dict[str, Any]]) -> None:
    top = 34 + number * ROW
    picture.text(LEFT, top, words, "title", room=600)
    for place, (kind, word, message) in enumerate(MESSAGES):
        x = LEFT + place * (WIDTH + GAP)
        is_seen = message in seen
        picture.box(x, top + 12, WIDTH, HEIGHT, kind if is_seen else "dashed", radius=4)
        if is_seen:
            picture.text(x + WIDTH / 2, top + 12 + HEIGHT / 2 + 5, word, "small", anchor="middle", room=WIDTH)

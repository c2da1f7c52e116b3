"""Which fact a lookup finds: what is filled in is what ``get_fact`` itself returns."""

from __future__ import annotations

from typing import Any

from firefly_memory.longterm import MemoryService
from website.pictures.drawing import Picture

LEFT, WIDTH, GAP, HEIGHT, ROW, TOP = 20, 138, 14, 40, 88, 60

KEY = "language"
SCOPES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("session", "blue", "German", {"session_id": "chat-7"}),
    ("user", "green", "Greek", {"user_id": "telegram:1"}),
    ("agent", "amber", "French", {"agent_id": "tutor"}),
    ("global", "panel", "English", {}),
]
"""Each scope with its color, its value of the key, and the id that it needs; the most specific first."""

LOOKUPS: list[tuple[str, dict[str, Any]]] = [
    ("tutor asks for telegram:1 in chat-7", {"agent_id": "tutor", "user_id": "telegram:1", "session_id": "chat-7"}),
    ("tutor asks for telegram:1 in chat-8", {"agent_id": "tutor", "user_id": "telegram:1", "session_id": "chat-8"}),
    ("tutor asks for telegram:2", {"agent_id": "tutor", "user_id": "telegram:2"}),
    ("somebody asks, and names no id", {}),
]


def draw() -> Picture:
    picture = Picture(
        660,
        TOP + len(LOOKUPS) * ROW,
        "Which fact a lookup finds",
        "The key language has a value in each of four scopes: German in the session chat-7, Greek for the person "
        "telegram:1, French for the agent tutor, and English for everybody. A lookup for this agent, person and "
        "session finds German. In another session it finds Greek. For another person it finds French. Without any id "
        "it finds English.",
    )
    memory = MemoryService(embedder=None)
    for place, (scope, color, value, ids) in enumerate(SCOPES):
        memory.set_fact(KEY, value, scope=scope, **ids)  # type: ignore[arg-type]
        x = LEFT + place * (WIDTH + GAP)
        named = next(iter(ids.values()), "everybody")
        picture.box(x, 10, WIDTH, HEIGHT, color, radius=4)
        picture.text(x + WIDTH / 2, 35, f"{scope}: {named}", "small", anchor="middle", room=WIDTH)
    for number, (words, ids) in enumerate(LOOKUPS):
        _row(picture, number, words, memory.get_fact(KEY, **ids))
    return picture


def _row(picture: Picture, number: int, words: str, found: str) -> None:
    top = TOP + number * ROW
    picture.text(LEFT, top + 20, words, "title", room=620)
    for place, (_, color, value, _) in enumerate(SCOPES):
        x = LEFT + place * (WIDTH + GAP)
        is_found = value == found
        picture.box(x, top + 30, WIDTH, HEIGHT, color if is_found else "dashed", radius=4)
        picture.text(x + WIDTH / 2, top + 55, value, "small", anchor="middle", room=WIDTH)

"""What each strategy keeps of one conversation: the boxes are drawn from the plans of the strategies themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

from firefly_memory.strategies import MemoryMaxTokensStrategy, NeuralyzerStrategy, SummarizerStrategy
from website.pictures.drawing import Picture

LENGTHS = [46, 30, 62, 40, 54, 34, 58]
"""How many tokens each interaction has. The third and the fifth use a tool."""

WITH_TOOL = {2, 4}
BUDGET = 140
KEEP = 3
LEFT, GAP, HEIGHT, ROW = 20, 4, 34, 84
ROWS = 5
WIDTH_OF_A_TOKEN = 1.65


class _Part(NamedTuple):
    """A message of the conversation."""

    interaction: int
    tokens: int
    message: dict[str, Any]
    is_of_tool: bool = False


def _conversation() -> list[_Part]:
    parts: list[_Part] = []
    for number, length in enumerate(LENGTHS):
        said = length
        if number in WITH_TOOL:
            said -= 20
            name, call_id = "look", f"call {number}"
            call = {"role": "assistant", "content": "", "tool_calls": [{"id": call_id, "name": name}]}
            result = {"role": "tool", "name": name, "tool_call_id": call_id, "content": "found"}
        parts.append(_Part(number, said // 2, {"role": "user", "content": f"question {number}"}))
        if number in WITH_TOOL:
            parts += [_Part(number, 10, message, is_of_tool=True) for message in (call, result)]
        parts.append(_Part(number, said - said // 2, {"role": "assistant", "content": f"answer {number}"}))
    return parts


PARTS = _conversation()
MESSAGES = [part.message for part in PARTS]
_TOKENS = {id(part.message): part.tokens for part in PARTS}


def _count(message: Any) -> int:
    return _TOKENS.get(id(message), 0)


def draw() -> Picture:
    picture = Picture(
        600,
        26 + ROWS * ROW,
        "What each strategy keeps",
        "A conversation has seven interactions. Two of them use a tool. max_tokens keeps the newest whole interactions "
        "that fit. With the condition that no tool message is sent, there is room for one more interaction. The "
        "summarizer replaces the oldest four by a summary and keeps the newest three. The neuralyzer keeps the newest "
        "three, and nothing replaces the others. All of them stay stored.",
    )
    within = MemoryMaxTokensStrategy(memory_max_tokens=BUDGET)
    without_tools = MemoryMaxTokensStrategy(memory_max_tokens=BUDGET, conditions=["message.role != 'tool'"])
    summarizer = SummarizerStrategy(interaction_threshold_qty=len(LENGTHS), interaction_keep=KEEP)
    neuralyzer = NeuralyzerStrategy(interaction_threshold_qty=len(LENGTHS), interaction_keep=KEEP)
    rows = {
        "No strategy: everything is sent": range(len(PARTS)),
        f"max_tokens, {BUDGET} tokens: the newest interactions that fit": within.plan(MESSAGES, _count).places,
        "max_tokens without tool messages: there is more room": without_tools.plan(MESSAGES, _count).places,
        f"summarizer, interaction_keep={KEEP}: a summary and the newest": summarizer.plan(MESSAGES, count=_count).kept,
        f"neuralyzer, interaction_keep={KEEP}: the newest only": neuralyzer.plan(MESSAGES, count=_count).kept,
    }
    for number, (words, kept) in enumerate(rows.items()):
        _row(picture, number, words, kept, "Summary" if words.startswith("summarizer") else None)
    return picture


def _row(picture: Picture, number: int, words: str, kept: Any, replacement: str | None = None) -> None:
    top = 34 + number * ROW
    picture.text(LEFT, top, words, "title", room=560)
    x, edge, stays = float(LEFT), float(LEFT), set(kept)
    for place, part in enumerate(PARTS):
        if place and PARTS[place - 1].interaction != part.interaction:
            x += GAP
        width = part.tokens * WIDTH_OF_A_TOKEN
        kind = "dashed" if place not in stays else "amber" if part.is_of_tool else "blue"
        picture.box(x, top + 12, width, HEIGHT, kind, radius=4)
        x += width
        edge = edge if place in stays else x
    if replacement is not None:
        picture.box(LEFT, top + 12, edge - LEFT, HEIGHT, "green", radius=4)
        picture.text((LEFT + edge) / 2, top + 12 + HEIGHT / 2 + 5, replacement, anchor="middle", room=edge - LEFT)

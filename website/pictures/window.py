"""What the model gets of a long conversation: the window over turns, summary and budget."""

from __future__ import annotations

from website.pictures.drawing import Picture

TURNS = [30, 46, 36, 52, 34, 42, 58, 38, 66, 44, 50, 40]
"""How wide each turn is drawn: how many tokens it has."""

SUMMARIZED = 7
LEFT = 20
GAP = 2
SUMMARY = 108


def draw() -> Picture:
    picture = Picture(
        600,
        368,
        "The window of a conversation",
        "A conversation has twelve stored turns. Turns 0 to 6 were summarized; they stay stored. The model gets the "
        "summary, then turns 7 to 11 whole, then the new prompt. The summary and the turns together have at most "
        "max_tokens tokens. The facts of working memory go into the instructions, with at most max_fact_tokens tokens.",
    )
    picture.text(LEFT, 36, "What is stored: every turn", "title", room=420)
    _turns(picture, 50, 0, "faded", SUMMARIZED)
    _turns(picture, 50, SUMMARIZED, "blue", len(TURNS))
    end = _start(SUMMARIZED) - GAP
    middle = (LEFT + end) / 2
    picture.path(f"M{LEFT} 98v8H{end:g}v-8M{middle:g} 106v8")
    picture.text(middle, 134, "summarized once, and still stored", "small", anchor="middle", room=end - LEFT)
    picture.arrow(middle, 142, middle, 194)
    _window(picture, middle - SUMMARY / 2, 196)
    return picture


def _start(turn: int) -> float:
    return LEFT + sum(TURNS[:turn]) + GAP * turn


def _turns(picture: Picture, y: float, first: int, kind: str, end: int) -> None:
    for turn in range(first, end):
        picture.box(_start(turn), y, TURNS[turn], 44, kind, radius=5)
        picture.text(_start(turn) + TURNS[turn] / 2, y + 27, str(turn), "small", anchor="middle", room=TURNS[turn])


def _window(picture: Picture, start: float, top: float) -> None:
    picture.text(_start(len(TURNS)) - GAP, top - 16, "What the model gets", "title", anchor="end", room=260)
    picture.box(start, top, SUMMARY, 44, "green", radius=5)
    picture.text(start + SUMMARY / 2, top + 27, "Summary", anchor="middle", room=SUMMARY)
    picture.path(f"M{start + SUMMARY + GAP:g} {top + 22:g}H{_start(SUMMARIZED) - GAP:g}", "dashed")
    _turns(picture, top, SUMMARIZED, "blue", len(TURNS))
    end = _start(len(TURNS)) - GAP
    picture.path(f"M{start:g} {top + 50:g}v8H{end:g}v-8")
    words = "the window: at most max_tokens, turns are whole"
    picture.text((start + end) / 2, top + 78, words, "small", anchor="middle", room=end - start)
    picture.card(LEFT, top + 108, 330, 44, "amber", ("Facts, at most max_fact_tokens", ""))
    picture.card(LEFT + 346, top + 108, 214, 44, "box", ("The new prompt", ""))

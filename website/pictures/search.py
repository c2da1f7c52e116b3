"""The two stages of a search: the database gives candidates, and Python ranks them."""

from __future__ import annotations

from website.pictures.drawing import Picture

LEFT, WIDTH = 16, 568
CARD = 262
COLUMNS = (LEFT + 14, LEFT + WIDTH - 14 - CARD)
"""Where the cards of words and those of meaning begin."""

Lines = tuple[tuple[str, str], ...]

QUESTION: tuple[Lines, Lines] = (
    (("its words, stemmed", ""),),
    (("its vector", ""),),
)
CANDIDATES: tuple[Lines, Lines] = (
    (
        ("Words", "title"),
        ("rare words have larger weights", "small"),
        ("the best 100 texts of the scope", "small"),
        ("and 3 neighbours on each side", "small"),
    ),
    (
        ("Vectors", "title"),
        ("all signatures of the scope", "small"),
        ("then the nearest 400 vectors", "small"),
        ("and 3 neighbours on each side", "small"),
    ),
)
RANKED: tuple[Lines, Lines] = (
    (
        ("The order for text", "title"),
        ("own words, or what neighbours lend", "small"),
        ("the person who is named, the length", "small"),
    ),
    (
        ("The order for meaning", "title"),
        ("cosine, or what neighbours lend", "small"),
        ("the length", "small"),
    ),
)


def draw() -> Picture:
    picture = Picture(
        600,
        530,
        "The two stages of a search",
        "A question becomes stemmed words, and a vector. In stage 1 the database gives candidates of the scope: the "
        "best 100 texts for the words, where rare words have larger weights, and by signatures the 400 texts whose "
        "vectors are nearest; each with up to 3 neighbours on each side. In stage 2 Python ranks them, in the same way "
        "for every database: for text by the words that a text has or that neighbours lend, the person who is named, "
        "and the length; for meaning by the cosine or what neighbours lend, and the length. Hybrid joins the two "
        "orders by their ranks, and gives back the best hits.",
    )
    _question(picture, 16)
    _stage(picture, 126, 150, "Stage 1: the database gives candidates", "amber", CANDIDATES)
    _stage(picture, 300, 128, "Stage 2: Python ranks them, alike for every database", "blue", RANKED)
    for x in COLUMNS:
        picture.arrow(x + CARD / 2, 430, x + CARD / 2, 450)
    lines = ("Hybrid joins both orders", "title"), ("by their ranks: the best hits first", "small")
    picture.card(LEFT, 452, WIDTH, 62, "green", *lines)
    return picture


def _question(picture: Picture, top: float) -> None:
    picture.box(LEFT, top, WIDTH, 88, "panel")
    picture.text(LEFT + 14, top + 25, "The question", "title", room=150)
    picture.text(LEFT + WIDTH - 14, top + 25, '"the name of Anna\'s dog"', "code", anchor="end", room=250)
    for x, lines in zip(COLUMNS, QUESTION, strict=True):
        picture.card(x, top + 38, CARD, 38, "box", *lines)


def _stage(picture: Picture, top: float, height: float, title: str, kind: str, cards: tuple[Lines, Lines]) -> None:
    """A panel with a card for words and one for meaning, and an arrow to each."""
    picture.box(LEFT, top, WIDTH, height, "panel")
    picture.text(LEFT + WIDTH / 2, top + 25, title, "title", anchor="middle", room=WIDTH - 28)
    for x, lines in zip(COLUMNS, cards, strict=True):
        picture.card(x, top + 38, CARD, height - 52, kind, *lines)
        middle = x + CARD / 2
        picture.arrow(middle, top - 22, middle, top - 2)

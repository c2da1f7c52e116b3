"""Who migrates the schema, and when: four ways to the same schema."""

from __future__ import annotations

from website.pictures.drawing import Picture

LEFT, WIDTH, ROW = 16, 568, 104
FIRST, SECOND = 274, 216

Step = tuple[str, tuple[str, str], tuple[str, str]]
"""The kind of its box, and two lines with their kinds."""

_SERVICE: Step = ("blue", ("the service starts", ""), ("migrate=False", "code"))

WAYS: list[tuple[str, Step, Step]] = [
    (
        "The library, on one machine",
        ("amber", ("the service starts", ""), ("and migrates by itself", "small")),
        ("amber", ("the service runs", ""), ("reads and writes", "small")),
    ),
    ("A pipeline", ("amber", ("the pipeline runs", ""), ("firefly-memory db upgrade", "code")), _SERVICE),
    (
        "The Alembic of your application",
        ("amber", ("your project runs", ""), ("alembic upgrade heads", "code")),
        _SERVICE,
    ),
    ("A database team", ("amber", ("the team runs the SQL of", ""), ("firefly-memory db sql", "code")), _SERVICE),
]


def draw() -> Picture:
    picture = Picture(
        600,
        56 + ROW * len(WAYS),
        "Who migrates the schema, and when",
        "Four ways. On one machine the library migrates when the service starts, and the role of the service may "
        "create tables. In the other three the service starts with migrate=False, after a pipeline has run "
        "firefly-memory db upgrade, or the application's own Alembic has run alembic upgrade heads, or a database team "
        "has run the SQL that firefly-memory db sql prints; the role of the service need not create tables.",
    )
    for number, way in enumerate(WAYS):
        _way(picture, 16 + ROW * number, *way)
    _legend(picture, 16 + ROW * len(WAYS))
    return picture


def _way(picture: Picture, top: float, title: str, *steps: Step) -> None:
    picture.box(LEFT, top, WIDTH, ROW - 12, "panel")
    picture.text(LEFT + 14, top + 24, title, "title", room=WIDTH - 28)
    x: float = LEFT + 14
    for (kind, *lines), width in zip(steps, (FIRST, SECOND), strict=True):
        picture.card(x, top + 34, width, 48, kind, *lines)
        x += width + 50
    end = LEFT + 14 + FIRST
    picture.arrow(end + 4, top + 58, end + 46, top + 58)


def _legend(picture: Picture, top: float) -> None:
    for x, kind, words in ((LEFT, "amber", "a role that may create tables"), (300, "blue", "a role that may not")):
        picture.box(x, top + 4, 18, 18, kind, radius=4)
        picture.text(x + 26, top + 18, words, "small", room=250)

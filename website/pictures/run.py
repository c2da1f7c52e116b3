"""One run of an agent with ``Memory``, a crash, and the next run."""

from __future__ import annotations

from website.pictures.drawing import Picture

LEFT, WIDTH = 16, 404
INSIDE, CARD = LEFT + 14, WIDTH - 28
SIDE = LEFT + WIDTH
DATABASE = 470


def draw() -> Picture:
    picture = Picture(
        600,
        472,
        "One run of an agent with Memory",
        "In process 1, agent.run() loads the conversation from the database: the newest turns that fit the budget, the "
        "summary and the facts. The model is asked and calls a tool. When the run ends, its turn is saved in the "
        "database: the prompt, the calls of tools with their results, and the answer, also if the run fails or is "
        "cancelled. Then process 1 is killed. In process 2 the next agent.run() loads the same conversation, and the "
        "agent goes on.",
    )
    _first_process(picture)
    _crash(picture, 315)
    _second_process(picture)
    _database(picture)
    return picture


def _first_process(picture: Picture) -> None:
    picture.box(LEFT, 16, WIDTH, 276, "panel")
    picture.text(INSIDE, 40, "Process 1", "title", room=100)
    picture.text(SIDE - 14, 40, 'agent.run("My name is Ada.")', "code", anchor="end", room=250)
    said = ("turns in the budget, summary, facts", "small")
    picture.card(INSIDE, 54, CARD, 56, "blue", ("Load the conversation", "title"), said)
    picture.arrow(DATABASE, 82, SIDE - 12, 82)
    half = (CARD - 44) / 2
    picture.arrow(INSIDE + half / 2, 110, INSIDE + half / 2, 130)
    picture.card(INSIDE, 130, half, 56, "box", ("The model", "title"), ("is asked", "small"))
    tool = INSIDE + half + 44
    picture.arrow(INSIDE + half + 4, 150, tool - 4, 150)
    picture.arrow(tool - 4, 168, INSIDE + half + 4, 168)
    picture.card(tool, 130, half, 56, "box", ("A tool", "title"), ("is called", "small"))
    picture.arrow(INSIDE + half / 2, 186, INSIDE + half / 2, 206)
    said = ("prompt, tool calls, results, answer", "small")
    even_so = ("also if the run fails or is cancelled", "small")
    picture.card(INSIDE, 206, CARD, 74, "green", ("Save the turn", "title"), said, even_so)
    picture.arrow(SIDE - 14, 243, DATABASE, 243)


def _crash(picture: Picture, y: float) -> None:
    for start, count in ((LEFT + 4, 6), (SIDE - 60, 5)):
        points = [(start + 14 * number, y + (5 if number % 2 else -5)) for number in range(count)]
        picture.path(f"M{'L'.join(f'{x:g} {height:g}' for x, height in points)}", "red")
    picture.text(LEFT + 88, y + 5, "kill -9, a crash, a deployment", "bad", room=250)


def _second_process(picture: Picture) -> None:
    picture.box(LEFT, 338, WIDTH, 118, "panel")
    picture.text(INSIDE, 362, "Process 2", "title", room=100)
    picture.text(SIDE - 14, 362, 'agent.run("What is my name?")', "code", anchor="end", room=250)
    said = ("the model sees what was said in process 1", "small")
    picture.card(INSIDE, 376, CARD, 66, "blue", ("Load the conversation, and go on", "title"), said)
    picture.arrow(DATABASE, 409, SIDE - 12, 409)


def _database(picture: Picture) -> None:
    width = 600 - 16 - DATABASE
    picture.cylinder(DATABASE, 16, width, 440, "amber")
    middle = DATABASE + width / 2
    for y, words in ((142, "Your"), (163, "database")):
        picture.text(middle, y, words, "title", anchor="middle", room=width)
    for number, words in enumerate(("SQLite", "PostgreSQL", "MongoDB", "JSON files")):
        picture.text(middle, 294 + 20 * number, words, "small", anchor="middle", room=width)

"""Writes the pictures: ``python -m website.pictures``. A test compares the files with what is drawn here."""

from __future__ import annotations

from website.paths import DOCS
from website.pictures import facts, feeds, migrations, run, search, strategies, window

FOLDER = DOCS / "pictures"
PICTURES = {
    "run.svg": run.draw,
    "window.svg": window.draw,
    "migrations.svg": migrations.draw,
    "search.svg": search.draw,
    "strategies.svg": strategies.draw,
    "feeds.svg": feeds.draw,
    "facts.svg": facts.draw,
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw().svg())


if __name__ == "__main__":
    main()

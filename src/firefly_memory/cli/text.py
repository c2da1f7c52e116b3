"""Contents as a terminal cannot take them for something else: no escape sequence and no control character is sent."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator


class Shown(str):
    """Text that is for the terminal as it is: made here, with the contents in it made safe."""

    __slots__ = ()


def on_one_line(text: str) -> str:
    """``text`` with all that cannot be printed written out: names in a database may have any character."""
    return "".join(each if each.isprintable() else _written_out(each) for each in text)


def printable(text: str) -> Shown:
    """The same, but for the ends of lines and tabs. What is :class:`Shown` stays."""
    if isinstance(text, Shown):
        return text
    return Shown("".join(each if each.isprintable() or each in "\n\t" else _written_out(each) for each in text))


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode()


def width_of(text: str) -> int:
    """How many columns of a terminal it takes."""
    return sum(map(_width, text))


def cut(text: str, width: int) -> str:
    """At most ``width`` columns of it; an ellipsis says that there is more."""
    if width_of(text) <= width:
        return text
    return f"{next(chunks(text, width - 1), '')}…" if width > 1 else "…"[:width]


def chunks(text: str, width: int) -> Iterator[str]:
    """Its parts of at most ``width`` columns, or of one character that takes more."""
    part, used = "", 0
    for each in text:
        if part and used + _width(each) > width:
            yield part
            part, used = "", 0
        part, used = part + each, used + _width(each)
    if part:
        yield part


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1

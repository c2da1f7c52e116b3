"""What an error shows, with all that led to it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator


def shown_by(error: BaseException) -> str:
    """Its traceback, and the texts and attributes of every error behind it, also of those that a traceback leaves out."""
    return "".join(traceback.format_exception(error)) + "".join(
        f"{each} {each!r} {vars(each)}" for each in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    if error is not None:
        yield error
        yield from _chain(error.__cause__)
        yield from _chain(error.__context__)

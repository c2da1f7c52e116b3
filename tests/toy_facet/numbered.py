"""Names with a number, ``define_3``, for the dotted names of a toy's declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def numbered(name: str, makers: dict[str, Callable[[int], Any]]) -> Any:
    """For a module's ``__getattr__``: what the maker called ``define`` makes of 3."""
    maker, _, number = name.rpartition("_")
    if maker not in makers or not number.isdigit():
        raise AttributeError(name)
    return makers[maker](int(number))

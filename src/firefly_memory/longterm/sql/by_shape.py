"""Statements that depend on more than their parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from firefly_memory.databases.sql.compiled_statement import Statement

S = TypeVar("S", bound=Hashable)


class ByShape(dict[S, Statement]):
    """The statement for each shape, made when it is first asked for."""

    def __init__(self, make: Callable[[S], Statement]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, shape: S) -> Statement:
        made = self[shape] = self._make(shape)
        return made

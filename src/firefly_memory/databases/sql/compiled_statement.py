"""One statement, compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import CompilerElement


class Statement:
    """One statement's text for one driver, and what makes its parameters of values."""

    __slots__ = ("parameters", "sql")

    parameters: Callable[[Mapping[str, Any]], Any]

    def __init__(self, construct: CompilerElement, dialect: Dialect) -> None:
        compiled = construct.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        self.sql: str = str(compiled)
        in_order = _by_name if compiled.positiontup is None else _by_position(compiled.positiontup)
        constants = {name: value for name, value in compiled.params.items() if value is not None}
        self.parameters = (lambda values: in_order({**constants, **values})) if constants else in_order


def _by_name(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return values


def _by_position(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple([values[name] for name in names])

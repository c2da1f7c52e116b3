"""One statement, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import CompilerElement


class Statement:
    """One statement's text for one driver, and the order its parameters go in."""

    __slots__ = ("_constants", "_order", "sql")

    def __init__(self, construct: CompilerElement, dialect: Dialect) -> None:
        compiled = construct.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        self.sql = str(compiled)
        self._order = tuple(compiled.positiontup) if compiled.positiontup is not None else None
        self._constants = {name: value for name, value in compiled.params.items() if value is not None}

    def parameters(self, values: Mapping[str, Any]) -> Any:
        if self._constants:
            values = {**self._constants, **values}
        return values if self._order is None else tuple([values[name] for name in self._order])

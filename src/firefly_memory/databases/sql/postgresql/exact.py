"""Statements for which PostgreSQL's own functions and operators fit exactly, so that nobody's can fit better.

SQLAlchemy sends text as VARCHAR. PostgreSQL has no function and no operator for that type, and takes those for TEXT;
if somebody has made one for VARCHAR in a schema of the search path, it takes that instead.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.types import NullType

_OF_EXTENSIONS = {"vector", "halfvec"}

_VARCHAR = re.compile(r"::VARCHAR(?=(?:\[\])*$)")


class _KnownTypes(dict[str, Any]):
    """SQLAlchemy's types by name, with those of columns that an accelerator has added, in whatever schema these are:
    without a type, SQLAlchemy warns."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, _OfExtension if name.rpartition(".")[2] in _OF_EXTENSIONS else default)


class _OfExtension(NullType):
    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()


def make_exact(dialect: Dialect) -> Dialect:
    """``dialect``, which from now on sends text as TEXT."""
    compiler: Any = dialect.statement_compiler

    class ExactCompiler(compiler):  # type: ignore[misc]
        def render_bind_cast(self, *args: Any, **kwargs: Any) -> str:
            return _VARCHAR.sub("::TEXT", super().render_bind_cast(*args, **kwargs))

    dialect.statement_compiler = ExactCompiler
    known: Any = dialect
    known.ischema_names = _KnownTypes(known.ischema_names)
    return dialect


def exact(dialect: Dialect) -> Dialect:
    """A copy of a dialect that is somebody else's, which sends text as TEXT."""
    return make_exact(copy.copy(dialect))

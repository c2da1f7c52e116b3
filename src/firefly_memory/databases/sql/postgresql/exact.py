"""Statements for which PostgreSQL's own functions and operators fit exactly, so that nobody's can fit better.

SQLAlchemy sends text as VARCHAR. PostgreSQL has no function and no operator for that type, and takes those for TEXT;
if somebody has made one for VARCHAR in a schema of the search path, it takes that instead.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from sqlalchemy import Dialect

_VARCHAR = re.compile(r"::VARCHAR(?=(?:\[\])*$)")


def make_exact(dialect: Dialect) -> Dialect:
    """``dialect``, which from now on sends text as TEXT."""
    compiler: Any = dialect.statement_compiler

    class ExactCompiler(compiler):  # type: ignore[misc]
        def render_bind_cast(self, *args: Any, **kwargs: Any) -> str:
            return _VARCHAR.sub("::TEXT", super().render_bind_cast(*args, **kwargs))

    dialect.statement_compiler = ExactCompiler
    return dialect


def exact(dialect: Dialect) -> Dialect:
    """A copy of a dialect that is somebody else's, which sends text as TEXT."""
    return make_exact(copy.copy(dialect))

"""Arrays as text, in PostgreSQL's own notation.

Before asyncpg sends its first array, it asks the server what such arrays are like, and that query is one that planted
operators fit (:mod:`~firefly_memory.databases.sql.search_path`). Every driver knows text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Text, bindparam, cast
from sqlalchemy.types import TypeEngine


def array_in(name: str, of: TypeEngine[Any]) -> ColumnElement[Any]:
    """The parameter ``name``, which :func:`array_text` made."""
    return cast(bindparam(name, type_=Text), ARRAY(of))


def array_text(values: Iterable[str | float | None]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: str | float | None) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "NULL" if value is None else repr(value)

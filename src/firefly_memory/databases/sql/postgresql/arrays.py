"""Arrays as text, in PostgreSQL's own notation.

Before asyncpg sends its first array, it asks the server what such arrays are like, and that query is one that planted
operators fit (:mod:`~firefly_memory.databases.sql.search_path`). Every driver knows text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

from sqlalchemy import ARRAY, ColumnElement, Text, bindparam, cast
from sqlalchemy.types import TypeEngine


def array_in(name: str, of: TypeEngine[Any]) -> ColumnElement[Any]:
    """The parameter ``name``, which :func:`array_text` made."""
    return cast(bindparam(name, type_=Text), ARRAY(of))


def array_text(values: Iterable[str | float | None]) -> str:
    given = list(values)
    if given and _are_plain(given):  # such as the words of a thousand texts
        return '{"' + '","'.join(given) + '"}'
    return "{" + ",".join(map(_element, given)) + "}"


def _are_plain(values: list[Any]) -> TypeGuard[list[str]]:
    """Whether all are texts in which nothing has to be escaped."""
    try:
        together = "".join(values)
    except TypeError:
        return False
    return '"' not in together and "\\" not in together


def _element(value: str | float | None) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "NULL" if value is None else repr(value)

"""Ids of rows: one text, whatever identifies a row.

The parts stand one after the other, with a slash between: ``notes/0192…``. In all parts but the last, ``%`` and ``/``
are written ``%25`` and ``%2F``, so that every text is the id of one row only.
"""

from __future__ import annotations

from firefly_memory.errors import InvalidEntryError
from firefly_memory.looking import Resource, Row, RowId


def id_of(resource: Resource, row: Row) -> str:
    """The id of a row."""
    *parents, last = ("" if row[name] is None else str(row[name]) for name in resource.identity)
    return "/".join([*(each.replace("%", "%25").replace("/", "%2F") for each in parents), last])


def parts_of(resource: Resource, row_id: str) -> RowId:
    """What the id says; ``InvalidEntryError`` if it cannot be one."""
    if not isinstance(row_id, str) or not row_id:
        raise InvalidEntryError("id", "must be a text that is not empty")
    *parents, last = row_id.split("/", len(resource.identity) - 1)
    if len(parents) + 1 != len(resource.identity):
        raise InvalidEntryError("id", f"of {resource.kind} is {'/'.join(resource.identity).upper()}, not {row_id!r}")
    return (*(each.replace("%2F", "/").replace("%25", "%") for each in parents), last)

"""Which tables the statements of a migration make, rename and drop, and which columns they add.

A table has its name; a column that is added has that of its table before it: ``memory_conversations.owner``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from firefly_memory.databases.sql.schema.metadata import VERSION_TABLE

_CREATES = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(?P<made>\S+)", re.IGNORECASE)
_RENAMES = re.compile(r"ALTER TABLE (?P<gone>\S+) RENAME TO (?P<made>\S+)", re.IGNORECASE)
_DROPS = re.compile(r"DROP TABLE (?:IF EXISTS )?(?P<gone>\S+)", re.IGNORECASE)
_ADDS_COLUMNS = re.compile(r"ALTER TABLE (?P<gains>\S+) ADD COLUMN (?P<column>\S+)", re.IGNORECASE)
_DROPS_COLUMNS = re.compile(r"ALTER TABLE (?P<loses>\S+) DROP COLUMN", re.IGNORECASE)


class _Change(NamedTuple):
    gone: str | None = None
    made: str | None = None
    loses: str | None = None
    """The table that loses columns."""


def made_by(steps: Iterable[str]) -> Iterator[str]:
    """The names that tables and added columns get by these statements, without the table that revisions are recorded
    in."""
    yield from (change.made for change in _changes(steps) if change.made is not None)


def tables_after(steps: Iterable[str], tables: Iterable[str] = ()) -> set[str]:
    """The tables and added columns that are there after these statements, if ``tables`` were there before them."""
    there = set(tables)
    for change in _changes(steps):
        if change.gone is not None:
            columns = {name for name in there if name.startswith(f"{change.gone}.")}
            there -= {change.gone, *columns}
            if change.made is not None:
                there |= {change.made + name.removeprefix(change.gone) for name in columns}
        if change.made is not None:
            there.add(change.made)
    return there


def losses_of(steps: Iterable[str]) -> list[str]:
    """The tables that are dropped, or lose columns: each once, under the name that it has before the statements."""
    before: dict[str, str] = {}
    lost: dict[str, None] = {}
    for change in _changes(steps):
        if change.gone is not None and change.made is not None:
            before[change.made] = before.pop(change.gone, change.gone)
        elif change.gone is not None or change.loses is not None:
            name = change.gone or change.loses or ""
            lost[before.get(name, name)] = None
    return list(lost)


def _changes(steps: Iterable[str]) -> Iterator[_Change]:
    for step in steps:
        for pattern in (_CREATES, _RENAMES, _DROPS, _ADDS_COLUMNS, _DROPS_COLUMNS):
            found = pattern.match(step)
            if found is not None:
                names = {what: name.rpartition(".")[2].strip('"') for what, name in found.groupdict().items()}
                if "column" in names:
                    names = {"made": f"{names['gains']}.{names['column']}"}
                if VERSION_TABLE not in names.values():
                    yield _Change(**names)

"""The revisions of a database that is named by its URL only, and what revisions make."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager, redirect_stdout
from functools import cache

from firefly_memory.cli import main
from firefly_memory.databases.sql.schema.commands import Administration
from firefly_memory.schema import REVISIONS
from firefly_memory.target import Target, migrations_of
from firefly_memory.urls import row_of


def migrations(url: str, *, timeout: float) -> AbstractContextManager[Administration]:
    """What ``firefly-memory db`` works with."""
    return migrations_of(Target(row_of(url).kind, url, {}, None), timeout=timeout)


@cache
def first_made(after: str, up_to: str) -> str | None:
    """The first table or column that is made between two revisions, as errors name it; ``None`` if none is made."""
    script = io.StringIO()
    with redirect_stdout(script):
        assert main(["db", "sql", f"{after}:{up_to}", "--dialect", "sqlite"]) == 0
    made = re.search(
        r"CREATE TABLE (?P<table>\w+)|ALTER TABLE (?P<of>\w+) ADD COLUMN (?P<column>\w+)", script.getvalue()
    )
    if made is None:
        return None
    return f"table {made['table']}" if made["table"] else f"column {made['column']} of {made['of']}"


def making(since: str) -> list[tuple[str, str]]:
    """The revisions from ``since`` on that make a table or a column, each with the one before it."""
    pairs = list(zip(REVISIONS[1:], REVISIONS, strict=False))
    return [(each, before) for each, before in pairs[REVISIONS.index(since) - 1 :] if first_made(before, each)]

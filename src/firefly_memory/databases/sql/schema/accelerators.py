"""Indexes that an extension of the database makes possible, and without which a search has the same hits, or fewer.

They are switched on and off in the database alone. Writers know nothing of them: the database keeps them in step.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sqlalchemy import Connection

from firefly_memory.databases.diagnostics import Difference
from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.facets import all_facets

Progress = Callable[[str, int], None]
"""Is called with the kind of the rows, and with the number of those that were prepared so far."""


class AcceleratorState(StrEnum):
    """How an accelerator is in a database."""

    ENABLED = "enabled"
    BROKEN = "broken"
    DISABLED = "disabled"
    NOT_OFFERED = "not offered"
    """The server does not have the extension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator of one kind of rows, as it is in a database."""

    kind: str
    """The kind of the rows, such as ``chunks``."""
    name: str
    """``pgvector`` or ``pg_trgm``."""
    state: AcceleratorState
    embedder: str | None = None
    """Whose vectors it is for."""
    problem: str = ""
    """What is wrong, or missing, in words."""

    @property
    def command(self) -> str:
        """What makes it, or makes it again."""
        of = f" --embedder-name {shlex.quote(self.embedder)}" if self.embedder else ""
        return f"firefly-memory index enable {self.name} --kind {self.kind}{of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be switched on or off."""

    name: str
    embedder: str | None
    """``None`` stands for all, when they are switched off."""
    dimensions: int | None
    """Of the embedder, if that is known."""


class Accelerators(Protocol):
    """Those of one kind of rows. A facet declares them; ``connection`` is in autocommit mode where it is to write."""

    @property
    def kind(self) -> str: ...

    def names(self, dialect: str) -> Sequence[str]:
        """Those that the dialect can have."""

    def states(self, connection: Connection, schema_name: str | None) -> Sequence[Accelerator]:
        """Each that the dialect can have."""

    def enable(
        self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float, progress: Progress | None
    ) -> None:
        """Make it, or what is missing of it. ``timeout`` is for the locks of others."""

    def disable(self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float) -> None:
        """Take it away. What is not there is no error."""

    def owns(self, name: str) -> bool:
        """Whether a column or an index of this name may be one of an accelerator."""


def registered_accelerators() -> list[Accelerators]:
    """Those of every facet."""
    declared = (facet.stored("accelerators") for facet in all_facets())
    return [each for each in declared if each is not None]


def is_of_an_accelerator(name: str | None) -> bool:
    """Whether a column or an index of this name, on one of our tables, may be one of an accelerator."""
    return name is not None and any(each.owns(name) for each in registered_accelerators())


def broken_accelerators(connection: Connection, schema_name: str | None) -> Iterator[Difference]:
    """Those that were switched on, and do not work."""
    for accelerators in registered_accelerators():
        for each in accelerators.states(connection, schema_name):
            if each.state is AcceleratorState.BROKEN:
                of = f" for the embedder {each.embedder!r}" if each.embedder else ""
                what = f"accelerator {each.name} of {each.kind}{of}"
                yield Difference(what, each.problem, "complete", f"-- run `{each.command}`")

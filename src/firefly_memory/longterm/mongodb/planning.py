"""What a writer of facts is to do, given those that are there."""

from __future__ import annotations

from typing import NamedTuple

from pymongo import UpdateOne

from firefly_memory.longterm.mongodb import documents
from firefly_memory.longterm.mongodb.finding import There
from firefly_memory.longterm.rows import FactRow, FactWrite, VersionRow, Written, updated
from firefly_memory.search.index import Vector
from firefly_memory.search.mongodb.vectors import Embedded


class Planned(NamedTuple):
    """What is to be done for one fact."""

    written: Written
    write: UpdateOne | None = None
    old: FactRow | None = None
    """What it changes."""
    version: VersionRow | None = None
    vector: Vector | None = None
    loses_vectors: bool = False
    """Whether there may be vectors of the old value."""
    is_found_by_eraser: bool = False
    """Whether somebody who erases the person whose data is written finds the fact before it is written."""

    @property
    def is_said_anew(self) -> bool:
        """Whether the fact gets another value, or its first one."""
        return self.old is None or self.version is not None

    @property
    def needs_no_transaction(self) -> bool:
        """Whether nothing but the fact itself is written, and no merge of people can miss it: a fact that is there is
        written by the merge as well, and a new one outside of people's places stays where it is."""
        is_one_document = self.version is None and self.vector is None
        return is_one_document and (self.old is not None or self.written.row.fact_scope != "user")

    def embedded(self) -> Embedded:
        """The vector of the fact."""
        assert self.vector is not None
        return documents.embedded(self.written.row, self.vector)


def planned(write: FactWrite, there: There | None) -> Planned:
    """What is to be done for a fact if this one is ``there``."""
    row, vector = write.row, write.vector
    if there is None:
        return Planned(Written(row, "created"), documents.making(row, vector), vector=vector)
    old = there.row
    if old.written_by == row.written_by:  # it was done, and only the answer was lost
        return Planned(Written(old, "created" if old.id == row.id else "updated"))
    if not write.overwrite:
        return Planned(Written(old, "skipped"))
    new, version = updated(old, write)
    # A new vector must not meet one that an interrupted write has left.
    loses_vectors = version is not None and (there.has_vectors or vector is not None)
    without_vectors = version is not None and not loses_vectors
    change = documents.overwriting(old, new, vector, without_vectors=without_vectors)
    return Planned(Written(new, "updated"), change, old, version, vector, loses_vectors, row.owner == old.owner)

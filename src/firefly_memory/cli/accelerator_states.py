"""Accelerators as ``firefly-memory index status`` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from firefly_memory.databases.sql.schema.switching import states
from firefly_memory.target import Target, database_of

if TYPE_CHECKING:
    from firefly_memory.databases.sql.schema.accelerators import Accelerator


def states_in(target: Target, timeout: float) -> tuple[Accelerator, ...]:
    """Every accelerator that the store can have; none where there are no accelerators."""
    if target.row.database is None:
        return ()
    with database_of(target, timeout, reading=True) as (engine, db_name):
        return states(engine, db_name)


def as_json(found: Iterable[Accelerator]) -> list[dict[str, Any]]:
    return [
        {
            "kind": each.kind,
            "name": each.name,
            "state": each.state.value,
            "embedder": each.embedder,
            "problem": each.problem or None,
        }
        for each in found
    ]


def in_words(found: Iterable[Accelerator]) -> Iterator[str]:
    for each in found:
        of = f" for the embedder {each.embedder}" if each.embedder else ""
        problem = f": {each.problem}" if each.problem else ""
        yield f"{each.kind}: {each.name} is {each.state.value}{of}{problem}"

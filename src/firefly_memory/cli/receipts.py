"""How many rows of each kind a command has deleted, or would delete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def lines_of(rows: Mapping[str, int], what: str, *, nothing: str) -> Iterator[str]:
    """A line for each kind; ``nothing`` says why there is none."""
    some = {kind: number for kind, number in rows.items() if number}
    if not some:
        yield f"{what} nothing: {nothing}"
    for kind, number in some.items():
        yield f"{what} {number_of_rows(number)} of {kind}"


def number_of_rows(rows: int) -> str:
    return f"{rows:,} {'row' if rows == 1 else 'rows'}"

"""The search for a text among values of Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence


def rows_with(forms: Sequence[str], values: object, seen: set[int]) -> int:
    """How many of the named tuples among these values, at any depth, and of the texts outside of them, have a form.

    What is in ``seen``, by its ``id()``, was counted already.
    """
    if isinstance(values, str):
        return any(form in values for form in forms)
    if id(values) in seen or callable(values):
        return 0
    seen.add(id(values))
    rows = sum(rows_with(forms, each, seen) for each in _parts(values))
    return min(rows, 1) if hasattr(values, "_fields") else rows


def _parts(values: object) -> Iterator[object]:
    if isinstance(values, Mapping):
        for pair in values.items():
            yield from pair
    elif isinstance(values, Iterable) and not isinstance(values, bytes):
        yield from values
    elif hasattr(values, "__dict__"):
        yield from vars(values).values()

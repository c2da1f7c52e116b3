"""The checks, a file for each group of rules. Importing this registers all of them."""

from firefly_memory.testing.rules import (
    atomicity,
    bounds,
    concurrency,
    expiry,
    isolation,
    order,
    trouble,
    upsert,
    values,
)

__all__ = [
    "atomicity",
    "bounds",
    "concurrency",
    "expiry",
    "isolation",
    "order",
    "trouble",
    "upsert",
    "values",
]

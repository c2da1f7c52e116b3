"""The checks, a file for each group of rules. Importing this registers all of them."""

from firefly_memory.testing.rules import (
    atomicity,
    bounds,
    concurrency,
    conversations,
    expiry,
    exports,
    forks,
    isolation,
    order,
    reserved,
    trouble,
    upsert,
    values,
    windows,
    working,
)

ENTRIES = (atomicity, bounds, concurrency, expiry, isolation, order, reserved, trouble, upsert, values)
CONVERSATIONS = (conversations, exports, forks, windows, working)

__all__ = ["CONVERSATIONS", "ENTRIES"]

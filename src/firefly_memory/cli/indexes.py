"""What ``firefly-memory db`` does with the indexes of a MongoDB database, which has no schema."""

from __future__ import annotations

from typing import Any

from firefly_memory.cli.differences import as_json, in_words
from firefly_memory.cli.exits import Exit
from firefly_memory.cli.output import show
from firefly_memory.cli.target import Where
from firefly_memory.databases.diagnostics import MISSING, Difference
from firefly_memory.target import store_of


def make(where: Where) -> Exit:
    with store_of(where.target(), timeout=where.timeout, migrate=True):
        pass
    show({"indexes": "there"}, ["every index is there"])
    return Exit.DONE


def check(where: Where) -> Exit:
    found = _differences(where)
    is_behind = bool(found) and all(each.found == MISSING for each in found)
    lines = in_words(found) or ["every index is as it should be"]
    if is_behind:
        lines.append(where.advised("run `firefly-memory db upgrade` to make them"))
    show({**_state(found), "differences": as_json(found)}, lines)
    return Exit.BEHIND if is_behind else Exit.DRIFT if found else Exit.DONE


def say_whether_there(where: Where) -> Exit:
    state = _state(_differences(where))
    is_behind = state["state"] == "behind"
    missing = where.advised("indexes are missing; run `firefly-memory db upgrade` to make them")
    show(state, [missing if is_behind else "every index is there"])
    return Exit.BEHIND if is_behind else Exit.DONE


def _differences(where: Where) -> list[Difference]:
    found = where.target()
    store: Any = store_of(found, timeout=where.timeout, migrate=False)
    try:
        differences: list[Difference] = found.row.load("indexes")(store.database)
        return differences
    finally:
        store.close_sync()


def _state(found: list[Difference]) -> dict[str, Any]:
    """As a schema has it."""
    is_behind = any(each.found == MISSING for each in found)
    return {"revision": None, "head": None, "state": "behind" if is_behind else "current", "pending": []}

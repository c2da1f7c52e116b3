"""The ids of facts: made from scope and key, and closed to whoever may choose an ``entry_id``.

An id belongs to one namespace (rule R3): who could save another entry under the id of a fact would keep the fact from
being set, and could find out which keys there are.
"""

from __future__ import annotations

import hashlib
import re

from firefly_memory.errors import InvalidEntryError
from firefly_memory.names import stored_name
from firefly_memory.scopes import NAMESPACE

PREFIX = "fact:"

FIRST, LAST = PREFIX, "fact;"
"""Every id of a fact is between these, by code point."""

_DIGEST = re.compile("[0-9a-f]{64}")

_KEPT = 400  # characters of an id that makes way


def fact_id(namespace: str, key: str) -> str:
    """The id of a fact's entry: made from scope and key, so that every writer of a key writes the same one."""
    name = f"{namespace}\x00{stored_name('key', key)}"
    return PREFIX + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def check_entry_id(namespace: str, key: str | None, entry_id: str) -> None:
    """:class:`InvalidEntryError` if the id is of a fact, but not of the one with this namespace and key."""
    if not entry_id.startswith(PREFIX) or (key is not None and entry_id == fact_id(namespace, key)):
        return
    problem = "begins with 'fact:', which only the fact of its own namespace and key may have; use another id"
    raise InvalidEntryError("entry_id", problem)


def id_of_today(namespace: str, key: str | None, entry_id: str) -> str:
    """``entry_id``, or, for a fact that has the id of before revision 0004, the one that it has since."""
    if key is None or not namespace.startswith(NAMESPACE) or not _DIGEST.fullmatch(entry_id):
        return entry_id
    today = fact_id(namespace, key)
    return today if today == PREFIX + entry_id else entry_id


def id_out_of_the_way(entry_id: str, mark: str) -> str:
    """A new id for an entry that was saved under one of a fact before these were closed."""
    return f"renamed:{mark}:{entry_id[:_KEPT]}"

"""The ids of facts: made from scope and key, and closed to whoever may choose an ``entry_id``.

An id belongs to one namespace (rule R3): who could save another entry under the id of a fact would keep the fact from
being set, and could find out which keys there are.
"""

from __future__ import annotations

import hashlib
import re

from firefly_memory.entries.scopes import NAMESPACE
from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import ESCAPE, original_name, stored_name, stored_text

PREFIX = "fact:"

_DIGEST = re.compile("[0-9a-f]{64}")

_KEPT = 400  # characters of an id that makes way


def fact_id(namespace: str, key: str) -> str:
    """The id of a fact's entry: made from scope and key, so that every writer of a key writes the same one."""
    name = f"{namespace}\x00{stored_name('key', key)}"
    return PREFIX + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def check_entry_id(namespace: str, key: str | None, entry_id: str) -> None:
    """:class:`InvalidEntryError` if the id is of a fact, but not of the one with this namespace and key."""
    if not _is_of_another_fact(namespace, key, entry_id):
        return
    problem = "begins with 'fact:', which only the fact of its own namespace and key may have; use another id"
    raise InvalidEntryError("entry_id", problem)


def _is_of_another_fact(namespace: str, key: str | None, entry_id: str) -> bool:
    return entry_id.startswith(PREFIX) and entry_id != own_id(namespace, key)


def own_id(namespace: str, key: str | None) -> str | None:
    """The id that a fact with this namespace and key has; ``None`` if no fact can have them."""
    try:
        return None if key is None else fact_id(namespace, key)
    except InvalidEntryError:
        return None


def id_of_today(namespace: str, key: str | None, entry_id: str) -> str:
    """``entry_id``, or the one that the entry has since revision 0004, the same every time: a fact, that of its
    namespace and key; another entry under the id of a fact, one that is out of the way."""
    if _is_of_another_fact(namespace, key, entry_id):
        return original_name(id_out_of_the_way(stored_text(entry_id), mark_of(namespace, entry_id)))
    if key is None or not namespace.startswith(NAMESPACE) or not _DIGEST.fullmatch(entry_id):
        return entry_id
    today = own_id(namespace, key)
    return today if today is not None and today == PREFIX + entry_id else entry_id


def id_out_of_the_way(stored_id: str, mark: str) -> str:
    """A new id for an entry that was saved under one of a fact before these were closed. Both are in stored form."""
    kept = stored_id
    if len(stored_id) > _KEPT:
        kept = stored_id[:_KEPT].partition(ESCAPE)[0]  # half an escape would be another name
    return f"renamed:{mark}:{kept}"


def mark_of(*names: str) -> str:
    """32 characters that are the same for the same names."""
    return hashlib.sha256("\x00".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:32]

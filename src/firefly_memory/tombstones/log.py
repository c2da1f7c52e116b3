"""Tombstones: what is left of an erased person, so that nothing is written about this person again.

A tombstone is a keyed hash (HMAC-SHA256) of an identity: the id of a person, a conversation, a history or a namespace.
The key is random and belongs to the database, so a tombstone tells no name to anybody who has not got that name and the
database already. Each write that could bring an erased identity back looks for its tombstone in its own statement.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from firefly_memory.facets import LogOf

KEY = "key"
"""In the place of a tombstone: the key that they are made with."""


class Identity(NamedTuple):
    """What can be erased. ``name`` is in its stored form."""

    kind: str
    """``owner``, ``conversation``, ``namespace``, ``agent-history``; facets may have kinds of their own."""
    name: str


def owner_identity(owner: str) -> Identity:
    return Identity("owner", owner)


def conversation_identity(conversation_id: str) -> Identity:
    return Identity("conversation", conversation_id)


def namespace_identity(namespace: str) -> Identity:
    """Of a scope of working memory. Namespaces of entries are never erased for good."""
    return Identity("namespace", namespace)


def history_identity(conversation_id: str) -> Identity:
    return Identity("agent-history", conversation_id)


def tombstone(key: str, identity: Identity) -> str:
    """What is stored of an identity."""
    return hmac.digest(key.encode(), f"{identity.kind}\0{identity.name}".encode(), "sha256").hex()


class TombstoneLog(Protocol):
    """The tombstones of one store."""

    async def add(self, identities: Sequence[Identity], owner: str, now: datetime) -> None:
        """Refuse these identities, which belong to ``owner``, from now on; those that are refused already stay so.

        A write that was under way has ended when this returns, and can be found and deleted. Every later one raises
        ``ErasedError``. Durable when it returns.
        """

    async def are_there(self, identities: Sequence[Identity]) -> bool:
        """Whether one of these identities is refused."""

    async def remove(self, owner: str) -> int:
        """Refuse this person, and what belonged to them, no longer; how many tombstones there were."""

    async def find_text(self, text: str) -> Sequence[tuple[str, int]]:
        """Every place in the store that has the text, and in how many of its rows, documents or files. It reads all
        there is: a table or collection of somebody else's in the same schema or database as well."""

    async def scrub(self) -> None:
        """Overwrite what deleted rows have left behind, as far as the database can without stopping others."""


TOMBSTONES: LogOf[TombstoneLog] = LogOf("tombstones")
"""``view.log(TOMBSTONES)``: the tombstones of a store."""

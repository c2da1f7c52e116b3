"""What a database offers, so that :class:`~firefly_memory.entries.store_operations.RecordView` makes a store of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from firefly_memory.codec import Form
from firefly_memory.entries.record import Position, ReadInstant, Record, Row
from firefly_memory.facets import FacetLogs, Purged
from firefly_memory.protocols import Capability


class Backend(Protocol):
    """One mode of one place. Names are in their stored form, records encoded by ``form``, ``now`` is in UTC.

    "Live" is an entry without ``expires_at``, or with one after ``now``; the others count as not there (rule R6).
    """

    @property
    def form(self) -> Form: ...

    @property
    def read_instant(self) -> ReadInstant:
        """How the instants of the rows this place returns are read."""

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def log(self) -> FacetLogs:
        """The operations of the other facets in this place."""

    async def initialize(self, migrate: bool | None) -> None: ...

    async def close(self) -> None: ...

    async def save(self, record: Record, now: datetime) -> None:
        """Insert, or replace all but ``created_at``; ``EntryOwnershipError`` if another namespace has the id."""

    async def save_if(self, record: Record, expected: Any, now: datetime) -> bool:
        """:meth:`save`, if the live record with its id has the encoded content ``expected`` or, for ``SAME_METADATA``,
        the metadata of ``record``; or if, for ``ABSENT``, no namespace has one. ``False``, and nothing is written,
        otherwise."""

    async def save_many(self, records: list[Record], now: datetime) -> None:
        """:meth:`save` for each of ``records``, whose ids are all different; all or nothing."""

    async def scan(self, namespace: str, limit: int | None, after: Position | None, now: datetime) -> Sequence[Row]:
        """The first ``limit`` live records after a position, in order."""

    async def scan_several(self, namespaces: list[str], now: datetime) -> Sequence[Row]:
        """All live records of several namespaces, those of each in order."""

    async def newest(self, namespace: str, key: str, now: datetime) -> Row | None:
        """The last live record with ``key``, in order."""

    async def delete(self, namespace: str, entry_id: str, now: datetime) -> None:
        """Delete one record."""

    async def delete_many(self, namespace: str, entry_ids: list[str], now: datetime) -> int:
        """Delete live records by id; how many there were."""

    async def clear(self, namespace: str) -> None:
        """Delete all records of a namespace, live or not."""

    async def count(self, namespace: str, now: datetime) -> int:
        """How many live records a namespace has."""

    async def namespaces(self, prefix: str, limit: int, after: str, now: datetime) -> list[str]:
        """The first ``limit`` namespaces after ``after`` that start with ``prefix`` and have live records."""

    async def purge(self, limit: int, now: datetime) -> Purged:
        """Delete up to ``limit`` records that are not live."""

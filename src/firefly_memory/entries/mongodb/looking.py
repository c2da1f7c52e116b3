"""Entries of all namespaces in MongoDB: each page is one range of the index that keeps the order of rule R4."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from firefly_memory.codec import BSON, Form
from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.mongodb.errors import translated
from firefly_memory.databases.mongodb.fields import Document
from firefly_memory.entries.looking import Range
from firefly_memory.entries.mongodb import documents
from firefly_memory.entries.record import Position, Row, as_it_is

Bound = list[tuple[str, Any]]
"""The place in an index where a range begins or ends."""


def across(names: Range, after: tuple[str, Position] | None, now: datetime) -> tuple[Document, Bound, Bound | None]:
    """A filter, and the bounds of the range: ``$gt`` on one field or another would be two ranges."""
    wanted, first = documents.live(now), names.first
    place = ""
    if after is not None and after[0] >= names.first:
        first, place = after[0], documents.document_id(after[1])
        wanted = {**wanted, "_id": {"$ne": place}}  # which is unique: a range begins with its bound
    beyond: Bound | None = None if names.beyond is None else [("namespace", names.beyond), ("_id", "")]
    return wanted, [("namespace", first), ("_id", place)], beyond


def of_key(namespace: str, key: str, after: Position | None, now: datetime) -> Document:
    later: Document = {} if after is None else {"_id": {"$gt": documents.document_id(after)}}
    return {"namespace": namespace, "key": key, **later, **documents.live(now)}


class MongoDirectEntries:
    """A :class:`~firefly_memory.entries.looking.DirectEntries` on clients of one mode."""

    form: Form = BSON
    read_instant = staticmethod(as_it_is)

    def __init__(self, access: MongoAccess) -> None:
        self._access = access

    async def across(
        self, names: Range, after: tuple[str, Position] | None, limit: int, now: datetime
    ) -> Sequence[Row]:
        wanted, first, beyond = across(names, after, now)
        with translated("list", self._access.database.db_name):
            connection = await self._access.connected("list")
            cursor = connection.entries.find(wanted).hint(documents.IN_ORDER).min(first)
            cursor = cursor if beyond is None else cursor.max(beyond)
            found = await connection.all_of(cursor.sort(documents.IN_ORDER).limit(limit))
            return [documents.record(each) for each in found]

    async def of_key(
        self, namespace: str, key: str, after: Position | None, limit: int, now: datetime
    ) -> Sequence[Row]:
        with translated("list", self._access.database.db_name):
            connection = await self._access.connected("list")
            cursor = connection.entries.find(of_key(namespace, key, after, now)).hint(documents.KEY_IN_ORDER)
            found = await connection.all_of(cursor.sort("_id").limit(limit))
            return [documents.record(each) for each in found]

    async def one(self, namespace: str, entry_id: str, now: datetime) -> Sequence[Row]:
        this = {"entry_id": entry_id, "namespace": namespace, **documents.live(now)}
        with translated("get", self._access.database.db_name):
            connection = await self._access.connected("get")
            found = await connection.result_of(connection.entries.find_one(this))
            return [] if found is None else [documents.record(found)]

    async def count_across(self, names: Range, now: datetime) -> int:
        bounds = {"$gte": names.first} if names.beyond is None else {"$gte": names.first, "$lt": names.beyond}
        with translated("count", self._access.database.db_name):
            connection = await self._access.connected("count")
            counting = connection.entries.count_documents({"namespace": bounds, **documents.live(now)})
            return int(await connection.result_of(counting))

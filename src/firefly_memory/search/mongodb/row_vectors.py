"""How the vectors of rows that are there are added and deleted.

Where the server has transactions, each call is one. A row notes in ``embedders`` whose vectors it has got: so a writer
who adds a vector changes the row, and a transaction that changes or deletes the row meets that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pymongo import UpdateOne

from firefly_memory.codec import DAMAGE
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.fields import Document, text
from firefly_memory.databases.mongodb.transactions import InTransaction
from firefly_memory.errors import CorruptDataError
from firefly_memory.search.index import Subject, Vector
from firefly_memory.search.mongodb import vectors as stored_vectors
from firefly_memory.search.mongodb.vectors import Embedded

Damaged = Callable[[object, Exception], CorruptDataError]
"""The error for a damaged row, by its id."""


def embedded_by(embedder: str) -> Document:
    """The change of a row that gets a vector."""
    return {"$addToSet": {"embedders": embedder}}


class RowVectors:
    """The vectors of one facet, on one connection."""

    def __init__(
        self, connection: Connection, subject: Subject, damaged: Damaged, in_transaction: InTransaction | None
    ) -> None:
        """``in_transaction`` is ``None`` on a standalone server."""
        self._connection = connection
        self._subject = subject
        self._damaged = damaged
        self._in_transaction = in_transaction

    async def add(self, vectors: Mapping[str, Vector], written_by: Sequence[str] | None = None) -> int:
        """Store the vectors that are not there yet of rows that are there; how many these were. With ``written_by``,
        only of rows whose last write is one of these."""
        if self._in_transaction is None:
            return await self._connection.finish(self._add_alone(vectors, written_by))

        async def add(session: Any) -> int:
            embedded = await self._there(vectors, written_by, session)
            await self._note(embedded, session)
            return len(await stored_vectors.add_vectors(self._connection, self._subject, embedded, session))

        return await self._in_transaction(self._connection, add)

    async def _add_alone(self, vectors: Mapping[str, Vector], written_by: Sequence[str] | None) -> int:
        """A deletion that begins after the last look finds the vectors. Otherwise that look misses the row."""
        embedded = await self._there(vectors, written_by, None)
        new = await stored_vectors.add_vectors(self._connection, self._subject, embedded)
        await self._note(embedded, None)
        there = {each.id for each in await self._there(vectors, written_by, None)}
        gone = [each.id for each in embedded if each.id not in there]
        if gone:
            await stored_vectors.delete_vectors(self._connection, self._subject, gone)
        return len(there.intersection(new))

    async def delete(self, embedder: str, ids: Sequence[str]) -> None:
        """Delete those of rows and of one embedder."""

        async def delete(session: Any) -> None:
            pulled, these = {"$pull": {"embedders": embedder}}, {"_id": {"$in": list(ids)}}
            writing = self._connection[self._subject.table].update_many(these, pulled, session=session)
            await self._connection.result_of(writing)
            await stored_vectors.delete_vectors(self._connection, self._subject, ids, session, embedder=embedder)

        await (delete(None) if self._in_transaction is None else self._in_transaction(self._connection, delete))

    async def _there(
        self, vectors: Mapping[str, Vector], written_by: Sequence[str] | None, session: Any
    ) -> list[Embedded]:
        """Those of the rows that are there."""
        these, shape = {"_id": {"$in": list(vectors)}}, {"scope": 1, "owner": 1}
        if written_by is not None:
            these["written_by"] = {"$in": list(written_by)}
        finding = self._connection[self._subject.table].find(these, shape, session=session)
        return [self._embedded(each, vectors) for each in await self._connection.all_of(finding)]

    def _embedded(self, document: Mapping[str, Any], vectors: Mapping[str, Vector]) -> Embedded:
        try:
            name, scope = text(document, "_id"), text(document, "scope")
            owner = text(document, "owner") if "owner" in document else None
            return Embedded(name, scope, owner, vectors[name])
        except DAMAGE as exc:
            raise self._damaged(document.get("_id"), exc) from exc

    async def _note(self, embedded: Sequence[Embedded], session: Any) -> None:
        """Note in the rows whose vectors they get. A transaction that deletes one of them breaks off, or this one."""
        if embedded:
            noting = [UpdateOne({"_id": each.id}, embedded_by(each.vector.embedder)) for each in embedded]
            writing = self._connection[self._subject.table].bulk_write(noting, ordered=False, session=session)
            await self._connection.result_of(writing)

"""Writes to the scopes of working memory: they are refused if the scope was erased."""

from __future__ import annotations

from collections.abc import Iterable

from pymongo.errors import BulkWriteError, DuplicateKeyError

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import DUPLICATE
from firefly_memory.entries.mongodb.documents import ENTRIES
from firefly_memory.entries.record import Record
from firefly_memory.entries.scopes import NAMESPACE
from firefly_memory.errors import ErasedError
from firefly_memory.tombstones.log import namespace_identity
from firefly_memory.tombstones.mongodb.gates import Gate, Write, gate_of, tombstones_of


def may_be_erased(namespace: str) -> bool:
    """Whether it is a scope of working memory. No other namespace is ever refused."""
    return namespace.startswith(NAMESPACE)


async def gate_of_scope(connection: Connection, operation: str, namespace: str) -> Gate:
    """What the writes to a namespace have to pass; nothing but the writes if it is no scope."""
    identities = [namespace_identity(namespace)] if may_be_erased(namespace) else []
    return await gate_of(connection, ENTRIES, operation, identities)


async def write_to_scope(connection: Connection, operation: str, record: Record, write: Write) -> None:
    """Save a record of a scope by ``write``. ``DuplicateKeyError`` as if that had been sent alone."""
    gate = await gate_of_scope(connection, operation, record.namespace)
    try:
        await gate.write([write])
    except ErasedError:  # a tombstone may have come between the two looks
        await take_back(connection, [record])
        raise
    except BulkWriteError as exc:
        if only_duplicates(exc):
            raise DuplicateKeyError("another entry is in the way", DUPLICATE) from exc
        raise


async def look_again(connection: Connection, operation: str, record: Record) -> None:
    """``ErasedError``, and the record is deleted, if its scope was erased since somebody looked."""
    try:
        await (await gate_of_scope(connection, operation, record.namespace)).check()
    except ErasedError:
        await take_back(connection, [record])
        raise


async def erased_scopes(connection: Connection, records: Iterable[Record]) -> set[str]:
    """The namespaces of these records that are refused, found in one query."""
    scopes = sorted({record.namespace for record in records if may_be_erased(record.namespace)})
    if not scopes:
        return set()
    tombstones = await tombstones_of(connection, [namespace_identity(scope) for scope in scopes])
    found = await connection.all_of(connection.entries.find({"_id": {"$in": tombstones}}, {"_id": 1}))
    there = {each["_id"] for each in found}
    return {scope for scope, each in zip(scopes, tombstones, strict=True) if each in there}


async def take_back(connection: Connection, records: Iterable[Record]) -> None:
    """Delete records that were saved between two looks."""
    saved = [{"entry_id": record.entry_id, "namespace": record.namespace} for record in records]
    if saved:
        await connection.result_of(connection.entries.delete_many({"$or": saved}))


def only_duplicates(exc: BulkWriteError) -> bool:
    """Whether nothing went wrong but that there were other documents already."""
    errors = exc.details.get("writeErrors", [])
    return bool(errors) and all(error["code"] == DUPLICATE for error in errors)

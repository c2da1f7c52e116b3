"""Collections that had another name in an earlier version get the name of today.

Any number of processes may do it at once: the server renames a collection in one step, and whoever comes second finds
it renamed. No document is copied or dropped.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pymongo.errors import OperationFailure

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.collections import former_names
from firefly_memory.databases.mongodb.errors import despite_a_loss
from firefly_memory.errors import DatabaseStoreError, SchemaMismatchError

_UNAUTHORIZED, _NO_SUCH_COLLECTION, _NAME_IS_TAKEN = 13, 26, 48
_ATTEMPTS = 20  # each failed attempt means that another process renamed or made a collection


async def rename_collections(connection: Connection, migrate: bool) -> None:
    """Rename each collection that still has its former name; ``SchemaMismatchError`` if ``migrate`` is false."""
    formerly = former_names()
    if not formerly:
        return
    for _ in range(_ATTEMPTS):
        renames = await _needed(connection, formerly)
        if not renames:
            return
        if not migrate:
            raise _has_former_names(renames)
        for before, name in renames.items():
            try:
                await _rename(connection, before, name)
            except OperationFailure as exc:
                if exc.code == _UNAUTHORIZED:
                    raise _may_not_rename(before, name) from exc
                raise
    raise DatabaseStoreError(
        "initialize", f"other processes go on making the collections {', '.join(renames)}", retryable=True
    )


async def _needed(connection: Connection, formerly: dict[str, str]) -> dict[str, str]:
    """The collections to rename now, and their names of today."""
    names = [*formerly, *formerly.values()]
    asked = {"listCollections": 1, "nameOnly": True, "authorizedCollections": True, "filter": {"name": {"$in": names}}}
    database = connection.entries.database
    answer = await despite_a_loss(lambda: connection.settle(database.command(asked)))
    there = {each["name"] for each in answer["cursor"]["firstBatch"]}
    return {
        before: name
        for before, name in formerly.items()
        if before in there and (name not in there or await _has_documents(connection, before))
    }


async def _rename(connection: Connection, before: str, name: str) -> None:
    """One attempt; if another process was faster, nothing is done."""
    if await _has_documents(connection, name):
        raise _both_have_documents(before, name)
    # The empty collection is moved, not dropped: a process may write to it at this moment.
    aside = f"{name}_empty_{uuid4().hex[:12]}"
    was_there = await _renamed(connection, name, aside)
    if was_there and await _has_documents(connection, aside):
        await _renamed(connection, aside, name)
        return
    await _renamed(connection, before, name)
    if was_there:
        await despite_a_loss(lambda: connection.settle(connection[aside].drop()))


async def _renamed(connection: Connection, before: str, after: str) -> bool:
    """Whether the collection was there, and the other name was free."""
    try:
        await despite_a_loss(lambda: connection.settle(connection[before].rename(after)))
    except OperationFailure as exc:
        if exc.code not in (_NO_SUCH_COLLECTION, _NAME_IS_TAKEN):
            raise
        return False
    return True


async def _has_documents(connection: Connection, name: str) -> bool:
    found: Any = await connection.settle(connection[name].find_one({}, {"_id": 1}))
    return found is not None


def _has_former_names(renames: dict[str, str]) -> SchemaMismatchError:
    before, needed = (", ".join(names) for names in (renames, renames.values()))
    command, otherwise = "firefly-memory db upgrade", "initialize(migrate=True)"
    found = f"the name of an earlier version is still in use for: {before}"
    return SchemaMismatchError("initialize", before, f"the names {needed}", command, otherwise, found)


def _may_not_rename(before: str, name: str) -> DatabaseStoreError:
    return DatabaseStoreError(
        "initialize",
        f"the user may not rename the collection {before} to {name}: that takes the action renameCollectionSameDB on "
        "the database, which the role readWrite has; run `firefly-memory db upgrade` as another user",
    )


def _both_have_documents(before: str, name: str) -> DatabaseStoreError:
    return DatabaseStoreError(
        "initialize",
        f"the collections {before} and {name} both have documents, and {before} is the former name of {name}; nothing "
        f"was changed: stop processes of older versions, which write to {before}, and then rename or empty the "
        "collection that you do not need",
    )

"""Collections that had another name in an earlier version get the name of today.

Any number of processes may do it at once: the server renames a collection in one step, and whoever comes second finds
it renamed. No document is copied, and no collection is dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pymongo.errors import OperationFailure

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.collections import former_names
from firefly_memory.databases.mongodb.errors import despite_a_loss
from firefly_memory.errors import DatabaseStoreError, SchemaMismatchError

_UNAUTHORIZED, _NO_SUCH_COLLECTION, _NAME_IS_TAKEN = 13, 26, 48
_ATTEMPTS = 20  # each failed attempt means that another process renamed or made a collection


class _Rename(NamedTuple):
    before: str
    name: str
    is_taken: bool
    """Whether there is a collection of the new name too."""


async def rename_collections(connection: Connection, migrate: bool) -> None:
    """Rename each collection that still has its former name; ``SchemaMismatchError`` if ``migrate`` is false."""
    formerly = former_names()
    if not formerly:
        return
    for _ in range(_ATTEMPTS):
        needed = await _needed(connection, formerly)
        if not needed:
            return
        if not migrate:
            raise _has_former_names(needed)
        for each in needed:
            await _rename(connection, each)
    reason = f"other processes go on making the collections {', '.join(each.before for each in needed)}"
    raise DatabaseStoreError("initialize", reason, retryable=True)


async def _needed(connection: Connection, formerly: dict[str, str]) -> list[_Rename]:
    names = [*formerly, *formerly.values()]
    asked = {"listCollections": 1, "nameOnly": True, "authorizedCollections": True, "filter": {"name": {"$in": names}}}
    database = connection.entries.database
    answer = await despite_a_loss(lambda: connection.result_of(database.command(asked)))
    there = {each["name"] for each in answer["cursor"]["firstBatch"]}
    found = [_Rename(before, name, name in there) for before, name in formerly.items() if before in there]
    return [each for each in found if not each.is_taken or await _has_documents(connection, each.before)]


async def _rename(connection: Connection, this: _Rename) -> None:
    """One attempt; nothing is done if another process was faster."""
    if this.is_taken:
        raise _both_are_there(this)
    try:
        await despite_a_loss(lambda: connection.result_of(connection[this.before].rename(this.name)))
    except OperationFailure as exc:
        if exc.code == _UNAUTHORIZED:
            raise _may_not_rename(this) from exc
        if exc.code not in (_NO_SUCH_COLLECTION, _NAME_IS_TAKEN):
            raise


async def _has_documents(connection: Connection, name: str) -> bool:
    found: Any = await connection.result_of(connection[name].find_one({}, {"_id": 1}))
    return found is not None


def _has_former_names(renames: list[_Rename]) -> SchemaMismatchError:
    before, needed = (
        ", ".join(names) for names in ([each.before for each in renames], [each.name for each in renames])
    )
    command, otherwise = "firefly-memory db upgrade", "initialize(migrate=True)"
    found = f"the name of an earlier version is still in use for: {before}"
    return SchemaMismatchError("initialize", before, f"the names {needed}", command, otherwise, found)


def _may_not_rename(this: _Rename) -> DatabaseStoreError:
    return DatabaseStoreError(
        "initialize",
        f"the user may not rename the collection {this.before} to {this.name}: that takes the action "
        "renameCollectionSameDB on the database, which the role readWrite has; run `firefly-memory db upgrade` as "
        "another user",
    )


def _both_are_there(this: _Rename) -> DatabaseStoreError:
    return DatabaseStoreError(
        "initialize",
        f"there are two collections {this.before} and {this.name}, and {this.before} is the former name of "
        f"{this.name}; nothing was changed: stop processes of older versions, which write to {this.before}, and then "
        "rename or drop the collection that you do not need",
    )

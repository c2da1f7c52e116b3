"""What ``firefly-memory doctor`` looks at where a store is MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from typing import Any

from pymongo.errors import OperationFailure

from firefly_memory import clock
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.diagnostics import MISSING, Difference, Finding, clock_skew, ok, problem, warning
from firefly_memory.databases.mongodb.clients import VERSION, Connection, MongoDatabase, OwnClients
from firefly_memory.databases.mongodb.collections import collections_of
from firefly_memory.databases.mongodb.errors import translated
from firefly_memory.databases.mongodb.indexes import differences

_NEEDED = (5, 0)
"""The first that has $setWindowFields, and reads turns by their index in a $lookup."""

_ACTIONS = {"find", "insert", "update", "remove", "listIndexes"}
_UP = {1, 2}  # a primary and a secondary
_DOCUMENTS = "firefly-memory db upgrade, as a user that may create indexes"


def diagnose(url: str, database: str, collection: str, *, timeout: float, **_: Any) -> Iterator[Finding]:
    """The server, its indexes, and what the user may do there."""
    server = OwnClients(url, database, collection, timeout=timeout, pool_size=1, migrate=False)
    try:
        with translated("doctor", server.db_name):
            connection = server.blocking()
            asked = clock.now()
            hello = connection.client.admin.command("hello")
            answered = clock.now()
            yield _version(connection)
            yield clock_skew(asked, hello["localTime"].replace(tzinfo=UTC), answered)
            yield from _topology(connection, hello)
            rights = _rights(connection)
            yield rights
            yield from _indexes(connection)
    finally:
        run_without_loop(server.close_blocking())


def _version(connection: Connection) -> Finding:
    version = connection.client.server_info()["version"]
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if numbers < _NEEDED:
        return problem("server", f"MongoDB {version}", "use MongoDB 5.0 or newer")
    return ok("server", f"MongoDB {version}")


def _topology(connection: Connection, hello: dict[str, Any]) -> Iterator[Finding]:
    if hello.get("msg") == "isdbgrid":
        yield ok("topology", "a sharded cluster: calls that touch several entries are all or nothing")
        return
    if "setName" not in hello:
        found = "a standalone server, which has no transactions: save_many() refuses more than one entry"
        yield warning("topology", found, "start mongod with --replSet; a set of one member will do")
        return
    yield ok("topology", f"the replica set {hello['setName']}: calls that touch several entries are all or nothing")
    if not hello["isWritablePrimary"]:
        found = "this member does not take writes"
        yield problem("writing", found, "name the primary, or all members and replicaSet=, without directConnection")
    with suppress(OperationFailure):  # it takes a right that a service does not need
        status = connection.client.admin.command("replSetGetStatus")
        up = sum(member["state"] in _UP for member in status["members"])
        needed = status.get("writeMajorityCount", 1)
        found = f"{up} of {len(status['members'])} members with data are up, and {needed} have to take each write"
        do = "start the members that are down: no write is acknowledged until then"
        yield ok("majority", found) if up >= needed else problem("majority", found, do)


def _rights(connection: Connection) -> Finding:
    status = connection.client.admin.command("connectionStatus", showPrivileges=True)["authInfo"]
    if not status["authenticatedUsers"]:
        return ok("rights", "the server was not given a user")
    user = status["authenticatedUsers"][0]["user"]
    lacking = []
    collections = [*(collection for collection, _ in collections_of(connection)), connection[VERSION]]
    for collection in collections:
        allowed = {
            action
            for privilege in status["authenticatedUserPrivileges"]
            if _covers(privilege["resource"], collection)
            for action in privilege["actions"]
        }
        missing = set() if "anyAction" in allowed else _ACTIONS - allowed
        lacking += [f"{action} on {collection.name}" for action in sorted(missing)]
    if lacking:
        do = f"grant it the role readWrite on the database {connection.entries.database.name}"
        return problem("rights", f"{user} lacks {', '.join(lacking)}", do)
    return ok("rights", f"{user} may read and write every collection")


def _covers(resource: dict[str, Any], collection: Any) -> bool:
    if resource.get("anyResource"):
        return True
    return resource.get("db") in ("", collection.database.name) and resource.get("collection") in ("", collection.name)


def _indexes(connection: Connection) -> Iterator[Finding]:
    drift = run_without_loop(differences(connection))
    if drift and all(each.found == MISSING for each in drift):
        found = f"missing: {', '.join(each.what.removeprefix('index ') for each in drift)}"
        yield problem("indexes", found, f"run: {_DOCUMENTS}")
        return
    yield from (problem("indexes", str(each), each.mend) for each in drift)
    if not drift:
        yield ok("indexes", "every index is as it should be")


def index_differences(server: MongoDatabase) -> list[Difference]:
    """Every index that is missing or other than this version needs it; nothing is changed."""
    with translated("check", server.db_name):
        return run_without_loop(differences(server.blocking()))

"""The indexes that this version needs, which of them are missing, and which are not as they should be.

A store that opens wants to know whether its queries have an index; :func:`differences` compares all that an index was
made with. An index of other fields and another name is somebody else's, and nobody looks at it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pymongo import IndexModel

from firefly_memory.databases.diagnostics import MISSING, Difference
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.collections import collections_of

_OPTIONS = ("unique", "sparse", "hidden", "partialFilterExpression", "expireAfterSeconds", "collation")

Definition = dict[str, Any]
"""The fields of an index as ``key``, and those of its options that are set."""

_Needed = list[tuple[Any, IndexModel]]


async def missing(connection: Connection) -> _Needed:
    """The indexes that are not there, each after its collection."""
    found: _Needed = []
    for collection, indexes in collections_of(connection):
        there = [(_fields(each), each.get("unique", False)) for each in (await _real(connection, collection)).values()]
        for index in indexes:
            if (_fields(index.document), index.document.get("unique", False)) not in there:
                found.append((collection, index))
    return found


async def differences(connection: Connection) -> list[Difference]:
    """Every index that is missing or other than this version needs it: none where all is well."""
    found: list[Difference] = []
    for collection, indexes in collections_of(connection):
        real = await _real(connection, collection)
        for index in indexes:
            difference = _difference(collection, index.document, real)
            if difference is not None:
                found.append(difference)
    return found


async def _real(connection: Connection, collection: Any) -> dict[str, Definition]:
    there: dict[str, Definition] = await connection.result_of(collection.index_information())
    return {name: {**each, "key": dict(each["key"])} for name, each in there.items()}


def _difference(collection: Any, needed: Mapping[str, Any], real: Mapping[str, Definition]) -> Difference | None:
    name, expected = needed["name"], _definition(needed)
    fields = _fields(expected)
    alike = {each: _definition(there) for each, there in real.items() if each == name or _fields(there) == fields}
    if any(_same(each, expected) for each in alike.values()):
        return None
    # Under another name it serves, or is in the way, as well.
    in_place = name if name in alike else next(iter(alike), None)
    mend = {"createIndexes": collection.name, "indexes": [{"name": name, **expected}]}
    what = f"index {name} of {collection.name}"
    if in_place is None:
        return Difference(what, MISSING, _in_words(expected), _command(collection, mend))
    drop = {"dropIndexes": collection.name, "index": in_place}
    found = _in_words(alike[in_place]) + ("" if in_place == name else f", under the name {in_place}")
    return Difference(what, found, _in_words(expected), f"{_command(collection, drop)}\n{_command(collection, mend)}")


def _definition(index: Mapping[str, Any]) -> Definition:
    options = {name: index.get(name) for name in _OPTIONS}
    # By identity: an expireAfterSeconds of 0 equals False, and is set.
    return {
        "key": dict(index["key"]),
        **{name: each for name, each in options.items() if not (each is None or each is False)},
    }


def _fields(index: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(index["key"].items())  # their order matters


def _same(one: Definition, other: Definition) -> bool:
    return one == other and _fields(one) == _fields(other)


def _in_words(definition: Definition) -> str:
    fields, *options = (f"{name} {_written(value)}" for name, value in definition.items())
    return " with ".join([fields.removeprefix("key "), *([", ".join(options)] if options else [])])


def _command(collection: Any, command: dict[str, Any]) -> str:
    """For mongosh."""
    return f"db.getSiblingDB({_written(collection.database.name)}).runCommand({_written(command)})"


def _written(value: Any) -> str:
    return json.dumps(value, default=str)

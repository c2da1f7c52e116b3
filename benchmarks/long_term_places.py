"""Where long-term memory is measured: for each number of facts a store of ours, and a copy of it for the bare driver.

The copy has the tables, the indexes and the rows of ours. Only the words of scopes are readable there: the bare driver
makes no hashes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import psycopg
import pymongo
from psycopg import sql

from benchmarks.long_term_facts import Whose, facts, people
from benchmarks.long_term_rows import put_facts, row_of
from benchmarks.stores import Places
from firefly_memory import EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.longterm import MemoryService
from firefly_memory.longterm.rows import FACTS, USERS, FactRow, UserRow

_AT_ONCE = 1_000


class Filled(NamedTuple):
    """A store with so many facts, and where its copy is."""

    backend: str
    store: EntryStore
    bare: str
    """The path, or the URL of the server."""
    name: str
    """That of the bare schema or database."""


@contextmanager
def filled(places: Places, backend: str, size: int) -> Iterator[Filled]:
    """A store with so many facts, and its copy."""
    made = _made(places, backend, size)
    with made.store:
        fill(made, size)
        _COPIES[backend](made, f"ours_{size}")
        places.settle()
        yield made


def _made(places: Places, backend: str, size: int) -> Filled:
    ours, bare = f"ours_{size}", f"bare_{size}"
    match backend:
        case "sqlite":
            path = places.directory / f"{bare}.db"
            with SQLiteStore(path) as empty:
                empty.initialize_sync()
            return Filled(backend, SQLiteStore(places.directory / f"{ours}.db"), str(path), bare)
        case "postgresql":
            url = places.postgresql_url
            with PostgreSQLStore(url, schema_name=bare) as empty:
                empty.initialize_sync()
            return Filled(backend, PostgreSQLStore(url, schema_name=ours), url, bare)
    url = places.mongodb_url
    with MongoDBStore(url, database=bare) as empty:
        empty.initialize_sync()
    return Filled(backend, MongoDBStore(url, database=ours), url, bare)


def fill(made: Filled, size: int) -> None:
    """The people, and then the facts, many in one write. PostgreSQL copies all but the first ones, which is faster."""
    store = made.store
    store.initialize_sync()
    service = MemoryService(store, embedder=None)
    for number, person in enumerate(people(size)):
        channel, _, name = person.partition(":")
        service.get_or_create_user(channel, name, f"Person {number}")
    everything = facts(size)
    while some := list(islice(everything, _AT_ONCE)):
        put_facts(store, some)
        if made.backend == "postgresql":
            _copy_rows(made, map(row_of, everything))


def _copy_rows(made: Filled, rows: Iterator[FactRow]) -> None:
    into = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(made.name.replace("bare", "ours"), FACTS.table),
        sql.SQL(", ").join(map(sql.Identifier, FactRow._fields)),
    )
    with psycopg.connect(made.bare) as connection, connection.cursor() as cursor, cursor.copy(into) as copy:
        for row in rows:
            copy.write_row([*row[:-1], list(row.words)])


_FACTS = ("number", *FactRow._fields)
_PEOPLE = ("number", *UserRow._fields)


def _selected(columns: tuple[str, ...], **replaced: str) -> str:
    return ", ".join(replaced.get(each, each) for each in columns)


_SCOPE = "fact_scope || '/' || scope_id"
_PERSON = f"'{Whose('user').word}' || canonical_id"
_FACTS_OF_OURS = _selected(_FACTS, scope=_SCOPE)
_PEOPLE_OF_OURS = _selected(_PEOPLE, word=_PERSON, stands_for=_PERSON)


def _copy_sqlite(made: Filled, ours: str) -> None:
    connection = sqlite3.connect(made.bare)
    connection.execute("ATTACH ? AS ours", (made.bare.replace(made.name, ours),))
    for table, columns, found in _SQL_COPIES:
        names = ", ".join(columns)
        connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {found} FROM ours.{table}")
    connection.commit()
    connection.close()


_SQL_COPIES = ((FACTS.table, _FACTS, _FACTS_OF_OURS), (USERS, _PEOPLE, _PEOPLE_OF_OURS))


def _copy_postgresql(made: Filled, ours: str) -> None:
    copying = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}")
    later = sql.SQL("SELECT setval(pg_get_serial_sequence({}, 'number'), (SELECT max(number) FROM {}))")
    with psycopg.connect(made.bare) as connection:
        for table, columns, found in _SQL_COPIES:
            names = sql.SQL(", ").join(map(sql.Identifier, columns))
            bare, source = sql.Identifier(made.name, table), sql.Identifier(ours, table)
            connection.execute(copying.format(bare, names, sql.SQL(found), source))
            connection.execute(later.format(sql.Literal(f"{made.name}.{table}"), bare))


def _copy_mongodb(made: Filled, ours: str) -> None:
    scope: dict[str, Any] = {"scope": {"$concat": ["$fact_scope", "/", "$scope_id"]}}
    person = {"$concat": [Whose("user").word, "$canonical_id"]}
    changes = {FACTS.table: scope, USERS: {"word": person, "stands_for": person}}
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(made.bare) as client:
        for name, change in changes.items():
            into = {"$merge": {"into": {"db": made.name, "coll": name}}}
            wanted = {
                "$match": {"_id": {"$type": "string"}, **({"key": {"$type": "string"}} if "scope" in change else {})}
            }
            client[ours][name].aggregate([wanted, {"$set": change}, into])


_COPIES = {"sqlite": _copy_sqlite, "postgresql": _copy_postgresql, "mongodb": _copy_mongodb}

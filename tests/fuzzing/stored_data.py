"""Behind the back of a store: all that it keeps is read, put back as it was, and bent in one place."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from hypothesis import strategies as st
from psycopg import sql

from firefly_memory import EntryStore, FileStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.databases.diagnostics import Finding
from firefly_memory.databases.sql.postgresql import diagnosis as of_postgresql
from firefly_memory.databases.sql.sqlite import diagnosis as of_sqlite
from firefly_memory.service import file_diagnosis
from tests.fuzzing.mutations import bent, bent_bytes, odd_texts, odd_values
from tests.support.backends import Place

_TABLES = [
    "memory_entries",
    "memory_conversations",
    "memory_turns",
    "memory_flushes",
    "memory_agent_history",
    "memory_agent_history_entries",
]


class Behind(ABC):
    @abstractmethod
    def store(self) -> EntryStore:
        """A new store on the place."""

    @abstractmethod
    def examined(self) -> list[Finding]:
        """What ``firefly-memory doctor`` finds."""

    @abstractmethod
    def state(self) -> Any:
        """All that is there, to be compared."""

    @abstractmethod
    def keep(self) -> None:
        """What :meth:`restore` puts back."""

    @abstractmethod
    def restore(self) -> None: ...

    @abstractmethod
    def bend(self, draw: Any) -> None: ...


class BehindFiles(Behind):
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept: dict[str, bytes] = {}

    def store(self) -> EntryStore:
        return FileStore(self._directory)

    def examined(self) -> list[Finding]:
        return list(file_diagnosis.diagnose(f"file:{self._directory}"))

    def state(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self._directory.iterdir()) if path.is_file()}

    def keep(self) -> None:
        self._kept = self.state()

    def restore(self) -> None:
        shutil.rmtree(self._directory)
        self._directory.mkdir()
        for name, data in self._kept.items():
            (self._directory / name).write_bytes(data)

    def bend(self, draw: Any) -> None:
        path = self._directory / draw(st.sampled_from(sorted(self._kept)))
        data = path.read_bytes()
        if draw(st.booleans()):
            path.write_bytes(bent_bytes(draw, data))
        elif path.suffix == ".jsonl":
            lines = data.splitlines()
            number = draw(st.integers(0, len(lines) - 1))
            lines[number] = _as_json(bent(draw, json.loads(lines[number]))).encode()
            path.write_bytes(b"\n".join([*lines, b""]))
        else:
            path.write_text(_as_json(bent(draw, json.loads(data))), encoding="utf-8")


def _as_json(document: Any) -> str:
    try:
        return json.dumps(document)
    except ValueError:  # an integer with more digits than Python writes
        return '{"format": "firefly-memory/1", "namespace": "notes", "entries": [' + "9" * 5000 + "]}"


class BehindSQLite(Behind):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, list[Any]] = {}

    def store(self) -> EntryStore:
        return SQLiteStore(self._path)

    def examined(self) -> list[Finding]:
        return list(of_sqlite.diagnose(f"sqlite:///{self._path}", timeout=5))

    def state(self) -> dict[str, list[Any]]:
        with closing(sqlite3.connect(self._path)) as connection:
            connection.text_factory = bytes
            return {table: connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall() for table in _TABLES}

    def keep(self) -> None:
        with closing(sqlite3.connect(self._path)) as connection:
            self._kept = {
                table: connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall() for table in _TABLES
            }

    def restore(self) -> None:
        with closing(sqlite3.connect(self._path)) as connection, connection:
            for table, rows in self._kept.items():
                connection.execute(f"DELETE FROM {table}")
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def bend(self, draw: Any) -> None:
        with closing(sqlite3.connect(self._path)) as connection:
            table = draw(st.sampled_from([table for table in _TABLES if self._kept[table]]))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column, number = draw(st.sampled_from(columns)), draw(st.integers(0, len(self._kept[table]) - 1))
            old = self._kept[table][number][columns.index(column)]
            new = draw(_bent_cells(old))
            try:
                with connection:
                    row = f"SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?"
                    statement = f"UPDATE {table} SET {column} = ? WHERE rowid = ({row})"
                    connection.execute(statement, (new, number))
            except (sqlite3.Error, OverflowError, UnicodeEncodeError):
                return  # the database does not take it


@st.composite
def _bent_cells(draw: Any, old: Any) -> Any:
    """What SQLite may hold in place of ``old``, whatever the column is declared as."""
    if isinstance(old, str) and draw(st.booleans()):
        return _bent_text(draw, old)
    return draw(
        st.none()
        | st.sampled_from([0, 1, -1, 2**62, -(2**63), 2**63 - 1, 1.5, math.inf, -0.0])
        | st.binary(max_size=8)
        | odd_texts
    )


def _bent_text(draw: Any, old: str) -> str:
    try:
        document = json.loads(old)
    except ValueError:
        document = None
    if isinstance(document, (dict, list)) and draw(st.booleans()):
        try:
            return json.dumps(bent(draw, document))
        except ValueError:
            return "9" * 5000
    return bent_bytes(draw, old.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


class BehindPostgreSQL(Behind):
    def __init__(self, url: str, driver: str, schema_name: str) -> None:
        self._url = url
        self._with_driver = url.replace("postgresql://", f"postgresql+{driver}://")
        self._schema = schema_name
        self._connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)

    def close(self) -> None:
        self._execute("DROP SCHEMA IF EXISTS {schema} CASCADE")
        self._connection.close()

    def store(self) -> EntryStore:
        return PostgreSQLStore(self._with_driver, schema_name=self._schema, pool_size=2)

    def examined(self) -> list[Finding]:
        return list(of_postgresql.diagnose(self._with_driver, self._schema, timeout=5, pool_size=2, pooler=None))

    def _execute(self, statement: str, *values: Any, **names: str) -> psycopg.Cursor[Any]:
        composed = sql.SQL(statement).format(
            schema=sql.Identifier(self._schema), **{name: sql.Identifier(value) for name, value in names.items()}
        )
        return self._connection.execute(composed, values)

    def state(self) -> dict[str, Any]:
        return {
            table: self._execute(
                "SELECT t::text FROM {schema}.{t} t ORDER BY 1".replace("{t}", "{table}"), table=table
            ).fetchall()
            for table in _TABLES
        }

    def keep(self) -> None:
        for table in _TABLES:
            self._execute("CREATE TABLE {schema}.{kept} AS TABLE {schema}.{table}", table=table, kept=f"kept_{table}")

    def restore(self) -> None:
        with self._connection.transaction():
            for table in _TABLES:
                self._execute("DELETE FROM {schema}.{table}", table=table)
                self._execute(
                    "INSERT INTO {schema}.{table} SELECT * FROM {schema}.{kept}", table=table, kept=f"kept_{table}"
                )

    def bend(self, draw: Any) -> None:
        table = draw(st.sampled_from(_TABLES))
        columns = self._execute(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
            " ORDER BY ordinal_position",
            self._schema,
            table,
        ).fetchall()
        column, kind = draw(st.sampled_from(columns))
        rows = self._execute(
            "SELECT ctid::text, {column}::text FROM {schema}.{table} t ORDER BY t::text", table=table, column=column
        ).fetchall()
        row, old = draw(st.sampled_from(rows))
        new = self._bent(draw, kind, old)
        try:
            self._execute(
                "UPDATE {schema}.{table} SET {column} = %s::text::" + kind + " WHERE ctid = %s::tid",
                new,
                row,
                table=table,
                column=column,
            )
        except (psycopg.Error, UnicodeEncodeError):
            return  # the database does not take it

    def _bent(self, draw: Any, kind: str, old: str | None) -> str | None:
        if draw(st.integers(0, 9)) == 0:
            return None
        if kind == "jsonb":
            try:
                return json.dumps(bent(draw, json.loads(old or "null")))
            except ValueError:
                return "9" * 5000
        if kind == "bigint":
            return str(draw(st.sampled_from([0, 1, -1, 3, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])))
        if kind == "double precision":
            return str(draw(st.sampled_from(["0", "1", "0.1", "-0", "1e-320"])))
        if kind == "timestamp with time zone":
            return str(
                draw(
                    st.sampled_from(
                        [
                            "infinity",
                            "-infinity",
                            "4714-11-24 00:00:00+00 BC",
                            "294276-12-31 23:59:59+00",
                            "10000-01-01",
                            "0001-01-01 00:00:00+00",
                            "now",
                        ]
                    )
                )
            )
        return str(draw(odd_texts)) if old is None or draw(st.booleans()) else _bent_text(draw, old)


class BehindMongoDB(Behind):
    def __init__(self, url: str, database: str) -> None:
        from pymongo import MongoClient

        self._url, self._name = url, database
        self._client: Any = MongoClient(url, datetime_conversion="DATETIME_MS")  # any date can be read
        self._database = self._client[database]
        self._kept: dict[str, list[Any]] = {}

    def close(self) -> None:
        self._client.drop_database(self._name)
        self._client.close()

    def store(self) -> EntryStore:
        return MongoDBStore(self._url, database=self._name, pool_size=2)

    def examined(self) -> list[Finding]:

        from firefly_memory.databases.mongodb import diagnosis

        return list(diagnosis.diagnose(self._url, self._name, "entries", timeout=5))

    def _collections(self) -> list[str]:
        return ["entries", "memory_conversations", "memory_agent_history", "memory_agent_history_entries"]

    def state(self) -> dict[str, Any]:
        return {name: sorted(map(repr, self._database[name].find())) for name in self._collections()}

    def keep(self) -> None:
        self._kept = {name: list(self._database[name].find()) for name in self._collections()}

    def restore(self) -> None:
        for name, documents in self._kept.items():
            self._database[name].delete_many({})
            if documents:
                self._database[name].insert_many(documents)

    def bend(self, draw: Any) -> None:
        from bson.errors import BSONError
        from pymongo.errors import PyMongoError

        name = draw(st.sampled_from([name for name, documents in self._kept.items() if documents]))
        collection, document = self._database[name], draw(st.sampled_from(self._kept[name]))
        new = bent(draw, document, odd_values | _odd_bson())
        with self._client.start_session() as session, session.start_transaction():
            try:
                collection.delete_one({"_id": document["_id"]}, session=session)
                collection.insert_one(new, session=session)
            except (PyMongoError, BSONError, OverflowError, TypeError, UnicodeEncodeError):
                session.abort_transaction()  # the database does not take it


def _odd_bson() -> st.SearchStrategy[Any]:
    from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
    from bson.datetime_ms import DatetimeMS

    return st.sampled_from(
        [
            Binary(b"x"), Code("x"), Decimal128("NaN"), Int64(5), MaxKey(), MinKey(), ObjectId(b"0" * 12), Regex("x"),
            Timestamp(1, 1), DatetimeMS(2**62), DatetimeMS(-(2**62)), DatetimeMS(0), float("nan"), float("inf"),
        ]
    )  # fmt: skip


@contextmanager
def behind(kind: str, place: Place, name: str) -> Iterator[Behind]:
    """A place of the kind, of its own."""
    match kind:
        case "file":
            yield BehindFiles(place.directory / name)
        case "sqlite":
            yield BehindSQLite(place.directory / f"{name}.db")
        case "mongodb":
            with closing(BehindMongoDB(place.mongodb(), name)) as mongodb:
                yield mongodb
        case driver:
            with closing(BehindPostgreSQL(place.postgresql(), driver, name)) as postgresql:
                yield postgresql

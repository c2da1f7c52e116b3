"""SQL as SQLite says it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Select, Table, Text, bindparam, func, literal_column, select
from sqlalchemy.dialects import sqlite

from firefly_memory.clock import instant_of
from firefly_memory.codec import TEXT, Form
from firefly_memory.databases.sql.dialect import SQLDialect


class SQLiteDialect(SQLDialect):
    name: ClassVar[str] = "sqlite"
    form: ClassVar[Form] = TEXT
    begin: ClassVar[str] = "BEGIN IMMEDIATE"

    def by_code_point(self, column: ColumnElement[str]) -> ColumnElement[str]:
        return column  # SQLite's own way

    def document_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return text

    def document_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return column

    def words_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return text

    def words_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return column

    def words_count(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        without = func.length(func.replace(column, literal_column("' '"), literal_column("''")))
        return func.length(column) - without + literal_column("1")

    def words(self, values: Sequence[str]) -> str:
        return " ".join(values)

    def contains(self, column: ColumnElement[str], text: ColumnElement[str]) -> ColumnElement[bool]:
        return func.instr(column, text) > literal_column("0")

    def is_one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        members = func.json_each(bindparam(name, type_=Text)).table_valued("value")
        return column.in_(select(members.c.value))

    @property
    def row_address(self) -> ColumnElement[Any]:
        return literal_column("rowid")

    def is_in(self, column: ColumnElement[Any], rows: Select[Any]) -> ColumnElement[bool]:
        return column.in_(rows)

    def steer_to_order(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        # After ANALYZE, SQLite takes keys for unique where most of them are, and would rather sort what it finds.
        return column > literal_column("''")

    def texts(self, values: Sequence[str]) -> str:
        return json.dumps(values)

    def instant_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return text

    def instant_out(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column

    @staticmethod
    def read_instant(stored: Any) -> datetime:
        return instant_of(stored)

    def insert(self, table: Table) -> sqlite.Insert:
        return sqlite.insert(table)

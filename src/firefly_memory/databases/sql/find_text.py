"""Looks for a text in a whole database: also in tables that no facet has registered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, LargeBinary, Text, bindparam, cast, column, func, or_, select, table
from sqlalchemy import text as sql_text

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.operation import reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.databases.text_forms import forms_of
from firefly_memory.identifiers import stored_text

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class TextSearch(FacetStatements):
    """What both dialects have in common."""

    by_dialect: ClassVar[Mapping[str, str]] = {
        "sqlite": "firefly_memory.databases.sql.find_text:SQLiteTextSearch",
        "postgresql": "firefly_memory.databases.sql.find_text:PostgreSQLTextSearch",
    }

    @property
    def schema_name(self) -> str | None:
        return self._schema_name

    def columns(self) -> Statement:
        """The name of each table and of a column of it, for all columns, table by table."""
        raise NotImplementedError

    def rows_with(self, name: str, columns: list[str], forms: int) -> Statement:
        """How many rows of a table have one of some texts, the parameters ``form_0``, ``form_1``, …"""
        searched = table(name, *[column(each) for each in columns], schema=self._schema_name)
        texts = [bindparam(f"form_{number}", type_=Text) for number in range(forms)]
        found = [self._has(each, wanted) for each in searched.c for wanted in texts]
        return self.compiled(select(func.count()).select_from(searched).where(or_(*found)))

    def _has(self, searched: ColumnElement[Any], wanted: ColumnElement[str]) -> ColumnElement[bool]:
        raise NotImplementedError


class SQLiteTextSearch(TextSearch):
    def columns(self) -> Statement:
        # A virtual table shows what other tables have. These are searched, whichever module made them.
        return self.compiled(
            sql_text(
                "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c "
                "WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY t.name, c.cid"
            )
        )

    def _has(self, searched: ColumnElement[Any], wanted: ColumnElement[str]) -> ColumnElement[bool]:
        return func.instr(cast(searched, LargeBinary), cast(wanted, LargeBinary)) > 0  # all bytes, beyond a zero too


class PostgreSQLTextSearch(TextSearch):
    def columns(self) -> Statement:
        return self.compiled(
            sql_text(
                "SELECT t.relname, c.attname FROM pg_catalog.pg_class AS t "
                "JOIN pg_catalog.pg_namespace AS s ON s.oid = t.relnamespace "
                "JOIN pg_catalog.pg_attribute AS c ON c.attrelid = t.oid "
                "WHERE s.nspname = :schema_name AND t.relkind IN ('r', 'm', 'f') AND c.attnum > 0 "
                "AND NOT c.attisdropped ORDER BY t.relname, c.attnum"
            ).bindparams(bindparam("schema_name", type_=Text))
        )

    def _has(self, searched: ColumnElement[Any], wanted: ColumnElement[str]) -> ColumnElement[bool]:
        text = cast(searched, Text).collate("C")
        # What is no text shows its bytes in hexadecimal digits.
        return func.pg_catalog.strpos(text, wanted) > 0


def _forms(text: str) -> list[str]:
    """Also among bytes, which the database shows in digits."""
    forms = [*forms_of(text), stored_text(text).encode().hex()]
    return [each for each in forms if _UNSTORABLE.search(each) is None]


@reads
def find_text(session: Session, text: str) -> list[tuple[str, int]]:
    """The tables of the schema, or of the file, that have the text, and in how many rows.

    A row that the role may not read is an error: this is a proof. SQL is made of no text.
    """
    search = session.statements(TextSearch)
    values = {f"form_{number}": form for number, form in enumerate(_forms(text))}
    found = []
    columns = session.fetch(search.columns(), {"schema_name": search.schema_name})
    for name, of_table in groupby(columns, key=itemgetter(0)):
        statement = search.rows_with(name, [each for _, each in of_table], len(values))
        rows = int(session.fetch(statement, values)[0][0])
        if rows:
            found.append((str(name), rows))
    return found

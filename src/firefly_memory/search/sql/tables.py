"""What the table of a facet needs for the search: some columns and indexes, and the tables of vectors."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, Table, Text

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns
from firefly_memory.search.index import Subject

LANGUAGES = "memory_search_indexes"


def index_columns(columns: Columns) -> list[Column[Any]]:
    """The columns of the :class:`~firefly_memory.search.index.Indexed` fields.

    The facet adds ``number``, a growing key, and ``id``, text with a unique index ``**columns.by_code_point("id")``. A
    facet whose rows expire adds an instant, the :attr:`~firefly_memory.search.index.Subject.expires` of its subject.
    """
    return [
        Column("scope", Text, nullable=False),
        Column("who", Text),
        Column("group_id", Text),
        Column("position", BigInteger, nullable=False),
        Column("searchable", Text, nullable=False),
        columns.texts("words", nullable=False),
        # The order of the search that is no ranking.
        columns.instant("newest", nullable=False),
    ]


def define_languages(tables: MetaData) -> None:
    """The table that says what the words of each index are made by."""
    Table(
        LANGUAGES,
        tables,
        Column("subject", Text, primary_key=True),
        Column("language", Text, nullable=False),
        Column("form", BigInteger, nullable=False),
    )


def define_index(table: Table, columns: Columns, subject: Subject) -> None:
    """The indexes of the table, and the tables of its vectors, if it has some."""
    c = table.c
    name = subject.table.removeprefix("memory_")
    Index(f"idx_{name}_scope", c.scope, c.group_id, c.position)
    columns.texts_index(f"idx_{name}_words", c.words)
    if subject.has_vectors:
        _define_vectors(table.metadata, subject)


def _define_vectors(tables: MetaData, subject: Subject) -> None:
    Table(
        subject.vectors,
        tables,
        Column("id", Text, primary_key=True),
        Column("embedder", Text, primary_key=True),
        # Numbers of four bytes each.
        Column("vector", LargeBinary, nullable=False),
        info=GUARDED,
    )
    # Apart from the vectors: the search reads those of a whole scope.
    Table(
        subject.signatures,
        tables,
        Column("scope", Text, primary_key=True),
        Column("embedder", Text, primary_key=True),
        Column("id", Text, primary_key=True),
        # One bit for each number of the vector.
        Column("signature", LargeBinary, nullable=False),
        info=GUARDED,
    )

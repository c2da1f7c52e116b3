"""Words in SQLite: a full-text table of FTS5, which is asked for one word of a question at a time.

Each query is ``"scope" AND "word"``. Words have no quotes, so nothing in them is syntax.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Insert,
    Integer,
    Select,
    Table,
    Text,
    bindparam,
    column,
    desc,
    func,
    insert,
    literal_column,
    select,
    table,
)

from firefly_memory.search.sql.statements import IndexStatements


class _Engine:
    def counts(self, of: IndexStatements) -> Select[Any]:
        words = func.json_each(bindparam("words", type_=Text)).table_valued("value").alias("asked")
        rows = _rows(of)
        some = (
            select(literal_column("1"))
            .select_from(rows)
            .where(_matches(of, _member(words, 1)))
            .correlate(words)
            .subquery()
        )
        counted = select(func.count()).select_from(some).scalar_subquery()
        return select(_member(words, 0), counted).select_from(words)

    def best(self, of: IndexStatements) -> Select[Any]:
        words = func.json_each(bindparam("words", type_=Text)).table_valued("value").alias("asked")
        rows = _rows(of)
        weight = func.sum(_member(words, 2)).label("weight")
        # The left side of this join comes first: so the full-text table is asked once for each word.
        found = (
            select(rows.c.rowid.label("number"), weight)
            .select_from(words.outerjoin(rows, _matches(of, _member(words, 1))))
            .group_by(rows.c.rowid)
            .subquery("found")
        )
        c = of.table.c
        joined = found.join(of.table, c.number == found.c.number)
        return (
            select(c.id)
            .select_from(joined)
            .where(*of.is_wanted(of.table))
            .order_by(desc(found.c.weight), c.id)
            .limit(bindparam("limit", type_=Integer))
        )

    def words(self, _: IndexStatements, scopes: Sequence[str], words: Sequence[str], __: int | None) -> dict[str, Any]:
        return {"words": json.dumps([[word, _match(scopes, word)] for word in words])}

    def weighted(
        self, _: IndexStatements, scopes: Sequence[str], words: Sequence[str], weights: Sequence[int]
    ) -> dict[str, Any]:
        asked = [[word, _match(scopes, word), weight] for word, weight in zip(words, weights, strict=True)]
        return {"words": json.dumps(asked)}

    def many_beside(self, _: IndexStatements, __: Table, ___: Sequence[str]) -> None:
        return None  # one by one is as fast

    def check_words(self, of: IndexStatements) -> Insert:
        return _command(of, "'integrity-check'", rank=1)

    def rebuild_words(self, of: IndexStatements) -> Insert:
        return _command(of, "'rebuild'")

    def is_out_of_step(self, error: BaseException) -> bool:
        return getattr(error, "sqlite_errorname", "").startswith("SQLITE_CORRUPT")


def _command(of: IndexStatements, command: str, **values: int) -> Insert:
    """What FTS5 takes for a command: a row with its name in the column that is called like the table."""
    words = of.subject.words
    row: dict[str, Any] = {
        words: literal_column(command),
        **{name: literal_column(str(value)) for name, value in values.items()},
    }
    return insert(table(words, *[column(name) for name in row])).values(row)


def _match(scopes: Sequence[str], word: str) -> str:
    return f"({' OR '.join(map(_quoted, scopes))}) AND {_quoted(word)}"


def _quoted(word: str) -> str:
    return f'"{word}"'


def _rows(of: IndexStatements) -> Any:
    return table(of.subject.words, column("rowid", Integer))


def _matches(of: IndexStatements, question: Any) -> Any:
    return literal_column(of.subject.words).op("MATCH")(question)


def _member(words: Any, number: int) -> Any:
    return func.json_extract(words.c.value, literal_column(f"'$[{number}]'"))


ENGINE = _Engine()

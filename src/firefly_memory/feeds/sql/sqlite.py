"""Feeds in SQLite: appends in a transaction, for no query can write two tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Text, bindparam, func, insert

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.errors import CorruptDataError
from firefly_memory.feeds.sql.statements import Append, FeedStatements
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.sql.refusal import NOT_REFUSED, are_accepted
from firefly_memory.validation import is_whole_number


class SQLiteFeedStatements(FeedStatements):
    def write_messages(self, session: Session, append: Append, expected: int | None, refusal: Values) -> int | None:
        with session.transaction():
            return self._write(session, append, expected, refusal)

    def write_several(self, session: Session, appends: Sequence[Append], refusal: Values) -> list[int | None]:
        with session.transaction():  # nobody else writes until it ends, so one look for all is enough
            if not are_accepted(session, refusal):
                return []
            accepted = {**NOT_REFUSED, **refusal}
            return [self._write(session, append, None, accepted) for append in appends]

    def _write(self, session: Session, append: Append, expected: int | None, refusal: Values) -> int | None:
        rows = session.fetch(self.count_messages, {**self.head_values(append, expected), **refusal})
        if not rows:
            return None
        (last,) = rows[0]
        count = len(append.messages)
        if not is_whole_number(last, count):
            # SQLite counts with anything, and goes on with a float where 64 bits are not enough.
            where = f"feed {original_name(append.location)!r}"
            raise CorruptDataError("append_messages", where, "the number of its newest message is no whole number")
        numbered = enumerate(append.messages, last - count + 1)
        session.execute_many(
            self.insert_message,
            [{**self.message_values(each), "location": append.location, "number": number} for number, each in numbered],
        )
        return int(last)

    def texts_given(self, name: str) -> Any:
        return func.json_each(bindparam(name, type_=Text)).table_valued("value").alias("given")

    @cached_property
    def count_messages(self) -> Statement:
        return self.compiled(self.take_numbers())

    @cached_property
    def insert_message(self) -> Statement:
        row = {
            column.name: self.dialect.value_in(column, bindparam(column.name, type_=self.dialect.type_in(column)))
            for column in self.messages_table.columns
        }
        return self.compiled(insert(self.messages_table).values(row))

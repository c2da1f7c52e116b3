"""Feeds in PostgreSQL: messages by one statement, and those of several callers by one statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Text, bindparam, func, literal_column, select

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.databases.sql.postgresql.dialect import GROUP_LOCK_TIMEOUT, PostgreSQLDialect
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.feeds.log import NewMessage
from firefly_memory.feeds.sql.notifying import CHANNEL, payload
from firefly_memory.feeds.sql.statements import Append, FeedStatements
from firefly_memory.tombstones.sql.statements import none_erased

_OF_MESSAGE = ("agent_key", "is_conversation", "is_global", "message", "append_id", "created_at")
_GIVEN = ("location", *_OF_MESSAGE)
"""The parameters of a group, each an array with a member for every message."""

_ONE: Any = literal_column("1")


class PostgreSQLFeedStatements(FeedStatements):
    dialect: PostgreSQLDialect

    def write_messages(self, session: Session, append: Append, expected: int | None, refusal: Values) -> int | None:
        values = {**self.head_values(append, expected), **self._arrays(append.messages), **refusal}
        statement = self.append
        if append.notify:
            statement = self.append_and_notify
            values["payload"] = payload(self._schema_name, append.location)
        with session.attempt():
            rows = session.fetch(statement, values)
        return int(rows[0][0]) if rows else None

    def write_several(self, session: Session, appends: Sequence[Append], refusal: Values) -> list[int | None]:
        first = appends[0]
        messages = [each for append in appends for each in append.messages]
        values = {
            **self._arrays(messages),
            "locations": array_text(append.location for append in appends for _ in append.messages),
            "owner": first.owner,
            "lock_timeout": GROUP_LOCK_TIMEOUT,
            **refusal,
        }
        statement = self.append_group
        if first.notify:
            statement = self.append_group_and_notify
            values["payloads"] = array_text(
                payload(self._schema_name, append.location) for append in appends for _ in append.messages
            )
        with session.writing():
            rows = session.fetch(statement, values)
        return _last_of_each(appends, {row[0]: row[1] for row in rows})

    def _arrays(self, messages: Iterable[NewMessage]) -> dict[str, str]:
        rows = [self.message_values(each) for each in messages]
        return {f"{name}s": array_text(row[name] for row in rows) for name in _OF_MESSAGE}

    def texts_given(self, name: str) -> Any:
        return func.pg_catalog.unnest(array_in(name, Text())).table_valued("value").render_derived(name="given")

    @cached_property
    def append(self) -> Statement:
        """The messages of one caller."""
        return self.compiled(self._append(notify=False))

    @cached_property
    def append_and_notify(self) -> Statement:
        return self.compiled(self._append(notify=True))

    @cached_property
    def append_group(self) -> Statement:
        """The messages of several callers."""
        return self.compiled(self._append_group(notify=False))

    @cached_property
    def append_group_and_notify(self) -> Statement:
        return self.compiled(self._append_group(notify=True))

    def _append(self, *, notify: bool) -> Any:
        head = self.take_numbers().cte("head")
        given = self._given(_OF_MESSAGE)
        row: dict[str, Any] = {
            "location": bindparam("location", type_=Text),
            "number": head.c.newest - bindparam("added", type_=self.table.c.newest.type) + given.c.nth,
            **{name: self._value_of(given, name) for name in _OF_MESSAGE},
        }
        source = select(*row.values()).select_from(head.join(given, literal_column("true")))
        written = self.insert_messages(row, source).returning(_ONE).cte("written")
        # Nothing reads "written", but it is named here, so that nobody takes it for one that may be left out.
        told = [_notified(bindparam("payload", type_=Text))] if notify else []
        return select(head.c.newest, *told).add_cte(written)

    def _append_group(self, *, notify: bool) -> Any:
        """Counts the messages in their feeds, writes them, and gives the newest number of each feed."""
        extra = ("payload",) if notify else ()
        given = self._given((*_GIVEN, *extra))
        nth: Any = func.row_number().over(partition_by=given.c.location, order_by=given.c.nth).label("nth_of_feed")
        new = (
            select(given.c.location, *[self._value_of(given, name).label(name) for name in _OF_MESSAGE], nth)
            .add_columns(*[given.c[name] for name in extra])
            .select_from(given, self.dialect.lock_timeout())
            .where(none_erased(self))
            .cte("new")
        )
        added = (
            select(
                new.c.location,
                func.count().label("added"),
                func.min(new.c.created_at).label("created_at"),
                func.max(new.c.created_at).label("updated_at"),
                *[func.max(new.c[name]).label(name) for name in extra],
            )
            .group_by(new.c.location)
            .cte("added")
        )
        a = added.c
        row: dict[str, Any] = {
            "location": a.location,
            "newest": a.added,
            "dropped": literal_column("0"),
            "owner": bindparam("owner", type_=Text),
            "created_at": a.created_at,
            "updated_at": a.updated_at,
        }
        # In this order, so that two processes which append to the same feeds lock them in the same order.
        heads = select(*row.values()).order_by(self.dialect.by_code_point(a.location))
        counted = self.counted(self.dialect.insert(self.table).from_select(list(row), heads))
        head = counted.returning(self.table.c.location, self.table.c.newest).cte("head")
        with_head = added.join(head, head.c.location == a.location)
        together = new.join(with_head, a.location == new.c.location)
        message = {
            **{name: new.c[name] for name in _GIVEN},
            "number": head.c.newest - a.added + new.c.nth_of_feed,
        }
        source = select(*message.values()).select_from(together)
        written = self.insert_messages(message, source).returning(_ONE).cte("written")
        told = [_notified(a[name]) for name in extra]
        return select(head.c.location, head.c.newest, *told).select_from(with_head).add_cte(written)

    def _given(self, names: Sequence[str]) -> Any:
        """The arrays of messages as a table, with the place of each message in ``nth``."""
        columns = self.messages_table.c
        types = [self.dialect.type_in(columns[name]) if name in columns else Text() for name in names]
        arrays = [array_in(f"{name}s", kind) for name, kind in zip(names, types, strict=True)]
        # PostgreSQL takes several arrays only from a function without a schema, and knows it for its own.
        return func.unnest(*arrays).table_valued(*names, with_ordinality="nth").render_derived(name="given")

    def _value_of(self, given: Any, name: str) -> Any:
        return self.dialect.value_in(self.messages_table.c[name], given.c[name])


def _notified(text: Any) -> Any:
    return func.pg_catalog.pg_notify(literal_column(f"'{CHANNEL}'"), text)


def _last_of_each(appends: Sequence[Append], newest: dict[str, int]) -> list[int | None]:
    """The number of the last message of each append, of the newest one of each feed to which anything was appended."""
    if not newest:
        return []
    left = Counter(dict.fromkeys(newest, 0))
    for append in appends:
        left[append.location] += len(append.messages)
    numbers: list[int | None] = []
    for append in appends:
        left[append.location] -= len(append.messages)
        numbers.append(newest[append.location] - left[append.location] if append.location in newest else None)
    return numbers

"""The statements of feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    true,
    update,
)

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.feeds.log import Feed, NewMessage, StoredMessage
from firefly_memory.tombstones.sql.statements import not_erased

if TYPE_CHECKING:
    from firefly_memory.databases.sql.session import Session, Values

_ONE: ColumnElement[int] = literal_column("1")
_ZERO: ColumnElement[int] = literal_column("0")

_LOOKED_THROUGH: ColumnElement[int] = literal_column("100000")
"""So many of the newest messages are looked through for one that may have been appended."""


class Append(NamedTuple):
    """Messages that one caller appends to a feed."""

    location: str
    messages: Sequence[NewMessage]
    owner: str | None
    notify: bool = False

    @property
    def append_id(self) -> str:
        """By which it is found: all messages are there if the last one is."""
        return self.messages[-1].append_id


class FeedStatements(FacetStatements):
    """What both dialects have in common."""

    by_dialect: ClassVar[Mapping[str, str]] = {
        "sqlite": "firefly_memory.feeds.sql.sqlite:SQLiteFeedStatements",
        "postgresql": "firefly_memory.feeds.sql.postgresql:PostgreSQLFeedStatements",
    }

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self.table = self.in_schema("memory_feeds")
        self.messages_table = self.in_schema("memory_feed_messages")

    def write_messages(self, session: Session, append: Append, expected: int | None, refusal: Values) -> int | None:
        """Append messages; the number of the last one, or ``None`` where they may not be appended, or where the newest
        message has another number than ``expected``, if one is given."""
        raise NotImplementedError

    def write_several(self, session: Session, appends: Sequence[Append], refusal: Values) -> list[int | None]:
        """Append messages of different callers, all for the same owner, durable in one go; of each the number of the
        last one, or ``None`` where they may not be appended. ``[]`` and nothing if one of them is refused."""
        raise NotImplementedError

    def texts_given(self, name: str) -> Any:
        """The texts of the parameter ``name``, which :meth:`SQLDialect.texts` made, as a table of the column
        ``value``."""
        raise NotImplementedError

    def head_values(self, append: Append, expected: int | None) -> dict[str, Any]:
        """The parameters by which some messages are counted."""
        return {
            "location": append.location,
            "added": len(append.messages),
            "owner": append.owner,
            "expected": expected,
            "created_at": self.dialect.instant(append.messages[0].created_at),
            "updated_at": self.dialect.instant(append.messages[-1].created_at),
        }

    def message_values(self, message: NewMessage) -> dict[str, Any]:
        """The parameters of a message."""
        values = {**message._asdict(), "created_at": self.dialect.instant(message.created_at)}
        del values["size"]
        return values

    @cached_property
    def begin(self) -> Statement:
        row = self._head(newest=_number("dropped"), dropped=_number("dropped"))
        made = self.dialect.insert(self.table).from_select(list(row), select(*row.values()).where(not_erased(self, 2)))
        return self.compiled(made.on_conflict_do_nothing())

    def take_numbers(self) -> Any:
        """Counts the messages that are to come, and gives the number of the last one. No row where they may not come:
        then nothing is counted."""
        c = self.table.c
        current = select(c.newest).where(self._is_this(c)).scalar_subquery()
        as_expected = or_(_number("expected").is_(None), _number("expected") == func.coalesce(current, _ZERO))
        row = self._head(newest=_number("added"), dropped=_ZERO)
        source = select(*row.values()).where(as_expected, not_erased(self, 2))
        new = self.dialect.insert(self.table).from_select(list(row), source)
        # Once more, for somebody may have appended since it was looked at.
        is_still = c.newest == func.coalesce(_number("expected"), c.newest)
        return self.counted(new, is_still).returning(c.newest)

    def counted(self, new: Any, *conditions: ColumnElement[bool]) -> Any:
        """``new``, an insert of heads, with what it does to those that are there."""
        c = self.table.c
        return new.on_conflict_do_update(
            index_elements=[c.location],
            set_={"newest": c.newest + new.excluded.newest, "updated_at": new.excluded.updated_at},
            where=and_(or_(_text("owner").is_(None), c.owner == _text("owner")), *conditions),
        )

    def _head(self, **numbers: Any) -> dict[str, Any]:
        """The values of a new head."""
        instants = {name: self.dialect.instant_in(_text(name)) for name in ("created_at", "updated_at")}
        return {"location": _text("location"), **numbers, "owner": _text("owner"), **instants}

    @cached_property
    def feed(self) -> Statement:
        return self.compiled(self._feeds.where(self._is_this(self.table.c)))

    @cached_property
    def page(self) -> Statement:
        return self.compiled(self._page)

    @cached_property
    def of_owner(self) -> Statement:
        return self.compiled(self._page.where(self.table.c.owner == _text("owner")))

    @property
    def _page(self) -> Select[Any]:
        location = self.dialect.by_code_point(self.table.c.location)
        return self._feeds.where(location > _text("after")).order_by(location).limit(_limit())

    @property
    def _feeds(self) -> Select[Any]:
        return select(*[self.dialect.value_out(self.table.c[name]) for name in Feed._fields])

    @cached_property
    def sizes(self) -> Statement:
        c = self.table.c
        messages = func.coalesce(func.sum(c.newest - c.dropped), _ZERO)
        return self.compiled(select(func.count(), cast(messages, BigInteger)).select_from(self.table))

    @cached_property
    def conversation(self) -> Statement:
        return self.compiled(self._conversation)

    @cached_property
    def newest_of_conversation(self) -> Statement:
        return self.compiled(_newest(self._conversation))

    @property
    def _conversation(self) -> Select[Any]:
        return self._messages.where(self.messages_table.c.is_conversation.is_(true()))

    @cached_property
    def globals(self) -> Statement:
        return self.compiled(self._globals)

    @cached_property
    def newest_of_globals(self) -> Statement:
        return self.compiled(_newest(self._globals))

    @property
    def _globals(self) -> Select[Any]:
        return self._messages.where(self.messages_table.c.is_global.is_(true()))

    @cached_property
    def agents(self) -> Statement:
        found = self._messages.where(self.dialect.is_one_of(self.messages_table.c.agent_key, "agent_keys"))
        return self.compiled(found.order_by(None).order_by(_computed(self.messages_table.c.number)))

    @cached_property
    def newest_of_agent(self) -> Statement:
        return self.compiled(_newest(self._messages.where(self.messages_table.c.agent_key == _text("agent_key"))))

    @cached_property
    def newest_of_agents(self) -> Statement:
        """The newest messages of several agents, without reading many older ones.

        Only those agents whose newest messages are the newest can have any of these messages, and as many agents as
        messages are wanted. Of each of them as many messages, counted from the newest, are enough. These are compared
        by their numbers in the index, and only the messages that are wanted are read.
        """
        m, key = self.messages_table.c, self.texts_given("agent_keys").c.value
        of_key = select(m.number).where(self._is_this(m), m.agent_key == key).order_by(m.number.desc())
        newest = of_key.limit(_ONE).scalar_subquery().label("newest")
        agents = (
            select(key.label("agent_key"), newest).order_by(newest.desc().nulls_last()).limit(_limit()).cte("agents")
        )
        own = self.messages_table.alias("own").c
        of_agent = select(own.number).where(self._is_this(own), own.agent_key == agents.c.agent_key)
        oldest = of_agent.order_by(own.number.desc()).limit(_ONE).offset(bindparam("limit", type_=Integer) - _ONE)
        first = select(func.max(func.coalesce(oldest.scalar_subquery(), _ZERO))).select_from(agents).scalar_subquery()
        of_team = self.messages_table.alias("of_team").c
        is_of_team = of_team.agent_key.in_(select(agents.c.agent_key))
        numbers = select(of_team.number).where(self._is_this(of_team), of_team.number >= first, is_of_team)
        numbers = numbers.order_by(_computed(of_team.number).desc()).limit(_limit())
        found = self._messages.where(m.number.in_(numbers))
        return self.compiled(found.order_by(None).order_by(_computed(m.number).desc()))

    @cached_property
    def all_after(self) -> Statement:
        return self.compiled(self._after)

    @cached_property
    def some_after(self) -> Statement:
        return self.compiled(self._after.limit(_limit()))

    @property
    def _after(self) -> Select[Any]:
        return self._messages.where(self.messages_table.c.number > _number("after"))

    @property
    def _messages(self) -> Select[Any]:
        """Of one feed, oldest first."""
        m = self.messages_table.c
        columns = [self.dialect.value_out(m[name]) for name in StoredMessage._fields]
        return select(*columns).where(self._is_this(m)).order_by(m.number)

    @cached_property
    def appended(self) -> Statement:
        """The number of a message, if it is one of the newest."""
        m = self.messages_table.c
        all_of_them = select(m.number, m.append_id).where(self._is_this(m))
        newest = all_of_them.order_by(m.number.desc()).limit(_LOOKED_THROUGH).subquery().c
        return self.compiled(select(newest.number).where(newest.append_id == _text("append_id")).limit(_ONE))

    @cached_property
    def first_since(self) -> Statement:
        c, m = self.table.c, self.messages_table.c
        dropped = func.coalesce(select(c.dropped).where(self._is_this(c)).scalar_subquery(), _ZERO)
        not_before = m.created_at >= self.dialect.instant_in(_text("before"))
        found = select(m.number).where(self._is_this(m), m.number > dropped, not_before)
        return self.compiled(found.order_by(m.number).limit(_ONE))

    @cached_property
    def drop(self) -> Statement:
        """Counts the messages up to a number as deleted, if there are any."""
        c = self.table.c
        given = _number("number")
        up_to = case((c.newest < given, c.newest), else_=given)
        are_there = and_(c.dropped < given, c.dropped < c.newest)
        return self.compiled(update(self.table).where(self._is_this(c), are_there).values(dropped=up_to))

    @cached_property
    def delete_dropped(self) -> Statement:
        m = self.messages_table.c
        return self.compiled(delete(self.messages_table).where(self._is_this(m), m.number <= _number("number")))

    @cached_property
    def delete_head(self) -> Statement:
        """If nobody has appended anything after the message ``seen``, if that is given."""
        c = self.table.c
        is_still = or_(_number("seen").is_(None), c.newest <= _number("seen"))
        return self.compiled(delete(self.table).where(self._is_this(c), is_still))

    @cached_property
    def delete_messages(self) -> Statement:
        return self.compiled(delete(self.messages_table).where(self._is_this(self.messages_table.c)))

    def insert_messages(self, row: Mapping[str, Any], source: Select[Any]) -> Any:
        return insert(self.messages_table).from_select(list(row), source)

    def _is_this(self, columns: Any) -> ColumnElement[bool]:
        this: ColumnElement[bool] = columns.location == _text("location")
        return this


def _computed(number: Any) -> Any:
    """The number, in an order that no index has: SQLite would rather read a whole feed than sort a little."""
    return number + _ZERO


def _newest(messages: Select[Any]) -> Select[Any]:
    """The newest of these, newest first."""
    return messages.order_by(None).order_by(messages.selected_columns.number.desc()).limit(_limit())


def _number(name: str) -> Any:
    return bindparam(name, type_=BigInteger)


def _text(name: str) -> Any:
    return bindparam(name, type_=Text)


def _limit() -> Any:
    return bindparam("limit", type_=Integer)

"""The statements of conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Table,
    Text,
    and_,
    bindparam,
    case,
    delete,
    exists,
    false,
    func,
    insert,
    literal_column,
    not_,
    null,
    or_,
    select,
    tuple_,
    update,
)

from firefly_memory.conversations.log import Appended, Draft, Head, Order, StoredTurn
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.tombstones.sql.statements import not_erased

if TYPE_CHECKING:
    from firefly_memory.databases.sql.session import Session, Values


def _number(name: str) -> Any:
    return bindparam(name, type_=BigInteger)


def _text(name: str) -> Any:
    return bindparam(name, type_=Text)


class ConversationStatements(FacetStatements):
    """What both dialects have in common."""

    by_dialect: ClassVar[Mapping[str, str]] = {
        "sqlite": "firefly_memory.conversations.sql.sqlite:SQLiteConversationStatements",
        "postgresql": "firefly_memory.conversations.sql.postgresql:PostgreSQLConversationStatements",
    }

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self.table = self.in_schema("memory_conversations")
        self.turns_table = self.in_schema("memory_turns")
        self.flushes_table = self.in_schema("memory_flushes")
        self._pages: dict[tuple[Order, bool, bool], Statement] = {}

    def write_turn(
        self, session: Session, draft: Draft, expected: int | None, owner: str | None, refusal: Values
    ) -> Appended | None:
        """Append a turn; what there is with it, or ``None`` where it may not be appended."""
        raise NotImplementedError

    def write_turns(self, session: Session, drafts: Sequence[Draft], refusal: Values) -> list[Appended]:
        """Append turns of different callers, durable in one go; what there is with each. None has a condition or an
        owner. Nothing if one of them is refused."""
        raise NotImplementedError

    def values(self, conversation_id: str, draft: StoredTurn) -> dict[str, Any]:
        """The parameters for a turn to be appended."""
        created_at = self.dialect.instant(draft.created_at)
        return {**draft._asdict(), "conversation_id": conversation_id, "created_at": created_at}

    @cached_property
    def create(self) -> Statement:
        now = self._now("now")
        zero: ColumnElement[int] = literal_column("0")
        row: dict[str, Any] = {"conversation_id": _text("conversation_id"), "turns": zero, "tokens": zero}
        row |= {"owner": _text("owner")}
        row |= {"created_at": now, "updated_at": now}
        made = self.dialect.insert(self.table).from_select(list(row), select(*row.values()).where(not_erased(self, 2)))
        return self.compiled(made.on_conflict_do_nothing())

    @cached_property
    def append(self) -> Statement:
        """The next number and the turn that has it, in one statement, where a query may write."""
        head = self._next_number.cte("head")
        columns = [column.name for column in self.turns_table.columns]
        turn = insert(self.turns_table).from_select(columns, select(*self._turn(head.c).values()).select_from(head))
        written = turn.returning(literal_column("1")).cte("written")
        # Nothing reads "written", but it is named here, so that nobody takes it for one that may be left out.
        return self.compiled(select(*head.c).add_cte(written))

    @cached_property
    def take_number(self) -> Statement:
        """The first half of :attr:`append`, elsewhere: count the turn that is to come. No row where it may not."""
        return self.compiled(self._next_number)

    @cached_property
    def insert_turn(self) -> Statement:
        """The second half."""
        return self.compiled(insert(self.turns_table).values(self._turn(None)))

    @property
    def _next_number(self) -> Any:
        c = self.table.c
        current = select(c.turns).where(self._is_this(c)).scalar_subquery()
        as_expected = or_(
            _number("expected").is_(None), _number("expected") == func.coalesce(current, literal_column("0"))
        )
        turns = self.turns_table.c
        is_there = exists().where(self._is_this(turns), turns.idempotency_key == _text("idempotency_key"))
        first = select(
            _text("conversation_id"),
            literal_column("1"),
            _number("tokens"),
            self._now("created_at"),
            self._now("created_at"),
            _text("owner"),
        ).where(as_expected, not_(is_there), not_erased(self, 2))
        names = ["conversation_id", "turns", "tokens", "created_at", "updated_at", "owner"]
        new = self.dialect.insert(self.table).from_select(names, first)
        counted = new.on_conflict_do_update(
            index_elements=[c.conversation_id],
            set_={
                "turns": c.turns + literal_column("1"),
                "tokens": c.tokens + new.excluded.tokens,
                "updated_at": new.excluded.updated_at,
            },
            # Once more, for somebody may have appended since it was looked at.
            where=and_(
                c.turns == func.coalesce(_number("expected"), c.turns),
                or_(_text("owner").is_(None), c.owner == _text("owner")),
            ),
        )
        return counted.returning(*self.appended_columns())

    def _turn(self, head: Any) -> dict[str, Any]:
        """The values of a row: the number and the sum before it from ``head``, or as parameters."""
        row = {
            column.name: self.dialect.value_in(column, bindparam(column.name, type_=self.dialect.type_in(column)))
            for column in self.turns_table.columns
        }
        if head is not None:
            row["turn_id"] = head.turns - literal_column("1")
            row["tokens_before"] = head.tokens - _number("tokens")
        return row

    @cached_property
    def head(self) -> Statement:
        return self.compiled(select(*self.head_columns()).where(self._is_this(self.table.c)))

    @cached_property
    def window(self) -> Statement:
        """The newest turns that fit a budget, found by their running sums; each row starts with the head's columns."""
        c, t = self.table.c, self.turns_table.c
        # Every turn has a token at least, so the sums tell the evicted turns as well. No condition on their numbers: it
        # would lead the planner to the index of these.
        from_here_on = c.tokens - _number("budget")
        fits = and_(
            t.conversation_id == c.conversation_id,
            t.tokens_before >= case((from_here_on > c.evicted_tokens, from_here_on), else_=c.evicted_tokens),
            t.tokens_before < c.tokens,  # always so; two bounds tell PostgreSQL that these are few rows
        )
        # The texts come with one row only, for they may be long: the newest turn's, or that of a lone head.
        is_last = or_(t.turn_id.is_(None), t.turn_id == c.turns - literal_column("1"))
        once = {name: case((is_last, c[name])) for name in ("summary", "marks")}
        found = select(*self.head_columns(**once), *self._stored_turn()).select_from(
            self.table.outerjoin(self.turns_table, fits)
        )
        return self.compiled(found.where(self._is_this(c)).order_by(t.tokens_before))

    @cached_property
    def turns(self) -> Statement:
        return self.compiled(self._turns_after)

    @cached_property
    def some_turns(self) -> Statement:
        return self.compiled(self._turns_after.limit(bindparam("limit", type_=Integer)))

    @property
    def _turns_after(self) -> Any:
        t = self.turns_table.c
        return select(*self._stored_turn()).where(self._is_this(t), t.turn_id > _number("after")).order_by(t.turn_id)

    @cached_property
    def find(self) -> Statement:
        t = self.turns_table.c
        wanted = select(*self._stored_turn()).where(self._is_this(t), t.idempotency_key == _text("idempotency_key"))
        return self.compiled(wanted)

    @cached_property
    def appended(self) -> Statement:
        """How many turns and tokens there were after an append, if its turn is one of the newest."""
        t = self.turns_table.c
        numbers = (t.append_id, t.turn_id, t.tokens_before, t.tokens)
        of_this = select(*numbers).where(self._is_this(t))
        newest = of_this.order_by(t.turn_id.desc()).limit(literal_column("1000")).subquery().c
        after = newest.turn_id + literal_column("1"), newest.tokens_before + newest.tokens
        return self.compiled(select(*after).where(newest.append_id == _text("append_id")))

    @cached_property
    def claim(self) -> Statement:
        c = self.table.c
        # Or ours already: the call may be repeated after a lost connection.
        ended = or_(c.claimed_until <= self._now("now"), c.claimed_until > self._now("beyond"))  # or a clock jumped
        free = or_(c.claim.is_(None), ended, c.claim == _text("new_claim"))
        return self.compiled(
            update(self.table)
            .where(self._is_this(c), c.evicted_turns == _number("evicted"), free)
            .values(claim=_text("new_claim"), claimed_until=self._now("until"))
        )

    @cached_property
    def release(self) -> Statement:
        c = self.table.c
        mine = update(self.table).where(self._is_this(c), c.claim == _text("held"))
        return self.compiled(mine.values(claim=null(), claimed_until=null()))

    @cached_property
    def fork_head(self) -> Statement:
        """A conversation with the first turns of another one, all of them if ``limit`` is null."""
        c, t = self.table.c, self.turns_table.c
        limit = _number("limit")
        is_part = limit < c.turns  # not if it is null
        turns: ColumnElement[int] = case((is_part, limit), else_=c.turns)
        before = select(t.tokens_before).where(t.conversation_id == c.conversation_id, t.turn_id == limit)
        newest = t.conversation_id == c.conversation_id, t.turn_id == turns - literal_column("1")
        appended_at = select(t.created_at).where(*newest).scalar_subquery()
        covered = not_(func.coalesce(c.evicted_turns > limit, false()))
        zero: ColumnElement[int] = literal_column("0")
        is_empty = limit == zero
        row = {
            "conversation_id": _text("fork_id"),
            "turns": turns,
            "tokens": case((is_empty, zero), (is_part, before.scalar_subquery()), else_=c.tokens),
            "evicted_turns": case((covered, c.evicted_turns), else_=zero),
            "evicted_tokens": case((covered, c.evicted_tokens), else_=zero),
            "summary": case((covered, c.summary)),
            "created_at": self._now("now"),
            "updated_at": func.coalesce(appended_at, self._now("now")),
            "owner": c.owner,
            "dropped_turns": case((is_empty, zero), else_=c.dropped_turns),
            "flush_id": case((covered, c.flush_id)),
            "marks": case((covered, c.marks)),
        }
        needs_dropped_ones = and_(c.dropped_turns > zero, not_(covered), not_(is_empty))
        source = select(*row.values()).where(self._is_this(c), not_(needs_dropped_ones), not_erased(self, 1))
        made = self.dialect.insert(self.table).from_select(list(row), source)
        return self.compiled(made.on_conflict_do_nothing())

    @cached_property
    def fork_turns(self) -> Statement:
        """Its turns, as many as its head says."""
        t, head = self.turns_table.c, self.table.alias("head").c
        columns = {column.name: column for column in self.turns_table.columns}
        row = {**columns, "conversation_id": _text("fork_id")}
        count = select(head.turns).where(head.conversation_id == _text("fork_id")).scalar_subquery()
        source = select(*row.values()).where(self._is_this(t), t.turn_id < count)
        return self.compiled(insert(self.turns_table).from_select(list(row), source))

    @cached_property
    def fork_flushes(self) -> Statement:
        """Its flushes, if its head names any."""
        f, head = self.flushes_table.c, self.table.alias("head").c
        row = {**{column.name: column for column in self.flushes_table.columns}, "conversation_id": _text("fork_id")}
        has_some = exists().where(head.conversation_id == _text("fork_id"), head.flush_id.is_not(None))
        source = select(*row.values()).where(self._is_this(f), has_some)
        return self.compiled(insert(self.flushes_table).from_select(list(row), source))

    @cached_property
    def delete_head(self) -> Statement:
        return self.compiled(delete(self.table).where(self._is_this(self.table.c)))

    @cached_property
    def delete_head_seen(self) -> Statement:
        """As long as nobody has appended."""
        c = self.table.c
        is_still = and_(c.turns == _number("turns"), c.updated_at == self._now("updated_at"))
        return self.compiled(delete(self.table).where(self._is_this(c), is_still))

    @cached_property
    def delete_turns(self) -> Statement:
        return self.compiled(delete(self.turns_table).where(self._is_this(self.turns_table.c)))

    @cached_property
    def delete_flushes(self) -> Statement:
        return self.compiled(delete(self.flushes_table).where(self._is_this(self.flushes_table.c)))

    @cached_property
    def delete_heads(self) -> Statement:
        """Of all conversations, locked in the order in which groups of appends lock them."""
        c = self.table.c
        locked = select(c.conversation_id).order_by(self.dialect.by_code_point(c.conversation_id)).with_for_update()
        return self.compiled(delete(self.table).where(c.conversation_id.in_(locked)))

    @cached_property
    def delete_headless_turns(self) -> Statement:
        """Not those of a conversation that somebody has begun meanwhile."""
        return self.compiled(self._headless(self.turns_table))

    @cached_property
    def delete_headless_flushes(self) -> Statement:
        return self.compiled(self._headless(self.flushes_table))

    def _headless(self, table: Table) -> Any:
        c = self.table.c
        head = select(literal_column("1")).where(c.conversation_id == table.c.conversation_id).exists()
        return delete(table).where(not_(head))

    def page(self, order: Order = "created", *, of_owner: bool = False, goes_on: bool = False) -> Statement:
        """A page of the list, from the start or after a place: one range of an index."""
        which = (order, of_owner, goes_on)
        if which not in self._pages:
            self._pages[which] = self.compiled(self._page(*which))
        return self._pages[which]

    def _page(self, order: Order, of_owner: bool, goes_on: bool) -> Any:
        c = self.table.c
        moment, name = c[f"{order}_at"], self.dialect.by_code_point(c.conversation_id)
        page = select(*self.head_columns(summary=null())).order_by(moment.desc(), name.desc())
        if of_owner:
            page = page.where(c.owner == _text("owner"))
        if goes_on:
            page = page.where(tuple_(moment, name) < tuple_(self._now("moment"), _text("conversation_id")))
        return page.limit(bindparam("limit", type_=Integer))

    def appended_columns(self) -> list[Any]:
        return [self.table.c[name] for name in Appended._fields]

    def head_columns(self, **instead: ColumnElement[Any]) -> list[Any]:
        c = self.table.c
        columns = [instead.get(name, self.dialect.value_out(c[name])) for name in Head._fields]
        return [column.label(name) for name, column in zip(Head._fields, columns, strict=True)]

    def _stored_turn(self) -> list[Any]:
        c = self.turns_table.c
        return [self.dialect.value_out(c[name]).label(f"turn_{name}") for name in StoredTurn._fields]

    def _is_this(self, columns: Any) -> ColumnElement[bool]:
        this: ColumnElement[bool] = columns.conversation_id == _text("conversation_id")
        return this

    def _now(self, name: str) -> ColumnElement[Any]:
        return self.dialect.instant_in(_text(name))

"""Appends in PostgreSQL: a turn by one statement, and turns of several callers by one statement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import BigInteger, cast, func, insert, literal_column, select

from firefly_memory.conversations.log import Appended, Draft, StoredTurn
from firefly_memory.conversations.sql.statements import ConversationStatements
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.databases.sql.postgresql.dialect import GROUP_LOCK_TIMEOUT, PostgreSQLDialect
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.tombstones.sql.statements import none_erased

_GIVEN = ("conversation_id", *(name for name in StoredTurn._fields if name not in ("turn_id", "idempotency_key")))
"""The parameters of a group, each an array with a member for every turn."""


class PostgreSQLConversationStatements(ConversationStatements):
    dialect: PostgreSQLDialect

    def write_turn(
        self, session: Session, draft: Draft, expected: int | None, owner: str | None, refusal: Values
    ) -> Appended | None:
        values = {**self.values(*draft), "expected": expected, "owner": owner, **refusal}
        with session.attempt():
            rows = session.fetch(self.append, values)
        return Appended(*rows[0]) if rows else None

    def write_turns(self, session: Session, drafts: Sequence[Draft], refusal: Values) -> list[Appended]:
        rows = [self.values(*draft) for draft in drafts]
        values = {name: array_text(row[name] for row in rows) for name in _GIVEN}
        values |= {"lock_timeout": GROUP_LOCK_TIMEOUT, **refusal}
        with session.writing():
            return [Appended(*row) for row in session.fetch(self.append_group, values)]

    @cached_property
    def append_group(self) -> Statement:
        """Turns of several callers."""
        return self.compiled(self._append_group())

    def _append_group(self) -> Any:
        """Counts the turns in their conversations, writes them, and gives what each has come to, in their order."""
        conversations, turns = self.table, self.turns_table
        arrays = [array_in(name, self.dialect.type_in(turns.c[name])) for name in _GIVEN]
        given = func.unnest(*arrays).table_valued(*_GIVEN, with_ordinality="number").render_derived(name="given")

        # Where each is among those of its conversation, and their tokens up to it.
        so_far: Any = {"partition_by": given.c.conversation_id, "order_by": given.c.number}
        new = (
            select(
                *[self.dialect.value_in(turns.c[name], given.c[name]).label(name) for name in _GIVEN],
                given.c.number,
                func.row_number().over(**so_far).label("nth"),
                _whole(func.sum(given.c.tokens).over(**so_far)).label("tokens_so_far"),
            )
            .select_from(given, self.dialect.lock_timeout())
            .where(none_erased(self))
            .cte("new")
        )
        added = (
            select(
                new.c.conversation_id,
                func.count().label("turns"),
                _whole(func.sum(new.c.tokens)).label("tokens"),
                func.max(new.c.created_at).label("created_at"),
            )
            .group_by(new.c.conversation_id)
            .cte("added")
        )

        counted = self.dialect.insert(conversations).from_select(
            ["conversation_id", "turns", "tokens", "created_at", "updated_at"],
            # In this order, so that two processes which append to the same conversations lock them in the same order.
            select(*added.c, added.c.created_at.label("updated_at")).order_by(
                self.dialect.by_code_point(added.c.conversation_id)
            ),
        )
        c, excluded = conversations.c, counted.excluded
        head = (
            counted.on_conflict_do_update(
                index_elements=[c.conversation_id],
                set_={
                    "turns": c.turns + excluded.turns,
                    "tokens": c.tokens + excluded.tokens,
                    "updated_at": excluded.updated_at,
                },
            )
            .returning(c.conversation_id, *self.appended_columns())
            .cte("head")
        )

        together = new.join(added, added.c.conversation_id == new.c.conversation_id).join(
            head, head.c.conversation_id == new.c.conversation_id
        )
        turns_after = (head.c.turns - added.c.turns + new.c.nth).label("turns")
        tokens_after = (head.c.tokens - added.c.tokens + new.c.tokens_so_far).label("tokens")
        row = {
            **{name: new.c[name] for name in _GIVEN},
            "turn_id": turns_after - literal_column("1"),
            "tokens_before": tokens_after - new.c.tokens,
        }
        written = (
            insert(turns)
            .from_select(list(row), select(*row.values()).select_from(together))
            .returning(literal_column("1"))
            .cte("written")
        )
        after = select(turns_after, tokens_after, head.c.evicted_tokens, head.c.evicted_turns).select_from(together)
        return after.order_by(new.c.number).add_cte(written)


def _whole(number: Any) -> Any:
    return cast(number, BigInteger)  # sums are numeric

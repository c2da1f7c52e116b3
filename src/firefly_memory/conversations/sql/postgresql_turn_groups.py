"""Turns of several callers, appended by one statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, cast, func, insert, literal_column, select

from firefly_memory.conversations.log import StoredTurn
from firefly_memory.databases.sql.postgresql.arrays import array_in

if TYPE_CHECKING:
    from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLStatements

GIVEN = ("conversation_id", *(name for name in StoredTurn._fields if name not in ("turn_id", "idempotency_key")))
"""The parameters, each an array with a member for every turn."""


def append_group(of: PostgreSQLStatements, patience: Any) -> Any:
    """Counts the turns in their conversations, writes them, and gives what each has come to, in their order."""
    conversations, turns = of.conversations.table, of.conversations.turns_table
    arrays = [array_in(name, of.type_in(turns.c[name])) for name in GIVEN]
    given = func.unnest(*arrays).table_valued(*GIVEN, with_ordinality="number").render_derived(name="given")

    # Where each is among those of its conversation, and their tokens up to it.
    so_far: Any = {"partition_by": given.c.conversation_id, "order_by": given.c.number}
    new = (
        select(
            *[of.value_in(name, given.c[name]).label(name) for name in GIVEN],
            given.c.number,
            func.row_number().over(**so_far).label("nth"),
            _whole(func.sum(given.c.tokens).over(**so_far)).label("tokens_so_far"),
        )
        .select_from(given, patience)
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

    counted = of.insert(conversations).from_select(
        ["conversation_id", "turns", "tokens", "created_at", "updated_at"],
        # In this order, so that two processes which append to the same conversations lock them in the same order.
        select(*added.c, added.c.created_at.label("updated_at")).order_by(of.by_code_point(added.c.conversation_id)),
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
        .returning(c.conversation_id, *of.conversations.appended_columns())
        .cte("head")
    )

    together = new.join(added, added.c.conversation_id == new.c.conversation_id).join(
        head, head.c.conversation_id == new.c.conversation_id
    )
    turns_after = (head.c.turns - added.c.turns + new.c.nth).label("turns")
    tokens_after = (head.c.tokens - added.c.tokens + new.c.tokens_so_far).label("tokens")
    row = {
        **{name: new.c[name] for name in GIVEN},
        "turn_id": turns_after - literal_column("1"),
        "tokens_before": tokens_after - new.c.tokens,
    }
    written = (
        insert(turns)
        .from_select(list(row), select(*row.values()).select_from(together))
        .returning(literal_column("1"))
        .cte("written")
    )
    after = select(turns_after, tokens_after, head.c.evicted_tokens).select_from(together)
    return after.order_by(new.c.number).add_cte(written)


def _whole(number: Any) -> Any:
    return cast(number, BigInteger)  # sums are numeric

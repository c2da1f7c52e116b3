"""``firefly-memory ls``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command, option
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.selections import where_option
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name, a_whole_number


@command(
    "List the kinds of rows that a store has, or the rows of one kind. With --json each row is a line of JSON; if "
    "there are more rows, the last line has nothing but next, a cursor for --after. The store is only read.",
    examples=[
        "firefly-memory ls --url sqlite:///memory.db",
        "firefly-memory ls entries --url sqlite:///memory.db --where namespace=notes --where 'content~paris'",
        "firefly-memory ls turns --url sqlite:///memory.db --where conversation_id=chat --json",
    ],
    exits=OF_A_STORE,
)
@argument("kind", "the kind of the rows; without it the kinds are listed", type=a_name, required=False)
@where_option
@option("--limit", type=a_whole_number, default=50, metavar="ROWS", help="list so many rows at most (50)")
@option("--after", type=a_name, metavar="CURSOR", help="go on where an earlier list ended")
@option("--order", type=a_name, metavar="NAME", help="another order of the rows")
@store_options()
@json_option
def ls(
    where: Where, kind: str | None, selected: dict[str, str], limit: int, after: str | None, order: str | None
) -> None:
    from firefly_memory.cli.looking import list_kinds, list_rows

    if kind is None:
        list_kinds(where)
    else:
        list_rows(where, kind, selected, limit=limit, after=after, order=order)

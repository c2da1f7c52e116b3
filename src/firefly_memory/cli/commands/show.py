"""``firefly-memory show``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name


@command(
    "Show one row with all its fields: of a conversation its summary, of a turn its messages. The store is only read.",
    examples=[
        "firefly-memory show conversations chat --url sqlite:///memory.db",
        "firefly-memory show turns chat/0 --url sqlite:///memory.db --json",
    ],
    exits={**{code: WORDS[code] for code in OF_A_STORE}, Exit.FAILED: "there is no row with this id"},
)
@argument("kind", "the kind of the row", type=a_name)
@argument("id", "its id, as ls shows it", type=a_name)
@store_options()
@json_option
def show(where: Where, kind: str, id: str) -> None:  # noqa: A002 - the name of the argument
    from firefly_memory.cli.looking import show_row

    show_row(where, kind, id)

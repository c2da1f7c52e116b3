"""``firefly-memory stats``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, command
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where


@command(
    "Count the rows of each kind, and the tokens of conversations and turns. The store is only read.",
    examples=["firefly-memory stats --url sqlite:///memory.db"],
    exits=OF_A_STORE,
)
@store_options()
@json_option
def stats(where: Where) -> None:
    from firefly_memory.cli.looking import show_stats

    show_stats(where)

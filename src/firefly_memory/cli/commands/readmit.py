"""``firefly-memory readmit``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name


@command(
    "Accept new data of a person who was erased by forget. Nothing that was erased comes back.",
    examples=["firefly-memory readmit alice --url sqlite:///memory.db"],
    exits={
        **{code: WORDS[code] for code in OF_A_STORE},
        Exit.FAILED: "this owner was not erased; nothing was changed",
    },
)
@argument("owner", "the owner, as forget was given it", type=a_name)
@store_options()
@json_option
def readmit(where: Where, owner: str) -> None:
    from firefly_memory.cli.erasure import readmit_owner

    readmit_owner(where, owner)

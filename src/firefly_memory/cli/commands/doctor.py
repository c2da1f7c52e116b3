"""``firefly-memory doctor``."""

from __future__ import annotations

from firefly_memory.cli.command import MOST, command
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where

_WORDS = {
    Exit.DONE: "nothing is wrong; there may be warnings",
    Exit.BEHIND: "there is no SQLite file",
    Exit.DRIFT: "there is a problem",
    Exit.UNREACHABLE: "the store cannot be reached",
}


@command(
    "Look at a store, its database and its surroundings, and say what is wrong and what to do. Nothing is changed.",
    examples=["firefly-memory doctor --url-file service-url", "firefly-memory doctor --json"],
    exits={code: WORDS[code] for code in (*MOST, Exit.BUSY)} | _WORDS,
)
@store_options(timeout=10.0)
@json_option
def doctor(where: Where) -> int:
    from firefly_memory.cli.doctor import run

    return run(where)

"""``firefly-memory db current``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, command
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where

_DONE = {Exit.DONE: "the schema is at the newest revision, or ahead and compatible"}


@command(
    examples=["firefly-memory db current --url-file service-url --json"],
    exits={code: WORDS[code] for code in OF_A_STORE} | _DONE,
)
@store_options(timeout=60.0)
@json_option
def current(where: Where) -> int:
    from firefly_memory.cli.database import run_current

    return run_current(where)

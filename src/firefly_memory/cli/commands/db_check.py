"""``firefly-memory db check``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, command
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where

_DONE = {Exit.DONE: "the schema is at the newest revision, or ahead and compatible, and all in it is as it should be"}


@command(
    examples=["firefly-memory db check --url-file service-url"],
    exits={code: WORDS[code] for code in (*OF_A_STORE, Exit.DRIFT)} | _DONE,
)
@store_options(timeout=60.0)
@json_option
def check(where: Where) -> int:
    from firefly_memory.cli.database import run_check

    return run_check(where)

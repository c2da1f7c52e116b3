"""``firefly-memory db stamp``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command
from firefly_memory.cli.options import json_option, store_options
from firefly_memory.cli.target import Where


@command(examples=["firefly-memory db stamp 0003 --url-file service-url"], exits=OF_A_STORE)
@argument("revision", "the revision that the database is at, or base")
@store_options(timeout=60.0)
@json_option
def stamp(where: Where, revision: str) -> int:
    from firefly_memory.cli.database import run_stamp

    return run_stamp(where, revision)

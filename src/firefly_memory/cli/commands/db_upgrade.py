"""``firefly-memory db upgrade``."""

from __future__ import annotations

from firefly_memory.cli.command import MOST, argument, command
from firefly_memory.cli.exits import Exit
from firefly_memory.cli.options import json_option, lock_timeout_option, store_options
from firefly_memory.cli.target import Where


@command(
    examples=["firefly-memory db upgrade --url-file service-url"],
    exits=[*MOST, Exit.AHEAD, Exit.UNREACHABLE, Exit.BUSY],
)
@argument("revision", "how far, by default to the newest", default="head")
@lock_timeout_option
@store_options(timeout=60.0)
@json_option
def upgrade(where: Where, revision: str, lock_timeout: float) -> int:
    from firefly_memory.cli.database import run_upgrade

    return run_upgrade(where, revision, lock_timeout)

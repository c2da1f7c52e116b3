"""``firefly-memory db downgrade``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command
from firefly_memory.cli.options import dry_run_option, json_option, lock_timeout_option, store_options, yes_option
from firefly_memory.cli.target import Where


@command(
    examples=[
        "firefly-memory db downgrade 0004 --url-file service-url --dry-run",
        "firefly-memory db downgrade 0004 --url-file service-url --yes",
    ],
    exits=OF_A_STORE,
)
@argument("revision", "the revision to go back to, or base for an empty schema")
@yes_option
@dry_run_option("only say what goes: revisions, tables, their rows")
@lock_timeout_option
@store_options(timeout=60.0)
@json_option
def downgrade(where: Where, revision: str, yes: bool, dry_run: bool, lock_timeout: float) -> int:
    from firefly_memory.cli.database import run_downgrade

    return run_downgrade(where, revision, yes=yes, dry_run=dry_run, lock_timeout=lock_timeout)

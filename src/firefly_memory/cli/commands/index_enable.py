"""``firefly-memory index enable``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command
from firefly_memory.cli.options import accelerator_options, json_option, quiet_option, store_options
from firefly_memory.cli.target import Where


@command(
    "Switch an accelerator on: pgvector for the vectors of one embedder, so that more than 50,000 rows are searched by "
    "meaning; pg_trgm for the mode fuzzy. Both are for PostgreSQL. Writers and searches go on meanwhile, and need not "
    "be told. It needs the rights of `db upgrade`. If it was interrupted, start it again.",
    examples=[
        "firefly-memory index enable pgvector --url-file service-url",
        "firefly-memory index enable pgvector --embedder-name text-embedding-3-small --url-file service-url",
    ],
    exits=OF_A_STORE,
)
@argument("accelerator", "pgvector or pg_trgm")
@accelerator_options
@store_options(timeout=60.0)
@json_option
@quiet_option
def enable(where: Where, accelerator: str, kind: str, embedder_name: str | None, quiet: bool) -> None:
    from firefly_memory.cli.accelerators import run_enable

    run_enable(where, accelerator, kind, embedder_name, quiet=quiet)

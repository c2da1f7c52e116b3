"""``firefly-memory index disable``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command
from firefly_memory.cli.options import accelerator_options, json_option, quiet_option, store_options
from firefly_memory.cli.target import Where


@command(
    "Switch an accelerator off: pgvector for all embedders, or for one. Nothing that anybody has written is lost, and "
    "the extension stays. Writers and searches go on meanwhile.",
    examples=["firefly-memory index disable pgvector --url-file service-url"],
    exits=OF_A_STORE,
)
@argument("accelerator", "pgvector or pg_trgm")
@accelerator_options
@store_options(timeout=60.0)
@json_option
@quiet_option
def disable(where: Where, accelerator: str, kind: str, embedder_name: str | None, quiet: bool) -> None:
    from firefly_memory.cli.accelerators import run_disable

    run_disable(where, accelerator, kind, embedder_name, quiet=quiet)

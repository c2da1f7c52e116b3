"""``firefly-memory index delete-vectors``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command
from firefly_memory.cli.options import json_option, quiet_option, store_options
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name


@command(
    "Delete the vectors of an embedder that is no longer used. No row is lost: vectors can be made again. "
    "`firefly-memory index status` has the names of the embedders. If it was interrupted, start it again.",
    examples=["firefly-memory index delete-vectors openai:text-embedding-3-small --url sqlite:///memory.db"],
    exits=OF_A_STORE,
)
@argument("name", "the name of the embedder", type=a_name)
@store_options()
@json_option
@quiet_option
def delete_vectors(where: Where, name: str, quiet: bool) -> None:
    from firefly_memory.cli.search_indexes import run_delete_vectors

    run_delete_vectors(where, name, quiet=quiet)

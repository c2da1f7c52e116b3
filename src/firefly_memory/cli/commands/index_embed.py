"""``firefly-memory index embed``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, command
from firefly_memory.cli.options import json_option, quiet_option, store_options
from firefly_memory.cli.target import Where


@command(
    "Make the vectors that are missing, by the local embedder of the extra embeddings. Another embedder makes its own "
    "by KnowledgeStore.embed_missing(). If it was interrupted, start it again.",
    examples=["firefly-memory index embed --url sqlite:///memory.db"],
    exits=OF_A_STORE,
)
@store_options()
@json_option
@quiet_option
def embed(where: Where, quiet: bool) -> None:
    from firefly_memory.cli.search_indexes import run_embed

    run_embed(where, quiet=quiet)

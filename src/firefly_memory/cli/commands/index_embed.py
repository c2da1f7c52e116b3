"""``firefly-memory index embed``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, command
from firefly_memory.cli.options import embedder_option, json_option, quiet_option, store_options
from firefly_memory.cli.target import Where


@command(
    "Make the vectors that are missing, by the local embedder of the extra embeddings, or by one of your own. If it "
    "was interrupted, start it again.",
    examples=[
        "firefly-memory index embed --url sqlite:///memory.db",
        "firefly-memory index embed --embedder myapp.search:EMBEDDER --url sqlite:///memory.db",
    ],
    exits=OF_A_STORE,
)
@embedder_option
@store_options()
@json_option
@quiet_option
def embed(where: Where, embedder: str | None, quiet: bool) -> None:
    from firefly_memory.cli.search_indexes import run_embed

    run_embed(where, embedder, quiet=quiet)

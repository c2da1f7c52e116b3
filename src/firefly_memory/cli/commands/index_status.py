"""``firefly-memory index status``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, command
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import embedder_option, json_option, store_options
from firefly_memory.cli.target import Where

_DONE = {Exit.DONE: "every index has the words of its rows"}


@command(
    "Compare each index of words with all rows that it is made of, and count the rows without a vector of the "
    "embedder. It reads every row. Vectors that are missing are no fault: such rows are found as text.",
    examples=["firefly-memory index status --url sqlite:///memory.db"],
    exits={code: WORDS[code] for code in (*OF_A_STORE, Exit.DRIFT)} | _DONE,
)
@embedder_option
@store_options()
@json_option
def status(where: Where, embedder: str | None) -> int:
    from firefly_memory.cli.search_indexes import show_states

    return show_states(where, embedder)

"""``firefly-memory index rebuild``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, command, option
from firefly_memory.cli.options import json_option, quiet_option, store_options
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name


@command(
    "Make again what is not right in the indexes of words, row by row. Writers and searches go on meanwhile. With "
    "--language the words become those of another language: restart the services that were told the old one. If it was "
    "interrupted, start it again.",
    examples=[
        "firefly-memory index rebuild --url sqlite:///memory.db",
        "firefly-memory index rebuild --language german --url sqlite:///memory.db",
    ],
    exits=OF_A_STORE,
)
@option("--language", type=a_name, metavar="NAME", help="the language that the texts are in")
@store_options()
@json_option
@quiet_option
def rebuild(where: Where, language: str | None, quiet: bool) -> None:
    from firefly_memory.cli.search_indexes import run_rebuild

    run_rebuild(where, language, quiet=quiet)

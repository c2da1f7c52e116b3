"""``firefly-memory export``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command, flag
from firefly_memory.cli.left_out import without_options
from firefly_memory.cli.options import json_option, quiet_option, store_options
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name, files


@command(
    "Write everything but expired entries to a file of JSON Lines, in constant memory. The store is only read: it is "
    "not migrated either.",
    examples=["firefly-memory export --url sqlite:///memory.db everything.jsonl"],
    exits=OF_A_STORE,
    more=without_options,
)
@argument("file", "the file to write, by default the standard output", type=a_name, default="-", shell_complete=files)
@flag("--no-messages", help="leave out all messages, keep the texts of turns")
@store_options()
@json_option
@quiet_option
def export(where: Where, file: str, no_messages: bool, quiet: bool, **without: bool) -> None:
    from firefly_memory.cli.archive import write_archive

    write_archive(where, file, raw_messages=not no_messages, quiet=quiet, without=without)

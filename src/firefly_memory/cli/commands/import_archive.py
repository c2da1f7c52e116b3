"""``firefly-memory import``."""

from __future__ import annotations

from typing import Any

from firefly_memory.cli.command import OF_A_STORE, argument, command, flag, option
from firefly_memory.cli.left_out import without_options
from firefly_memory.cli.options import dry_run_option, json_option, quiet_option, store_options
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name, a_whole_number, files

_MAX_LINE = 64
"""transfer.archive.MAX_LINE in megabytes."""


@command(
    "Save what `firefly-memory export` wrote. Importing the same again changes nothing, so an import "
    "that broke off is simply started again. Entries take the place of those with their ids. Whoever wrote the "
    "archive decides what your agents remember: use --dry-run first, and --untrusted where it was a stranger.",
    examples=[
        "firefly-memory import --url sqlite:///memory.db --dry-run everything.jsonl",
        "firefly-memory import --url sqlite:///memory.db everything.jsonl",
    ],
    exits=OF_A_STORE,
    more=without_options,
)
@argument("file", "the file to read, by default the standard input", type=a_name, default="-", shell_complete=files)
@flag(
    "--untrusted",
    help="count all tokens anew, mark facts as written by a model, and leave out summaries, whatever speaks to a "
    "model as the system, and messages of a shape that is not known",
)
@option("--only", type=a_name, metavar="PREFIX", help="only what is in namespaces and conversations that start with it")
@dry_run_option("read and check everything, change nothing")
@option(
    "--max-line",
    type=a_whole_number,
    default=str(_MAX_LINE),
    metavar="MB",
    help=f"refuse longer lines ({_MAX_LINE}); a line is read into memory",
)
@store_options()
@json_option
@quiet_option
def import_archive(where: Where, file: str, **options: Any) -> None:
    from firefly_memory.cli.archive import read_archive

    read_archive(where, file, **options)

"""``firefly-memory rm``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command, flag
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import dry_run_option, json_option, store_options, yes_option
from firefly_memory.cli.selections import where_option
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name


@command(
    "Delete rows by their ids, or all rows with certain contents. It says how many rows that are, and asks. A "
    "conversation goes with its turns and its facts.",
    examples=[
        "firefly-memory rm conversations chat --url sqlite:///memory.db",
        "firefly-memory rm entries --where namespace=notes --url sqlite:///memory.db --dry-run",
        "firefly-memory rm entries --where namespace=notes --url sqlite:///memory.db --yes",
    ],
    exits={
        **{code: WORDS[code] for code in OF_A_STORE},
        Exit.FAILED: "there is no row with one of the ids; nothing was changed",
    },
)
@argument("kind", "the kind of the rows", type=a_name)
@argument("ids", "their ids, as ls shows them", type=a_name, nargs=-1)
@where_option
@flag("--all", "every", help="delete all rows of the kind")
@yes_option
@dry_run_option("only say how many rows would be deleted")
@store_options()
@json_option
def rm(
    where: Where, kind: str, ids: tuple[str, ...], selected: dict[str, str], every: bool, yes: bool, dry_run: bool
) -> None:
    from firefly_memory.cli.looking import delete_rows

    delete_rows(where, kind, ids, selected, every=every, yes=yes, dry_run=dry_run)

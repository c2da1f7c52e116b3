"""``firefly-memory forget``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, argument, command, option
from firefly_memory.cli.exits import WORDS, Exit
from firefly_memory.cli.options import dry_run_option, json_option, store_options, yes_option
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name


@command(
    "Erase a person: delete everything of an owner, and refuse what is written of this owner from now on. It says how "
    "many rows that are, and asks. What was interrupted goes on when it is started again.",
    examples=[
        "firefly-memory forget alice --url sqlite:///memory.db --dry-run",
        "firefly-memory forget alice --url sqlite:///memory.db --yes",
        "firefly-memory forget alice --namespace notes-of-alice --find alice@home --url sqlite:///memory.db --yes",
    ],
    exits={
        **{code: WORDS[code] for code in OF_A_STORE},
        Exit.FAILED: "not everything could be deleted: start it again; or a text of --find is still there",
    },
)
@argument("owner", "the owner, as the application names this person", type=a_name)
@option(
    "--namespace",
    "namespaces",
    multiple=True,
    type=a_name,
    metavar="NAME",
    help="entries that are this person's as well",
)
@option(
    "--find",
    "texts",
    multiple=True,
    type=a_name,
    metavar="TEXT",
    help="afterwards search every table, collection or file for this text, and say where it still is",
)
@yes_option
@dry_run_option("only say how many rows would be deleted")
@store_options()
@json_option
def forget(
    where: Where, owner: str, namespaces: tuple[str, ...], texts: tuple[str, ...], yes: bool, dry_run: bool
) -> None:
    from firefly_memory.cli.erasure import forget_owner

    forget_owner(where, owner, namespaces, texts, yes=yes, dry_run=dry_run)

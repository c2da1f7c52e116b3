"""``firefly-memory prune``."""

from __future__ import annotations

from firefly_memory.cli.command import OF_A_STORE, command, option
from firefly_memory.cli.options import dry_run_option, json_option, quiet_option, store_options, yes_option
from firefly_memory.cli.target import Where
from firefly_memory.cli.values import a_name, a_whole_number


@command(
    "Delete conversations that are too old, too many or too long, with their turns and facts, and rows of other kinds "
    "to which such a bound applies. It says how many rows of each kind that are, and asks. Each bound counts for each "
    "owner apart. Without a bound, those of the settings count: RETENTION_OLDER_THAN and RETENTION_KEEP_LAST. A "
    "conversation to which somebody appends meanwhile stays. If it was interrupted, start it again.",
    examples=[
        "firefly-memory prune --older-than 90d --url sqlite:///memory.db --dry-run",
        "firefly-memory prune --keep-last 100 --url sqlite:///memory.db --yes",
    ],
    exits=OF_A_STORE,
)
@option("--older-than", type=a_name, metavar="AGE", help="those whose newest turn is older: 90d, 12h, 30m")
@option("--keep-last", type=a_whole_number, metavar="NUMBER", help="all but so many, those with the newest turns")
@option("--max-tokens", type=a_whole_number, metavar="TOKENS", help="those beyond so many tokens, the oldest first")
@option("--owner", type=a_name, metavar="NAME", help="only those of this person")
@yes_option
@dry_run_option("only say how much would be deleted")
@store_options()
@json_option
@quiet_option
def prune(
    where: Where,
    older_than: str | None,
    keep_last: int | None,
    max_tokens: int | None,
    owner: str | None,
    yes: bool,
    dry_run: bool,
    quiet: bool,
) -> None:
    from firefly_memory.cli.prune import Asked, run_prune

    run_prune(where, Asked(older_than, keep_last, max_tokens, owner), yes=yes, dry_run=dry_run, quiet=quiet)
